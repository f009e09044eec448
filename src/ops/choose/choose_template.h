/* SPDX-License-Identifier: Apache-2.0 */
/* ops/choose/choose_template.h - the best blocks without a sorted list: scores above the least that
 * is kept are collected, and when there is no more room for them, the best are kept. */
#include <string.h>

#include "ops/choose/choose_kernels.h"

/* p[4 l + i] in lane l of column i. */
enum { QUADS = 4 };

/* With four keys a block, and one before it: the blocks whose keys are all there. Returns how many
 * there are. */
static int64_t score_quads(const float *w, const float *p, int64_t count, float *scores)
{
    vec before = vec_set(0);
    int64_t j = 0;
    for (; j + VEC_LANES <= count; j += VEC_LANES) {
        vec column[QUADS];
        load_quads(p + QUADS * j, column);
        vec score = vec_mul(vec_set(w[0]), shifted(column[3], before));
        for (int i = 0; i < QUADS; i++)
            score = vec_add(score, vec_mul(vec_set(w[i + 1]), column[i]));
        vec_store_f32(scores + j, score, VEC_LANES);
        before = column[3];
    }
    return j;
}

static void score(const hr_choose_sum *sum, const float *p, int64_t keys, int64_t count,
                  float *scores)
{
    int64_t j = 0;
    if (sum->apart == QUADS && sum->overlap == 2)
        j = score_quads(sum->weights, p, keys / QUADS < count ? keys / QUADS : count, scores);
    for (; j < count; j++) scores[j] = hr_choose_score_of(sum, p, keys, j);
}

enum { AHEAD = 64, COLLECTED_MOST = HR_CHOOSE_COUNT_MOST + AHEAD };

/* Blocks by number, with their scores. */
typedef struct {
    int64_t count;
    float scores[COLLECTED_MOST + VEC_LANES];
    uint16_t blocks[COLLECTED_MOST];
} collection;

static int64_t count_above(const collection *c, float least)
{
    int64_t count = 0;
    for (int64_t at = 0; at < c->count; at += VEC_LANES)
        count += __builtin_popcount(
            vec_where_above(vec_load_f32(c->scores + at, VEC_LANES), vec_set(least)));
    return count;
}

static float float_of(int32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Keeps the best `room` of more. Returns the least score that no more than `room` exceed, or one
 * that just so many do: found by bisection of its bits, whose order is that of the numbers. */
static float keep(collection *c, int64_t room)
{
    int32_t low = 0, high = 0x7f800000; /* infinity */
    for (int64_t i = 0; i < VEC_LANES; i++) c->scores[c->count + i] = -1;
    int64_t above = 0;
    while (low < high && above != room) {
        const int32_t middle = low + (high - low) / 2;
        const int64_t found = count_above(c, float_of(middle));
        if (found > room) low = middle + 1;
        else high = middle, above = found;
    }
    const float least = float_of(high);
    int64_t kept = 0, equal = room - above;
    for (int64_t i = 0; i < c->count; i++) {
        const bool ties = c->scores[i] == least && equal > 0;
        if (!(c->scores[i] > least) && !ties) continue;
        equal -= ties;
        c->blocks[kept] = c->blocks[i];
        c->scores[kept++] = c->scores[i];
    }
    c->count = kept;
    return least;
}

static int64_t best(const float *scores, int64_t first, int64_t last, int64_t room, uint16_t *list)
{
    collection c;
    float least = -1;
    c.count = 0;
    if (room == 0) return 0;
    for (int64_t j = first; j < last; j += VEC_LANES) {
        const int64_t left = last - j;
        const uint32_t there = left < VEC_LANES ? (1u << left) - 1 : UINT32_MAX;
        const vec value = vec_load_f32(scores + j, left < VEC_LANES ? left : VEC_LANES);
        uint32_t above = vec_where_above(value, vec_set(least)) & there;
        for (; above; above &= above - 1) {
            const int64_t lane = __builtin_ctz(above);
            c.scores[c.count] = scores[j + lane];
            c.blocks[c.count++] = (uint16_t)(j + lane);
        }
        if (c.count + VEC_LANES > room + AHEAD) least = keep(&c, room);
    }
    if (c.count > room) (void)keep(&c, room);
    memcpy(list, c.blocks, (size_t)c.count * sizeof *list);
    return c.count;
}

void FILL(hr_choose_kernels *kernels)
{
    *kernels = (hr_choose_kernels){ score, best };
}
