/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack/index.c - a segment tree over time with a list of used addresses per node.
 *
 * The tree is an array: section i is node `sections` + i, the parent of k is k / 2. A lifetime
 * consists of at most two nodes per level. If the runs are used up, a new run merges with its
 * neighbor, and the hole between them counts as used. Offsets found later may be higher than
 * necessary but remain free. */
#include "plan/pack/index.h"

#include <string.h>

#include "base/checked.h"

enum {
    RUNS_AN_ITEM = 8, /* beside the first of each list */
    RUNS_OF_FEW = 1 << 16,
    LISTS_MOST = 128 /* of one lifetime: four per level of the tree */
};

/* Limit of runs. Few items could need one per node of each item; with many items most runs
 * merge. */
static int32_t runs_most(int32_t items, int32_t sections)
{
    int32_t lengths = 1;
    while (1 << lengths < sections) lengths++;
    const int64_t few = hr_min((int64_t)items * (4 + 2 * lengths), RUNS_OF_FEW);
    return (int32_t)hr_max(few, (int64_t)items * RUNS_AN_ITEM);
}

int64_t hr_pack_index_bytes(int32_t items)
{
    const int64_t lists = 4 * (int64_t)items, runs = lists + runs_most(items, items);
    return 2 * 64 + runs * (int64_t)sizeof(hr_pack_run) + lists * (int64_t)sizeof(int32_t);
}

void hr_pack_index_open(hr_pack_index *index, int32_t sections, int32_t items,
                        hr_pack_effort *effort)
{
    *index = (hr_pack_index){ .sections = sections, .run_count = 4 * sections };
    index->run_most = index->run_count + runs_most(items, sections);
    index->runs = hr_pack_take_raw(effort, index->run_most, sizeof *index->runs);
    memset(index->runs, 0, (size_t)index->run_count * sizeof *index->runs);
    index->recent = hr_pack_take(effort, index->run_count, sizeof *index->recent);
}

/* Returns an unused run; 0: there is none. */
static int32_t new_run(hr_pack_index *index)
{
    const int32_t run = index->unused;
    if (run) index->unused = index->runs[run].next;
    else if (index->run_count < index->run_most) return index->run_count++;
    return run;
}

/* Inserts a run between run k of the list and the next. If no run is unused, extends k instead. */
static void put_behind(hr_pack_index *index, int32_t list, int32_t k, int64_t low, int64_t high)
{
    hr_pack_run *runs = index->runs;
    const int32_t run = new_run(index), next = runs[k].next;
    if (!run) {
        index->coarse = true;
        runs[k].high = high;
        return;
    }
    runs[run] = (hr_pack_run){ low, high, next, k };
    runs[k].next = run;
    runs[next ? next : list].before = run;
}

/* Inserts a run below all others of the list. The old first run moves. */
static void put_below(hr_pack_index *index, int32_t list, int64_t low, int64_t high)
{
    hr_pack_run *first = &index->runs[list];
    if (!index->unused && index->run_count == index->run_most) {
        index->coarse = true;
        first->low = low;
        return;
    }
    put_behind(index, list, list, first->low, first->high);
    first->low = low;
    first->high = high;
}

/* Merges run k, which has grown upwards, with the runs that it now overlaps or touches. */
static void take_in(hr_pack_index *index, int32_t list, int32_t k)
{
    hr_pack_run *runs = index->runs;
    for (int32_t next; (next = runs[k].next) && runs[next].low <= runs[k].high;) {
        runs[k].high = hr_max(runs[k].high, runs[next].high);
        runs[k].next = runs[next].next;
        runs[runs[k].next ? runs[k].next : list].before = k;
        runs[next].next = index->unused;
        index->unused = next;
        index->looks++;
    }
}

/* The last run that starts at or below `high`; one must exist. Starts at the run extended last and
 * at the top, since stacks grow at these places. */
static int32_t find_run(hr_pack_index *index, int32_t list, int64_t high)
{
    const hr_pack_run *runs = index->runs;
    int32_t k = index->recent[list];
    const int32_t top = runs[list].before;
    if (runs[k].low <= high) {
        if (runs[top].low <= high) return top;
        for (; runs[runs[k].next].low <= high; k = runs[k].next) index->looks++;
        return k;
    }
    for (k = runs[k].before; runs[k].low > high; k = runs[k].before) index->looks++;
    return k;
}

