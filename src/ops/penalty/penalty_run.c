/* SPDX-License-Identifier: Apache-2.0 */
/* ops/penalty/penalty_run.c - plain loops: parameters of adapters are small, and rows are as narrow
 * as their rank. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/penalty/penalty.h"
#include "ops/row_blocks_scratch.h"

/* ---- lengths of parameters */

static void square_blocks(const hr_call *call, int64_t blocks)
{
    const hr_penalty_attr *attr = call->attr;
    const float *w = call->in[0];
    double *squares = call->scratch;
    int64_t first, last;
    hr_share(blocks, call->thread, call->threads, &first, &last);
    for (int64_t b = first; b < last; b++) {
        const int64_t end = hr_min((b + 1) * HR_PENALTY_BLOCK, attr->elements);
        double sum = 0;
        for (int64_t i = b * HR_PENALTY_BLOCK; i < end; i++) sum += (double)w[i] * (double)w[i];
        squares[b] = sum;
    }
}

void hr_penalty_run(const hr_call *call)
{
    const hr_penalty_attr *attr = call->attr;
    const int64_t blocks = hr_round_up(attr->elements, HR_PENALTY_BLOCK) / HR_PENALTY_BLOCK;
    const float *w = call->in[0];
    const double *squares = call->scratch;
    float *dw = call->out[0];
    double square = 0;
    int64_t first, last;
    if (call->phase == 0) {
        square_blocks(call, blocks);
        return;
    }
    for (int64_t b = 0; b < blocks; b++) square += squares[b];
    const double *scale = call->in[1], length = sqrt(square);
    const float factor = length > 0 ? (float)(attr->weight * scale[1] / length) : 0;
    hr_share(attr->elements, call->thread, call->threads, &first, &last);
    for (int64_t i = first; i < last; i++) dw[i] += factor * w[i];
    if (call->thread == 0)
        ((double *)call->out[1])[attr->slot] = attr->weight * length * scale[1] / scale[0];
}

/* ---- lengths of outer products */

/* Element c of group j along index i: of Wa a column, of Wb a row. */
static int64_t place(const hr_gram_attr *attr, bool rows, int64_t c, int64_t i)
{
    return rows ? hr_layout_index((hr_layout)attr->layout, attr->N, attr->M, c, i)
                : hr_layout_index((hr_layout)attr->layout, attr->K, attr->N, i, c);
}

static double product(const hr_call *call, int32_t of, int64_t a, int64_t b)
{
    const hr_gram_attr *attr = call->attr;
    const bool rows = of == 1;
    const hr_dtype dtype = hr_product_dtype(call->dtype);
    double sum = 0;
    for (int64_t i = 0; i < (rows ? attr->M : attr->K); i++)
        sum += (double)hr_element_get(call->in[of], place(attr, rows, a, i), dtype) *
               (double)hr_element_get(call->in[of], place(attr, rows, b, i), dtype);
    return sum;
}

void hr_gram_run(const hr_call *call)
{
    const hr_gram_attr *attr = call->attr;
    float *gram = call->out[0];
    int64_t first, last;
    hr_share(attr->N, call->thread, call->threads, &first, &last);
    for (int64_t a = first; a < last; a++)
        for (int64_t c = 0; c < attr->R; c++) {
            const int64_t b = a / attr->R * attr->R + c;
            gram[a * attr->R + c] = (float)(product(call, 0, a, b) + product(call, 1, a, b));
        }
}

void hr_gram_bwd_run(const hr_call *call)
{
    const hr_gram_attr *attr = call->attr;
    const int64_t R = attr->R, length = attr->of_rows ? attr->M : attr->K;
    const hr_dtype dtype = hr_product_dtype(call->dtype);
    const float *dgram = call->in[1];
    float *dw = call->out[0];
    int64_t first, last;
    hr_share(length, call->thread, call->threads, &first, &last);
    for (int64_t i = first; i < last; i++)
        for (int64_t a = 0; a < attr->N; a++) {
            double sum = 0;
            for (int64_t c = 0; c < R; c++)
                sum += (double)dgram[a * R + c] *
                       (double)hr_element_get(call->in[0],
                                              place(attr, attr->of_rows, a / R * R + c, i), dtype);
            dw[place(attr, attr->of_rows, a, i)] += (float)(2 * sum);
        }
}

