/* SPDX-License-Identifier: Apache-2.0 */
/* judge/verify_live.c - bitmaps over ranks. */
#include "judge/verify_live.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64 };

typedef struct {
    int64_t offset;
    int32_t buffer;
} ranked;

static int compare_offsets(const void *a, const void *b)
{
    const ranked *one = a, *two = b;
    if (one->offset != two->offset) return one->offset < two->offset ? -1 : 1;
    return one->buffer < two->buffer ? -1 : one->buffer > two->buffer;
}

static void rank_all(const hr_judged_plan *plan, ranked *order, hr_judged_live *live)
{
    const int32_t count = plan->buffer_count;
    for (int32_t b = 0; b < count; b++) order[b] = (ranked){ plan->buffers[b].offset, b };
    qsort(order, (size_t)count, sizeof *order, compare_offsets);
    for (int32_t rank = 0, lowest = 0; rank < count; rank++) {
        if (order[rank].offset != order[lowest].offset) lowest = rank;
        live->buffer_of[rank] = order[rank].buffer;
        live->rank_of[order[rank].buffer] = rank;
        live->lowest[order[rank].buffer] = lowest;
    }
}

hr_status hr_judged_live_open(const hr_judged_plan *plan, hr_judged_live *live)
{
    const size_t count = (size_t)plan->buffer_count + 1;
    *live = (hr_judged_live){ .levels = 0 };
    ranked *order = calloc(count, sizeof *order);
    live->buffer_of = calloc(count, sizeof *live->buffer_of);
    live->rank_of = calloc(count, sizeof *live->rank_of);
    live->lowest = calloc(count, sizeof *live->lowest);
    bool all = order && live->buffer_of && live->rank_of && live->lowest;
    for (size_t words = count; all && (words > 1 || !live->levels);) {
        words = (words + WORD_BITS - 1) / WORD_BITS;
        live->words[live->levels] = calloc(words + 1, sizeof *live->words[0]);
        all = live->words[live->levels++];
    }
    if (all) rank_all(plan, order, live);
    free(order);
    if (all) return HR_OK;
    return hr_fail(plan->err, HR_FAILURE, "plan file: out of memory for %zu buffers", count - 1);
}

void hr_judged_live_close(hr_judged_live *live)
{
    free(live->buffer_of);
    free(live->rank_of);
    free(live->lowest);
    for (int32_t i = 0; i < live->levels; i++) free(live->words[i]);
    *live = (hr_judged_live){ .levels = 0 };
}

static uint64_t bit_of(int32_t rank)
{
    return UINT64_C(1) << (rank % WORD_BITS);
}

void hr_judged_live_add(hr_judged_live *live, int32_t buffer)
{
    int32_t rank = live->rank_of[buffer];
    for (int32_t i = 0; i < live->levels; i++, rank /= WORD_BITS)
        live->words[i][rank / WORD_BITS] |= bit_of(rank);
}

void hr_judged_live_remove(hr_judged_live *live, int32_t buffer)
{
    int32_t rank = live->rank_of[buffer];
    for (int32_t i = 0; i < live->levels; i++, rank /= WORD_BITS)
        if (live->words[i][rank / WORD_BITS] &= ~bit_of(rank)) return;
}

int32_t hr_judged_live_lowest(const hr_judged_live *live, int32_t buffer)
{
    return live->lowest[buffer];
}

/* Follows the bitmaps down from bit `at` of level `level` to its lowest or highest rank. */
static int32_t descend(const hr_judged_live *live, int32_t level, int32_t at, bool lowest)
{
    for (; level > 0; level--) {
        const uint64_t word = live->words[level - 1][at];
        at = at * WORD_BITS +
             (lowest ? __builtin_ctzll(word) : WORD_BITS - 1 - __builtin_clzll(word));
    }
    return live->buffer_of[at];
}

int32_t hr_judged_live_above(const hr_judged_live *live, int32_t rank)
{
    int32_t at = rank; /* the first bit to consider; it may be in the empty word behind the last */
    for (int32_t i = 0; i < live->levels; i++, at = at / WORD_BITS + 1) {
        const uint64_t word = live->words[i][at / WORD_BITS] & ~(bit_of(at) - 1);
        if (!word) continue;
        return descend(live, i, at / WORD_BITS * WORD_BITS + __builtin_ctzll(word), true);
    }
    return -1;
}

int32_t hr_judged_live_below(const hr_judged_live *live, int32_t rank)
{
    int32_t at = rank; /* bits below it are considered */
    for (int32_t i = 0; i < live->levels; i++, at /= WORD_BITS) {
        const uint64_t word = live->words[i][at / WORD_BITS] & (bit_of(at) - 1);
        if (!word) continue;
        return descend(live, i, at / WORD_BITS * WORD_BITS + WORD_BITS - 1 - __builtin_clzll(word),
                       false);
    }
    return -1;
}
