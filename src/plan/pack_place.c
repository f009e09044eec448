/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack_place.c - orders, and first fit.
 *
 * First fit asks which placed items are alive during a life, in the order of their offsets. Time is
 * halved again and again; each stretch lists what is alive in it, and a life is looked up in the
 * smallest stretch around it. */
#include "plan/pack_part.h"

#include <string.h>

#include "base/checked.h"
#include "plan/pack_sort.h"

enum {
    LEVELS_MAX = 20,
    ENTRIES_MAX = 24,       /* per item, over all stretches: finer ones are not worth their upkeep */
    ITEMS_BETWEEN_STOPS = 64
};

/* Level 0 is the whole part; a stretch of level k is 2^(shift - k) sections long. */
typedef struct {
    int32_t *begin;         /* [stretches + 1] where each one's ids begin */
    int32_t *count;         /* [stretches] */
    int32_t *ids;           /* by offset */
    int32_t levels, shift;
} index_of_time;

/* Orders as the product does, below 2^62. */
static int64_t product_rank(int64_t a, int64_t b)
{
    const double product = (double)a * (double)b;
    return (int64_t)(product < 4e18 ? product : 4e18);
}

bool hr_pack_sort(const hr_pack_part *part, hr_pack_order by, hr_region *scratch, int32_t *order)
{
    const int64_t used = scratch->used;
    hr_pack_key *keys = hr_region_take(scratch, part->count, sizeof *keys);
    hr_pack_key *spare = hr_region_take(scratch, part->count, sizeof *spare);
    if (!spare) return false;
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
            [HR_PACK_BY_BIRTH] = { { item->first, -life, -item->bytes }, i },
        };
        keys[i] = key[by];
    }
    hr_pack_sort_keys(keys, spare, part->count);
    for (int32_t i = 0; i < part->count; i++) order[i] = keys[i].index;
    scratch->used = used;
    return true;
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
    const int64_t n = count, tables = 3 * 64;
    return tables + n * (ENTRIES_MAX + 2 * 4) * (int64_t)sizeof(int32_t) + 2 * sizeof(int32_t);
}

static void place_index(index_of_time *index, const hr_pack_part *part, hr_region *scratch)
{
    const int32_t sections = part->last - part->first + 1;
    *index = (index_of_time){ 0 };
    while ((int64_t)1 << index->shift < sections) index->shift++;
    int64_t entries = 0;
    const int64_t most = (int64_t)part->count * ENTRIES_MAX;
    while (index->levels <= index->shift && index->levels < LEVELS_MAX) {
        const int64_t more = entries_of(index, index->levels, part);
        if (entries + more > most) break;
        entries += more;
        index->levels++;
    }
    const int32_t all = (1 << index->levels) - 1;
    index->begin = hr_region_take(scratch, all + 1, sizeof *index->begin);
    index->count = hr_region_take(scratch, all, sizeof *index->count);
    index->ids = hr_region_take(scratch, entries, sizeof *index->ids);
    for (int32_t level = 0; level < index->levels; level++)
        for (int32_t i = 0; i < part->count; i++) {
            int32_t first, last;
            stretches(index, level, part, &part->items[i], &first, &last);
            for (int32_t k = first; k <= last; k++) index->begin[k + 1]++;
        }
    for (int32_t k = 0; k < all; k++) index->begin[k + 1] += index->begin[k];
}

static void insert(index_of_time *index, const hr_pack_part *part, const int64_t *offsets,
                   int32_t id)
{
    for (int32_t level = 0; level < index->levels; level++) {
        int32_t first, last;
        stretches(index, level, part, &part->items[id], &first, &last);
        for (int32_t k = first; k <= last; k++) {
            int32_t *ids = &index->ids[index->begin[k]], low = 0, high = index->count[k]++;
            const int32_t end = high;
            while (low < high) {
                const int32_t middle = (low + high) / 2;
                if (offsets[ids[middle]] < offsets[id]) low = middle + 1;
                else high = middle;
            }
            memmove(&ids[low + 1], &ids[low], (size_t)(end - low) * sizeof *ids);
            ids[low] = id;
        }
    }
}

/* The lowest offset at which `item` is free of all placed ones; with a ceiling, the highest one
 * that ends at or below it, if there is any. */
static int64_t find_gap(const index_of_time *index, const hr_pack_part *part,
                        const int64_t *offsets, const hr_pack_item *item, int64_t ceiling)
{
    int32_t stretch = 0, first, last;
    for (int32_t level = 1; level < index->levels; level++) {
        stretches(index, level, part, item, &first, &last);
        if (first != last) break;
        stretch = first;
    }
    const int32_t *ids = &index->ids[index->begin[stretch]];
    int64_t free_from = 0, highest = -1;
    for (int32_t k = 0; k < index->count[stretch]; k++) {
        const int32_t id = ids[k];
        const hr_pack_item *other = &part->items[id];
        if (other->first > item->last || other->last < item->first) continue;
        if (offsets[id] - free_from >= item->bytes) {
            if (!ceiling) return free_from;
            if (offsets[id] <= ceiling) highest = offsets[id] - item->bytes;
        }
        free_from = hr_max(free_from, offsets[id] + other->bytes);
    }
    if (ceiling - free_from >= item->bytes) highest = ceiling - item->bytes;
    return highest >= 0 ? highest : free_from;
}

bool hr_pack_first_fit(const hr_pack_part *part, const int32_t *order, int64_t ceiling,
                       hr_pack_effort *effort, hr_region *scratch, int64_t *offsets,
                       int64_t *height)
{
    const int64_t used = scratch->used;
    index_of_time index;
    int64_t top = 0;
    if (hr_pack_first_fit_bytes(part->count) > scratch->bytes - used) return false;
    place_index(&index, part, scratch);
    for (int32_t k = 0; k < part->count && top < INT64_MAX; k++) {
        const hr_pack_item *item = &part->items[order[k]];
        const bool hangs = item->last > part->peak;
        offsets[order[k]] = find_gap(&index, part, offsets, item, hangs ? ceiling : 0);
        top = hr_max(top, offsets[order[k]] + item->bytes);
        insert(&index, part, offsets, order[k]);
        if (k % ITEMS_BETWEEN_STOPS == 0 && hr_pack_stopped(effort)) top = INT64_MAX;
    }
    scratch->used = used;
    *height = top;
    return true;
}
