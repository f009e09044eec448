/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack_place.c - orders, and first fit.
 *
 * First fit asks which placed items are alive during a life, in the order of their offsets. Time
 * is halved again and again; each stretch lists what is alive in it, and a life is looked up in the
 * one or two shortest stretches that hold it. */
#include "plan/pack_part.h"

#include <string.h>

#include "base/checked.h"
#include "plan/pack_sort.h"

enum {
    LEVELS_MAX = 20,
    ENTRIES_MAX = 24, /* per item, over all stretches: finer ones cost more than they save */
    ITEMS_BETWEEN_STOPS = 64,
    SIZES_AN_OCTAVE = 8,
    SIZE_CLASSES = 64 * SIZES_AN_OCTAVE,
    NOBODY = -1
};

/* Level 0 is the whole part; a stretch of level k is 2^(shift - k) sections long. What lies on the
 * ground one on the other through the whole of a stretch needs no list there: no gap is below its
 * top. The same holds for what hangs from the ceiling. That is most of a training step: gradients,
 * and activations that wait for their layer. */
typedef struct {
    int32_t *begin;  /* [stretches + 1] where each one's ids begin */
    int32_t *count;  /* [stretches] listed */
    int32_t *sorted; /* [stretches] how many of them are in order; the rest when somebody asks */
    int64_t *solid;  /* [stretches] top of what is stacked on the ground all the time */
    int64_t *hung;   /* [stretches] bottom of what hangs from the ceiling all the time */
    int64_t ceiling;
    int32_t *ids;     /* by offset */
    int32_t *spare;   /* [items] scratch */
    int32_t coarsest; /* the finest level at which two stretches hold any life */
    int32_t levels, shift;
} index_of_time;

/* Orders as the product does, below 2^62. */
static int64_t product_rank(int64_t a, int64_t b)
{
    const double product = (double)a * (double)b;
    return (int64_t)(product < 4e18 ? product : 4e18);
}

