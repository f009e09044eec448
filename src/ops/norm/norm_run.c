/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm_run.c - splits LayerNorm and RMSNorm over threads: forward by groups; backward by
 * blocks of 64 tokens with their sums in scratch, then by columns, which add the blocks in
 * order. */
#include "base/checked.h"
#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"
#include "ops/norm/norm.h"
#include "ops/row_blocks_scratch.h"

enum { COLUMN_UNIT = 16 /* a cache line of sums */ };

void hr_norm_run(const hr_call *call)
{
    const hr_norm_attr *attr = call->attr;
    const int64_t D = attr->D;
    int64_t first, last;
    hr_share(call->rows * attr->groups, call->thread, call->threads, &first, &last);
    float *stat = call->out[1];
    call->kernels->norm.fwd(hr_element_at(call->in[0], first * D, call->dtype), call->in[1],
                            call->in[2], hr_element_at(call->out[0], first * D, call->dtype),
                            stat ? stat + hr_norm_stats(attr) * first : NULL, last - first, attr,
                            call->dtype);
}

static void bwd_blocks(const hr_call *call, int64_t block_first, int64_t block_count)
{
    const hr_norm_attr *attr = call->attr;
    const int64_t D = attr->D, stats = hr_norm_stats(attr);
    const float *stat = call->in[2];
    const void *addend = call->in[4];
    int64_t first, last;
    hr_share(block_count, call->thread, call->threads, &first, &last);
    for (int64_t k = first; k < last; k++) {
        const int64_t block = block_first + k;
        const int64_t start = hr_row_block_first_row(block, attr->T) - call->row_first;
        const int64_t end = hr_row_block_first_row(block + 1, attr->T) - call->row_first;
        const int64_t row = hr_max(start, 0), count = hr_min(end, call->rows) - row;
        const int64_t group = row * attr->groups, at = group * D;
        call->kernels->norm.bwd(hr_element_at(call->in[0], at, call->dtype),
                                hr_element_at(call->in[1], at, call->dtype), stat + stats * group,
                                call->in[3], addend ? hr_element_at(addend, at, call->dtype) : NULL,
                                hr_element_at(call->out[0], at, call->dtype),
                                (float *)call->scratch + k * stats * D, count * attr->groups, attr,
                                call->dtype);
    }
}

void hr_norm_bwd_run(const hr_call *call)
{
    const hr_norm_attr *attr = call->attr;
    const int64_t D = attr->D, stats = hr_norm_stats(attr),
                  row_last = call->row_first + call->rows - 1;
    const int64_t block_first = hr_row_block_of(call->row_first, attr->T);
    const int64_t block_count = call->rows > 0
                                    ? hr_row_block_of(row_last, attr->T) - block_first + 1
                                    : 0;
    if (call->phase == 0) {
        bwd_blocks(call, block_first, block_count);
        return;
    }
    int64_t first, last;
    hr_share((D + COLUMN_UNIT - 1) / COLUMN_UNIT, call->thread, call->threads, &first, &last);
    first *= COLUMN_UNIT;
    last = hr_min(last * COLUMN_UNIT, D);
    const float *partial = call->scratch;
    if (first >= last) return;
    for (int32_t k = 0; k < stats; k++)
        if (call->out[1 + k])
            hr_row_blocks_add(call->out[1 + k], partial + k * D, block_count, stats * D, first,
                              last, call->clear & 2u << k);
}

const hr_op_run hr_norm_cpu_run = { hr_norm_run, 1 };
const hr_op_run hr_norm_bwd_cpu_run = { hr_norm_bwd_run, 2 };