/* Adds addresses to a list. False: all of them were in use. */
static bool add(hr_pack_index *index, int32_t list, int64_t low, int64_t high)
{
    hr_pack_run *runs = index->runs, *first = &runs[list];
    index->looks++;
    if (first->high == 0) {
        *first = (hr_pack_run){ low, high, 0, list };
        index->recent[list] = list;
        return true;
    }
    if (first->low > high) {
        put_below(index, list, low, high);
        index->recent[list] = list;
        return true;
    }
    int32_t k = index->recent[list] = find_run(index, list, high);
    if (runs[k].low <= low && runs[k].high >= high) return false;
    if (runs[k].high < low) {
        put_behind(index, list, k, low, high);
        return true;
    }
    for (; k != list && runs[runs[k].before].high >= low; k = runs[k].before) index->looks++;
    runs[k].low = hr_min(runs[k].low, low);
    runs[k].high = hr_max(runs[k].high, high);
    index->recent[list] = k;
    take_in(index, list, k);
    return true;
}

void hr_pack_index_add(hr_pack_index *index, int32_t first, int32_t last, int64_t low, int64_t high)
{
    const int32_t n = index->sections;
    int32_t around_left = n + first, around_right = n + last, left = n + first,
            right = n + last + 1;
    bool more_left = true, more_right = true; /* ancestors may not have it yet */
    while (around_right > 0) {
        for (int32_t side = 0; side < 2 && left < right; side++) {
            const bool is_whole = side ? right & 1 : left & 1;
            if (!is_whole) continue;
            const int32_t whole = side ? --right : left++;
            add(index, 2 * whole, low, high);
            if (whole < n) add(index, 2 * whole + 1, low, high);
        }
        left /= 2;
        right /= 2;
        around_left /= 2;
        around_right /= 2;
        const bool is_left = around_left > 0 && (around_left < left || left >= right);
        const bool is_right = around_right > 0 && (around_right >= right || left >= right);
        const bool one = around_left == around_right;
        if (is_left && (more_left || (one && more_right)))
            more_left = add(index, 2 * around_left, low, high) || index->coarse;
        if (is_left && one) more_right = more_left;
        else if (is_right && more_right)
            more_right = add(index, 2 * around_right, low, high) || index->coarse;
        if (!more_left && !more_right && left >= right) return;
    }
}

/* Collects the lists of the addresses in use during a lifetime. */
static int32_t gather(const hr_pack_index *index, int32_t first, int32_t last, int32_t *lists)
{
    const int32_t n = index->sections;
    int32_t count = 0;
    for (int32_t left = n + first, right = n + last + 1; left < right; left /= 2, right /= 2) {
        if (left & 1) lists[count++] = 2 * left++;
        if (right & 1) lists[count++] = 2 * --right;
    }
    for (int32_t left = (n + first) / 2, right = (n + last) / 2; right > 0; left /= 2, right /= 2) {
        lists[count++] = 2 * right + 1;
        if (left != right && left > 0) lists[count++] = 2 * left + 1;
    }
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++)
        if (index->runs[lists[i]].high > 0) lists[kept++] = lists[i];
    return kept;
}

int64_t hr_pack_index_lowest(hr_pack_index *index, int32_t first, int32_t last, int64_t bytes)
{
    int32_t at[LISTS_MOST];
    const hr_pack_run *runs = index->runs;
    const int32_t count = gather(index, first, last, at);
    int64_t low = 0;
    /* Each list in turn raises the offset above its overlapping run, until no list changes it. */
    for (int32_t i = count - 1, quiet = 0; count > quiet; i = (i + count - 1) % count) {
        const hr_pack_run *run = &runs[at[i]];
        quiet++;
        for (index->looks++; run->low < low + bytes; run = &runs[run->next], index->looks++) {
            if (run->high > low) {
                low = run->high;
                quiet = 1;
            }
            if (!run->next) break;
        }
        at[i] = (int32_t)(run - runs);
    }
    return low;
}

int64_t hr_pack_index_highest(hr_pack_index *index, int32_t first, int32_t last, int64_t bytes,
                              int64_t ceiling)
{
    int32_t lists[LISTS_MOST], at[LISTS_MOST];
    const hr_pack_run *runs = index->runs;
    const int32_t count = gather(index, first, last, lists);
    int64_t high = ceiling;
    for (int32_t i = 0; i < count; i++) at[i] = runs[lists[i]].before;
    for (int32_t i = count - 1, quiet = 0; quiet < count && high >= bytes;
         i = i > 0 ? i - 1 : count - 1) {
        const hr_pack_run *run = &runs[at[i]], *lowest = &runs[lists[i]];
        quiet++;
        for (index->looks++; run->high > high - bytes; run = &runs[run->before], index->looks++) {
            if (run->low < high) {
                high = run->low;
                quiet = 1;
            }
            if (run == lowest) break;
        }
        at[i] = (int32_t)(run - runs);
    }
    return high >= bytes ? high - bytes : -1;
}
