/* SPDX-License-Identifier: Apache-2.0 */
/* ops/choose/choose_run.c - probabilities of a tile of queries, scores of blocks, and the best. */
#include "base/assert.h"
#include "base/element.h"
#include "ops/choose/choose_scratch.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"

/* Scores that are compared at a time: a constant, so that compilers make vectors of them. */
enum { AHEAD = 16 };

/* How often the score of a block has each probability: p[apart j - (overlap - 1) + k] for the pairs
 * of a token start m of the block and a key n token starts before it. */
static void weigh(const hr_choose_attr *attr, float *weights)
{
    const int64_t apart = attr->block / attr->stride, overlap = attr->length / attr->stride;
    for (int64_t k = 0; k < apart + overlap - 1; k++) {
        const int64_t first = hr_max(k - (overlap - 1), 0), last = hr_min(k, apart - 1);
        weights[k] = (float)(last - first + 1);
    }
}

/* The scores of blocks [0, candidates) from the probabilities of `keys` compressed keys. */
static void score_blocks(const hr_choose_attr *attr, const float *p, int64_t keys,
                         int64_t candidates, const float *weights, float *scores)
{
    const int64_t apart = attr->block / attr->stride, overlap = attr->length / attr->stride;
    for (int64_t j = 0; j < candidates; j++) {
        const int64_t at = apart * j - (overlap - 1);
        const int64_t first = hr_max(-at, 0), last = hr_min(apart + overlap - 1, keys - at);
        float score = 0;
        for (int64_t k = first; k < last; k++) score += weights[k] * p[at + k];
        scores[j] = score;
    }
}

/* Puts block j into a list that is sorted by falling score, and of equal ones by number; keeps the
 * first `room`. Blocks come in ascending order. */
static int64_t insert(const float *scores, int64_t j, int64_t room, uint16_t *best, int64_t count)
{
    int64_t at = count;
    if (count == room && scores[best[count - 1]] >= scores[j]) return count;
    if (count == room) at = --count;
    while (at > 0 && scores[best[at - 1]] < scores[j]) {
        best[at] = best[at - 1];
        at--;
    }
    best[at] = (uint16_t)j;
    return count + 1;
}

/* Whether any of the next scores is above one that is kept. */
static bool any_above(const float *restrict scores, float least)
{
    int32_t above = 0;
    for (int64_t l = 0; l < AHEAD; l++) above |= scores[l] > least;
    return above != 0;
}

/* The best `room` of blocks [first, last), by falling score. Returns how many there are. */
static int64_t best_of(const float *scores, int64_t first, int64_t last, int64_t room,
                       uint16_t *best)
{
    int64_t found = 0, j = first;
    if (room == 0) return 0;
    for (; j < last; j++) {
        while (found == room && j + AHEAD <= last &&
               !any_above(scores + j, scores[best[found - 1]]))
            j += AHEAD;
        if (j < last) found = insert(scores, j, room, best, found);
    }
    return found;
}

/* The blocks of query t, ascending. */
static void choose(const hr_choose_attr *attr, const float *scores, int64_t t, uint16_t *blocks)
{
    const int64_t candidates = t / attr->block + 1, count = hr_min(attr->count, candidates);
    const int64_t first = hr_min(attr->first, candidates);
    const int64_t local = hr_max(candidates - attr->local, first); /* the first of the last ones */
    const int64_t room = count - first - (candidates - local);
    uint16_t best[HR_CHOOSE_COUNT_MOST];
    const int64_t found = best_of(scores, first, local, room, best);
    int64_t at = 0;
    for (int64_t i = 1; i < found; i++) /* by number */
        for (int64_t k = i; k > 0 && best[k - 1] > best[k]; k--) {
            const uint16_t before = best[k - 1];
            best[k - 1] = best[k];
            best[k] = before;
        }
    for (int64_t j = 0; j < first; j++) blocks[at++] = (uint16_t)j;
    for (int64_t i = 0; i < found; i++) blocks[at++] = best[i];
    for (int64_t j = local; j < candidates; j++) blocks[at++] = (uint16_t)j;
    while (at < attr->count) blocks[at++] = HR_ATTENTION_NO_BLOCK;
}

/* The position of the first row of a call in its sequence. */
static int64_t position_of(const hr_call *call)
{
    const hr_choose_attr *attr = call->attr;
    const int32_t *cached = call->in[3];
    return cached ? *cached + call->row_first : call->row_first % attr->T;
}

static void run_tile(const hr_call *call, const choose_room *room, int64_t sequence, int64_t group,
                     int64_t first, int64_t last)
{
    const hr_choose_attr *attr = call->attr;
    const int64_t heads = attr->H / attr->G, head = group * heads, K = attr->head_width;
    const int64_t row = sequence * attr->T + first - position_of(call);
    const int64_t width = choose_row(attr);
    const int64_t q = row * attr->q_width + attr->q_offset + head * attr->q_head_stride;
    const int64_t k = sequence * attr->T * attr->k_width + group * K;
    const hr_attention_mask mask = hr_choose_mask(attr);
    const hr_attention_scores_task task = {
        .head = { .q = { hr_element_at(call->in[0], q, call->dtype), attr->q_width, 0, 0 },
                  .k = { hr_element_at(call->in[1], k, call->dtype), attr->G * K, 0, 0 },
                  .lse = call->in[2] ? (float *)call->in[2] + row * attr->H + head : NULL,
                  .lse_stride = attr->H,
                  .query = first,
                  .length = last - first,
                  .head_width = attr->head_width,
                  .dtype = call->dtype,
                  .mask = mask,
                  .scale = attr->scale,
                  .keep_scale = 1,
                  .scratch = room->kernel },
        .heads = heads,
        .q_head_stride = attr->q_head_stride,
        .sums = room->sums,
        .sum_row = width
    };
    call->kernels->attention.scores[call->dtype](&task);
    for (int64_t t = first; t < last; t++) {
        score_blocks(attr, room->sums + (t - first) * width, hr_attention_keys_seen(&mask, t),
                     t / attr->block + 1, room->weights, room->scores);
        choose(attr, room->scores, t,
               (uint16_t *)call->out[0] + ((row + t - first) * attr->G + group) * attr->count);
    }
}

void hr_choose_run(const hr_call *call)
{
    const hr_choose_attr *attr = call->attr;
    const int64_t tile = choose_tile(attr), sequences = (call->rows + attr->T - 1) / attr->T;
    choose_room room;
    int64_t unit = 0;
    uint8_t *scratch = call->scratch;
    const int64_t position = position_of(call);
    HR_ASSERT(attr->count <= HR_CHOOSE_COUNT_MOST);
    HR_ASSERT(call->in[3] || position % HR_PART_ROWS == 0);
    HR_ASSERT(position == 0 || position + call->rows <= attr->T);
    (void)choose_place(scratch + call->thread * choose_place(NULL, attr, &room), attr, &room);
    weigh(attr, room.weights);
    for (int64_t q = 0; q < sequences; q++) {
        const int64_t end = position + hr_min(attr->T, call->rows - q * attr->T);
        for (int64_t group = 0; group < attr->G; group++)
            for (int64_t first = position; first < end; first += tile)
                if (unit++ % call->threads == call->thread)
                    run_tile(call, &room, q, group, first, hr_min(first + tile, end));
    }
}

const hr_op_run hr_choose_cpu_run = { hr_choose_run, 1, NULL };
