/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack/place.c - sort orders, reuse of places, and first fit. */
#include "base/checked.h"
#include "plan/pack/index.h"
#include "plan/pack/sort.h"

enum {
    ITEMS_BETWEEN_STOPS = 64,
    LOOKS_AN_ITEM = 16, /* runs examined that count as one item examined by the search */
    LOOKS_MOST = 1024,  /* runs examined per item; with stacks, a few dozen suffice */
    LOOKS_OF_FEW = 1 << 24,
    SIZES_AN_OCTAVE = 8,
    SIZE_CLASSES = 64 * SIZES_AN_OCTAVE,
    NOBODY = -1
};

/* An integer with the same order as the product; below 2^62. */
static int64_t product_rank(int64_t a, int64_t b)
{
    const double product = (double)a * (double)b;
    return (int64_t)(product < 4e18 ? product : 4e18);
}

void hr_pack_sort(const hr_pack_part *part, hr_pack_order by, hr_pack_effort *effort,
                  int32_t *order)
{
    const int64_t used = effort->scratch->used;
    hr_pack_key *keys = hr_pack_take_raw(effort, part->count, sizeof *keys);
    hr_pack_key *spare = hr_pack_take_raw(effort, part->count, sizeof *spare);
    for (int32_t i = 0; i < part->count; i++) {
        const hr_pack_item *item = &part->items[i];
        const int64_t life = (int64_t)item->last - item->first + 1, load = item->load;
        const int64_t steps = item->steps, crowd = item->crowd;
        const int64_t area_rank = product_rank(life, item->bytes);
        const hr_pack_key key[HR_PACK_ORDERS] = {
            [HR_PACK_BY_LOAD] = { { -load, -life, -area_rank }, i },
            [HR_PACK_BY_LOAD_AREA] = { { -load, -area_rank, -life }, i },
            [HR_PACK_BY_LOAD_STEPS] = { { -load, -steps, -product_rank(steps, item->bytes) }, i },
            [HR_PACK_BY_LOAD_CROWD] = { { -load, -crowd, -steps }, i },
            [HR_PACK_BY_SIZE] = { { -item->bytes, -life, item->first }, i },
            [HR_PACK_BY_AREA] = { { -area_rank, -load, -life }, i },
            [HR_PACK_BY_LIFE] = { { -life, -area_rank, -load }, i },
            [HR_PACK_BY_CROWD] = { { -crowd, -steps, -load }, i },
            [HR_PACK_BY_BIRTH] = { { item->first, -life, -steps }, i },
            [HR_PACK_BY_DEATH] = { { -load, -(int64_t)item->last, item->first }, i },
        };
        keys[i] = key[by];
    }
    hr_pack_sort_keys(keys, spare, part->count);
    for (int32_t i = 0; i < part->count; i++) order[i] = keys[i].index;
    effort->scratch->used = used;
}

/* Size classes, eight per power of two; `bytes` is positive. */
static int32_t size_class(int64_t bytes)
{
    const int32_t octave = 63 - __builtin_clzll((uint64_t)bytes);
    const int64_t eighths = octave < 3 ? bytes << (3 - octave) : bytes >> (octave - 3);
    return octave * SIZES_AN_OCTAVE + (int32_t)(eighths & (SIZES_AN_OCTAVE - 1));
}

/* Places of one part. A place is named by the item that created it and has its size. */
typedef struct {
    const hr_pack_part *part;
    int32_t *holds; /* [count] the place of each item */
    int32_t *next;  /* [count] links of `dying` for items, of `free` for places */
    int32_t *dying; /* [sections] items whose last section this is */
    int32_t free[SIZE_CLASSES + 1];
} places;

static void release(places *p, int32_t section)
{
    for (int32_t i = p->dying[section], after; i != NOBODY; i = after) {
        const int32_t place = p->holds[i], kind = size_class(p->part->items[place].bytes);
        after = p->next[i];
        p->next[place] = p->free[kind];
        p->free[kind] = place;
    }
}

/* Takes a free place for item `i`: the first of its size class, or of the next, whose places are
 * all large enough. NOBODY: there is none. */
static int32_t take_place(places *p, int32_t i)
{
    const int64_t bytes = p->part->items[i].bytes;
    int32_t kind = size_class(bytes);
    if (p->free[kind] == NOBODY || p->part->items[p->free[kind]].bytes < bytes) kind++;
    const int32_t place = p->free[kind];
    if (place != NOBODY) p->free[kind] = p->next[place];
    return place;
}