/* ---- rows */

/* Returns the value of one row. Writes its gradient, and adds i i' to the sums of its block. */
static double restrain_row(const hr_call *call, int64_t row, double factor, float *sums)
{
    const hr_restrain_attr *attr = call->attr;
    const int64_t R = attr->R, at = row * attr->N;
    const float *gram = call->in[1];
    double value = 0;
    for (int64_t a = 0; a < attr->N; a++) {
        const double ua = (double)hr_element_get(call->in[0], at + a, call->dtype);
        double sum = 0;
        for (int64_t c = 0; c < R; c++) {
            const double ub = (double)hr_element_get(call->in[0], at + a / R * R + c, call->dtype);
            sum += (double)gram[a * R + c] * ub;
            if (sums) sums[a * R + c] += (float)(factor * ua * ub);
        }
        value += ua * sum;
        if (call->out[1])
            hr_element_set(call->out[1], at + a, call->dtype, (float)(2 * factor * sum));
    }
    return attr->weight * value;
}

static void restrain_blocks(const hr_call *call, int64_t block_first, int64_t block_count)
{
    const hr_restrain_attr *attr = call->attr;
    const int64_t N = attr->N, size = N * attr->R;
    const int32_t *labels = call->in[2];
    const double factor = attr->weight * (call->in[3] ? *(const double *)call->in[3] : 1);
    double *values = call->scratch;
    float *partial = (float *)(values + call->rows);
    int64_t first, last;
    hr_share(block_count, call->thread, call->threads, &first, &last);
    for (int64_t k = first; k < last; k++) {
        const int64_t block = block_first + k;
        const int64_t start = hr_row_block_first_row(block, attr->T) - call->row_first;
        const int64_t end = hr_row_block_first_row(block + 1, attr->T) - call->row_first;
        float *sums = call->out[2] ? partial + k * size : NULL;
        if (sums) memset(sums, 0, (size_t)size * sizeof *sums);
        for (int64_t r = hr_max(start, 0); r < hr_min(end, call->rows); r++) {
            values[r] = labels[r] >= 0 ? restrain_row(call, r, factor, sums) : 0;
            if (labels[r] < 0 && call->out[1])
                memset(hr_element_at(call->out[1], r * N, call->dtype), 0,
                       (size_t)(N * hr_dtype_bytes(call->dtype)));
        }
    }
}

void hr_restrain_run(const hr_call *call)
{
    const hr_restrain_attr *attr = call->attr;
    const int64_t size = attr->N * attr->R, row_last = call->row_first + call->rows - 1;
    const int64_t block_first = hr_row_block_of(call->row_first, attr->T);
    const int64_t blocks = call->rows > 0 ? hr_row_block_of(row_last, attr->T) - block_first + 1
                                          : 0;
    const double *values = call->scratch;
    double *sums = call->out[0];
    int64_t first, last;
    if (call->phase == 0) {
        restrain_blocks(call, block_first, blocks);
        return;
    }
    hr_share(size, call->thread, call->threads, &first, &last);
    if (call->out[2])
        hr_row_blocks_add(call->out[2], (const float *)(values + call->rows), blocks, size, first,
                          last, call->clear & 1u << 2);
    if (call->thread != 0) return;
    if (call->clear & 1u << 0) memset(sums, 0, (size_t)attr->slots * sizeof *sums);
    for (int64_t r = 0; r < call->rows; r++) sums[attr->slot] += values[r];
}

const hr_op_run hr_penalty_cpu_run = { hr_penalty_run, 2 };
const hr_op_run hr_gram_cpu_run = { hr_gram_run, 1 };
const hr_op_run hr_gram_bwd_cpu_run = { hr_gram_bwd_run, 1 };
const hr_op_run hr_restrain_cpu_run = { hr_restrain_run, 2 };
