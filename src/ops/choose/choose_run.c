/* SPDX-License-Identifier: Apache-2.0 */
/* ops/choose/choose_run.c - probabilities of a tile of queries, scores of blocks, and the best. */
#include "base/assert.h"
#include "base/element.h"
#include "ops/choose/choose_scratch.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"

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

/* The blocks of query t, ascending. */
static void choose(const hr_choose_attr *attr, const hr_choose_kernels *kernels,
                   const float *scores, int64_t t, uint16_t *blocks)
{
    const int64_t candidates = t / attr->block + 1, count = hr_min(attr->count, candidates);
    const int64_t first = hr_min(attr->first, candidates);
    const int64_t local = hr_max(candidates - attr->local, first); /* the first of the last ones */
    int64_t at = 0;
    for (int64_t j = 0; j < first; j++) blocks[at++] = (uint16_t)j;
    at += kernels->best(scores, first, local, count - first - (candidates - local), blocks + at);
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
    const hr_choose_kernels *kernels = &call->kernels->choose;
    const hr_choose_sum sum = { attr->block / attr->stride, attr->length / attr->stride,
                                room->weights };
    call->kernels->attention.scores[call->dtype](&task);
    for (int64_t t = first; t < last; t++) {
        kernels->score(&sum, room->sums + (t - first) * width, hr_attention_keys_seen(&mask, t),
                       t / attr->block + 1, room->scores);
        choose(attr, kernels, room->scores, t,
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