int64_t hr_pack_reuse(const hr_pack_part *part, hr_pack_effort *effort, int64_t *offsets)
{
    const int64_t used = effort->scratch->used;
    const int32_t sections = part->last - part->first + 1;
    places p = { .part = part };
    p.holds = hr_pack_take(effort, part->count, sizeof *p.holds);
    p.next = hr_pack_take(effort, part->count, sizeof *p.next);
    p.dying = hr_pack_take(effort, sections, sizeof *p.dying);
    for (int32_t k = 0; k < sections; k++) p.dying[k] = NOBODY;
    for (int32_t k = 0; k <= SIZE_CLASSES; k++) p.free[k] = NOBODY;
    int32_t section = 0;
    int64_t height = 0;
    for (int32_t i = 0; i < part->count; i++) {
        const hr_pack_item *item = &part->items[i];
        for (; section < item->first - part->first; section++) release(&p, section);
        const int32_t place = take_place(&p, i), last = item->last - part->first;
        p.holds[i] = place == NOBODY ? i : place;
        offsets[i] = place == NOBODY ? height : offsets[place];
        if (place == NOBODY) height += item->bytes;
        p.next[i] = p.dying[last];
        p.dying[last] = i;
    }
    effort->scratch->used = used;
    return height;
}

static void take(hr_pack_index *index, const hr_pack_part *part, const int64_t *offsets, int32_t id)
{
    const hr_pack_item *item = &part->items[id];
    hr_pack_index_add(index, item->first - part->first, item->last - part->first, offsets[id],
                      offsets[id] + item->bytes);
}

/* The lowest offset free of all placed items. With a ceiling: the highest offset that ends at or
 * below it, if there is one. */
static int64_t find_gap(hr_pack_index *index, const hr_pack_part *part, const hr_pack_item *item,
                        int64_t ceiling)
{
    const int32_t first = item->first - part->first, last = item->last - part->first;
    const int64_t highest = ceiling
                                ? hr_pack_index_highest(index, first, last, item->bytes, ceiling)
                                : -1;
    return highest >= 0 ? highest : hr_pack_index_lowest(index, first, last, item->bytes);
}

static bool hangs(const hr_pack_part *part, const hr_pack_item *item, hr_pack_hang hang)
{
    switch (hang) {
    case HR_PACK_HANG_NEW: return item->first > part->peak;
    case HR_PACK_HANG_LASTING: return item->last == part->last;
    case HR_PACK_HANG_LATE: return item->last - part->peak > part->peak - item->first;
    case HR_PACK_HANG_AFTER: return item->last > part->peak;
    default: return false;
    }
}

int64_t hr_pack_first_fit(const hr_pack_part *part, const int32_t *order, const int64_t *known,
                          hr_pack_hang hang, int64_t ceiling, int64_t enough,
                          hr_pack_effort *effort, int64_t *offsets)
{
    const int64_t used = effort->scratch->used;
    hr_pack_index index;
    const int64_t looks_most = hr_max(LOOKS_OF_FEW, LOOKS_MOST * (int64_t)part->count);
    int64_t top = 0;
    hr_pack_index_open(&index, part->last - part->first + 1, part->count, effort);
    for (int32_t id = 0; known && id < part->count; id++) {
        if (known[id] < 0) continue;
        offsets[id] = known[id];
        take(&index, part, offsets, id);
    }
    for (int32_t k = 0; k < part->count && top < enough; k++) {
        const int32_t id = order[k];
        const hr_pack_item *item = &part->items[id];
        if (!known || known[id] < 0) {
            const int64_t below = hangs(part, item, hang) ? ceiling : 0;
            offsets[id] = find_gap(&index, part, item, below);
            take(&index, part, offsets, id);
        }
        top = hr_max(top, offsets[id] + item->bytes);
        if (index.looks > looks_most) top = INT64_MAX;
        if (k % ITEMS_BETWEEN_STOPS == 0 && hr_pack_stopped(effort)) top = INT64_MAX;
    }
    effort->work -= index.looks / LOOKS_AN_ITEM;
    effort->scratch->used = used;
    return top < enough ? top : INT64_MAX;
}