void hr_pack_sort(const hr_pack_part *part, hr_pack_order by, hr_pack_effort *effort,
                  int32_t *order)
{
    const int64_t used = effort->scratch->used;
    hr_pack_key *keys = hr_pack_take(effort, part->count, sizeof *keys);
    hr_pack_key *spare = hr_pack_take(effort, part->count, sizeof *spare);
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

/* Stretches of one level that a life touches: first to last, numbered over all levels. */
static void stretches(const index_of_time *index, int32_t level, const hr_pack_part *part,
                      const hr_pack_item *item, int32_t *first, int32_t *last)
{
    const int32_t shift = index->shift - level, base = (1 << level) - 1;
    *first = base + ((item->first - part->first) >> shift);
    *last = base + ((item->last - part->first) >> shift);
}

/* How many entries the level holds in all. */
static int64_t entries_of(const index_of_time *index, int32_t level, const hr_pack_part *part)
{
    int64_t entries = 0;
    for (int32_t i = 0; i < part->count; i++) {
        int32_t first, last;
        stretches(index, level, part, &part->items[i], &first, &last);
        entries += last - first + 1;
    }
    return entries;
}

int64_t hr_pack_first_fit_bytes(int32_t count)
{
    /* The finest level has at most two stretches for each section, the coarser ones as many. */
    const int64_t n = count, tables = 7 * 64;
    const int64_t stretch = 3 * (int64_t)sizeof(int32_t) + 2 * (int64_t)sizeof(int64_t);
    return tables + n * ((ENTRIES_MAX + 1) * (int64_t)sizeof(int32_t) + 4 * stretch) + stretch;
}

/* The finest level, of those before `levels`, at which two stretches hold the life. */
static int32_t level_of(const index_of_time *index, const hr_pack_part *part,
                        const hr_pack_item *item, int32_t levels)
{
    int32_t level = levels - 1, first, last;
    for (stretches(index, level, part, item, &first, &last); last - first > 1; level--)
        stretches(index, level - 1, part, item, &first, &last);
    return level;
}

/* Which levels there are: from the coarsest that a life needs, as many finer ones as may be. */
static int64_t choose_levels(index_of_time *index, const hr_pack_part *part)
{
    const int32_t sections = part->last - part->first + 1;
    while ((int64_t)1 << index->shift < sections) index->shift++;
    const int32_t all = (int32_t)hr_min(index->shift + 1, LEVELS_MAX);
    index->coarsest = all - 1;
    for (int32_t i = 0; i < part->count; i++)
        index->coarsest = level_of(index, part, &part->items[i], index->coarsest + 1);
    int64_t entries = 0;
    const int64_t most = (int64_t)part->count * ENTRIES_MAX;
    for (index->levels = index->coarsest; index->levels < all; index->levels++) {
        const int64_t more = entries_of(index, index->levels, part);
        if (entries + more > most) break;
        entries += more;
    }
    return entries;
}

static void place_index(index_of_time *index, const hr_pack_part *part, int64_t ceiling,
                        hr_pack_effort *effort)
{
    *index = (index_of_time){ .ceiling = ceiling };
    const int64_t entries = choose_levels(index, part);
    const int32_t all = (1 << index->levels) - 1;
    index->begin = hr_pack_take(effort, all + 1, sizeof *index->begin);
    index->count = hr_pack_take(effort, all, sizeof *index->count);
    index->sorted = hr_pack_take(effort, all, sizeof *index->sorted);
    index->solid = hr_pack_take(effort, all, sizeof *index->solid);
    index->hung = hr_pack_take(effort, all, sizeof *index->hung);
    index->spare = hr_pack_take(effort, part->count, sizeof *index->spare);
    index->ids = hr_pack_take(effort, entries, sizeof *index->ids);
    for (int32_t level = index->coarsest; level < index->levels; level++)
        for (int32_t i = 0; i < part->count; i++) {
            int32_t first, last;
            stretches(index, level, part, &part->items[i], &first, &last);
            for (int32_t k = first; k <= last; k++) index->begin[k + 1]++;
        }
    for (int32_t k = 0; k < all; k++) {
        index->begin[k + 1] += index->begin[k];
        index->hung[k] = ceiling;
    }
}

/* Does the life hold all sections of the stretch? Those past the part's end are nobody's. */
static bool covers(const hr_pack_item *item, int32_t first, int32_t last)
{
    return item->first <= first && item->last >= last;
}

/* Sorts ids [count] by offset; few of them, or in an order that is nearly right. */
static void sort_by_insertion(const int64_t *offsets, int32_t *ids, int32_t sorted, int32_t count)
{
    for (int32_t i = sorted; i < count; i++) {
        const int32_t id = ids[i];
        int32_t low = 0, high = i;
        while (low < high) {
            const int32_t middle = (low + high) / 2;
            if (offsets[ids[middle]] < offsets[id]) low = middle + 1;
            else high = middle;
        }
        memmove(&ids[low + 1], &ids[low], (size_t)(i - low) * sizeof *ids);
        ids[low] = id;
    }
}

/* Merges from[low, middle) and from[middle, high), each in order. */
static void merge_ids(const int64_t *offsets, const int32_t *from, int32_t *to, int32_t low,
                      int32_t middle, int32_t high)
{
    int32_t left = low, right = middle;
    for (int32_t i = low; i < high; i++) {
        const bool take_left = left < middle &&
                               (right == high || offsets[from[left]] <= offsets[from[right]]);
        to[i] = take_left ? from[left++] : from[right++];
    }
}

/* Puts the ids of a stretch in order. Coarse stretches have many and are asked seldom: what has
 * come since the last time is sorted by itself, eight at a time and then in pairs, and merged. */
static void put_in_order(index_of_time *index, const int64_t *offsets, int32_t k)
{
    enum { RUN = 8 };
    int32_t *ids = &index->ids[index->begin[k]], *spare = index->spare;
    const int32_t sorted = index->sorted[k], fresh = index->count[k] - sorted;
    index->sorted[k] = index->count[k];
    if (fresh <= RUN) {
        sort_by_insertion(offsets, ids, sorted, sorted + fresh);
        return;
    }
    int32_t *from = &ids[sorted], *to = spare;
    for (int32_t i = 0; i < fresh; i += RUN)
        sort_by_insertion(offsets, &from[i], 0, (int32_t)hr_min(RUN, fresh - i));
    for (int32_t width = RUN; width < fresh; width *= 2) {
        for (int32_t low = 0; low < fresh; low += 2 * width)
            merge_ids(offsets, from, to, low, (int32_t)hr_min(low + width, fresh),
                      (int32_t)hr_min(low + 2 * width, fresh));
        int32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != spare) memcpy(spare, from, (size_t)fresh * sizeof *spare);
    for (int32_t kept = sorted, left = fresh; left > 0;) {
        const bool after = kept > 0 && offsets[ids[kept - 1]] > offsets[spare[left - 1]];
        ids[kept + left - 1] = after ? ids[kept - 1] : spare[left - 1];
        if (after) kept--;
        else left--;
    }
}

static void insert(index_of_time *index, const hr_pack_part *part, const int64_t *offsets,
                   int32_t id)
{
    const hr_pack_item *item = &part->items[id];
    for (int32_t level = index->coarsest; level < index->levels; level++) {
        const int32_t shift = index->shift - level, base = (1 << level) - 1;
        int32_t first, last;
        stretches(index, level, part, item, &first, &last);
        for (int32_t k = first; k <= last; k++) {
            const int32_t from = part->first + ((k - base) << shift);
            const int32_t to = (int32_t)hr_min(from + (INT64_C(1) << shift) - 1, part->last);
            const bool whole = covers(item, from, to);
            if (whole && offsets[id] == index->solid[k]) index->solid[k] += item->bytes;
            else if (whole && offsets[id] + item->bytes == index->hung[k])
                index->hung[k] = offsets[id];
            else index->ids[index->begin[k] + index->count[k]++] = id;
        }
    }
}

/* The walk over what is taken during a life, upwards. */
typedef struct {
    int64_t bytes, ceiling; /* wanted; 0: the first gap will do */
    int64_t free_from, highest;
} walk;

/* Passes [low, high), which is taken. True: the gap below it is the one. */
static inline bool pass(walk *w, int64_t low, int64_t high)
{
    if (low - w->free_from >= w->bytes) {
        if (!w->ceiling) return true;
        if (low <= w->ceiling) w->highest = low - w->bytes;
    }
    w->free_from = hr_max(w->free_from, high);
    return false;
}

/* The lowest offset at which `item` is free of all placed ones; with a ceiling, the highest one
 * that ends at or below it, if there is any. Who is listed in both stretches is met twice, which
 * changes nothing. */
static int64_t find_gap(index_of_time *index, const hr_pack_part *part, const int64_t *offsets,
                        const hr_pack_item *item, int64_t ceiling)
{
    int32_t first, last;
    stretches(index, level_of(index, part, item, index->levels), part, item, &first, &last);
    put_in_order(index, offsets, first);
    put_in_order(index, offsets, last);
    const int32_t *left = &index->ids[index->begin[first]];
    const int32_t *right = &index->ids[index->begin[last]];
    const int32_t *left_end = left + index->count[first];
    const int32_t *right_end = first == last ? right : right + index->count[last];
    const int64_t hung = hr_min(index->hung[first], index->hung[last]);
    bool below = hung < index->ceiling;
    walk w = { item->bytes, ceiling, hr_max(index->solid[first], index->solid[last]), -1 };
    while (left < left_end || right < right_end) {
        const bool take_left = right == right_end ||
                               (left < left_end && offsets[*left] <= offsets[*right]);
        const int32_t id = take_left ? *left++ : *right++;
        const hr_pack_item *other = &part->items[id];
        if (other->first > item->last || other->last < item->first) continue;
        if (below && offsets[id] >= hung) {
            if (pass(&w, hung, index->ceiling)) return w.free_from;
            below = false;
        }
        if (pass(&w, offsets[id], offsets[id] + other->bytes)) return w.free_from;
    }
    if (below && pass(&w, hung, index->ceiling)) return w.free_from;
    if (ceiling - w.free_from >= item->bytes) w.highest = ceiling - item->bytes;
    return w.highest >= 0 ? w.highest : w.free_from;
}

/* Classes of sizes, eight to an octave; `bytes` is positive. */
static int32_t size_class(int64_t bytes)
{
    const int32_t octave = 63 - __builtin_clzll((uint64_t)bytes);
    const int64_t eighths = octave < 3 ? bytes << (3 - octave) : bytes >> (octave - 3);
    return octave * SIZES_AN_OCTAVE + (int32_t)(eighths & (SIZES_AN_OCTAVE - 1));
}

/* Places of one part, each known by the item that made it and as large as that one. */
typedef struct {
    const hr_pack_part *part;
    int32_t *holds; /* [count] the place of each item */
    int32_t *next;  /* [count] in the list of the dying, then, of a place, of the free */
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

/* A free place for item `i`: the first of its own class, or of the next, where all are large
 * enough. NOBODY: there is none. */
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
    index_of_time index;
    int64_t top = 0;
    place_index(&index, part, ceiling, effort);
    for (int32_t id = 0; known && id < part->count; id++) {
        if (known[id] < 0) continue;
        offsets[id] = known[id];
        insert(&index, part, offsets, id);
    }
    for (int32_t k = 0; k < part->count && top < enough; k++) {
        const int32_t id = order[k];
        const hr_pack_item *item = &part->items[id];
        if (!known || known[id] < 0) {
            offsets[id] = find_gap(&index, part, offsets, item,
                                   hangs(part, item, hang) ? ceiling : 0);
            insert(&index, part, offsets, id);
        }
        top = hr_max(top, offsets[id] + item->bytes);
        if (k % ITEMS_BETWEEN_STOPS == 0 && hr_pack_stopped(effort)) top = INT64_MAX;
    }
    effort->scratch->used = used;
    return top < enough ? top : INT64_MAX;
}
