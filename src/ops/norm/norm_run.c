/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm_run.c - splits LayerNorm and RMSNorm over threads: forward by groups; backward by
 * blocks of 64 tokens with their sums in scratch, then by columns, which add the blocks in
 * order. */
#include <stdbool.h>
#include <string.h>

#include "base/checked.h"
#include "ops/cpu_run.h"
#include "ops/element.h"
#include "ops/kernels.h"
#include "ops/norm/norm.h"

enum { BLOCK = HR_NORM_BLOCK_TOKENS, COLUMN_UNIT = 16 /* a cache line of sums */ };

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

/* Block numbers run through the whole batch; each sequence starts a new block. */
static int64_t block_of_row(int64_t row, int64_t T)
{
    return row / T * hr_norm_blocks(T) + row % T / BLOCK;
}

static int64_t block_first_row(int64_t block, int64_t T)
{
    const int64_t count = hr_norm_blocks(T);
    return block / count * T + block % count * BLOCK;
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
        const int64_t start = block_first_row(block, attr->T) - call->row_first;
        const int64_t end = block_first_row(block + 1, attr->T) - call->row_first;
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

/* sum[c] += partial[k * stride + c], k in order, for this thread's columns. */
static void add_blocks(float *sum, const float *partial, int64_t block_count, int64_t stride,
                       int64_t first, int64_t last, bool clear)
{
    if (clear) memset(sum + first, 0, (size_t)(last - first) * sizeof *sum);
    for (int64_t k = 0; k < block_count; k++)
        for (int64_t c = first; c < last; c++) sum[c] += partial[k * stride + c];
}

void hr_norm_bwd_run(const hr_call *call)
{
    const hr_norm_attr *attr = call->attr;
    const int64_t D = attr->D, stats = hr_norm_stats(attr),
                  row_last = call->row_first + call->rows - 1;
    const int64_t block_first = block_of_row(call->row_first, attr->T);
    const int64_t block_count = call->rows > 0 ? block_of_row(row_last, attr->T) - block_first + 1
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
            add_blocks(call->out[1 + k], partial + k * D, block_count, stats * D, first, last,
                       call->clear & 2u << k);
}

const hr_op_run hr_norm_cpu_run = { hr_norm_run, 1 };
const hr_op_run hr_norm_bwd_cpu_run = { hr_norm_bwd_run, 2 };
