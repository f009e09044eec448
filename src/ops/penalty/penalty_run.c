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

/* Elements that are read together: each of them is used in a tile of products. */
enum { GRAM_ROWS = 8, GRAM_COLUMNS = 16 };

/* Elements [first, first + count) of the groups of an operand along index i. */
static void read_along(const hr_call *call, int32_t of, bool rows, int64_t i, int64_t first,
                       int64_t count, double *to)
{
    const hr_dtype dtype = hr_product_dtype(call->dtype);
    for (int64_t k = 0; k < count; k++)
        to[k] = (double)hr_element_get(call->in[of], place(call->attr, rows, first + k, i), dtype);
}

/* sums[r][c] = the products of elements a + r and b + c, added along the other index in order. */
static void multiply(const hr_call *call, int32_t of, int64_t a, int64_t a_count, int64_t b,
                     int64_t b_count, double sums[GRAM_ROWS][GRAM_COLUMNS])
{
    const hr_gram_attr *attr = call->attr;
    double left[GRAM_ROWS] = { 0 }, right[GRAM_COLUMNS] = { 0 };
    memset(sums, 0, GRAM_ROWS * sizeof *sums);
    for (int64_t i = 0; i < (of == 1 ? attr->M : attr->K); i++) {
        read_along(call, of, of == 1, i, a, a_count, left);
        read_along(call, of, of == 1, i, b, b_count, right);
        for (int32_t r = 0; r < GRAM_ROWS; r++)
            for (int32_t c = 0; c < GRAM_COLUMNS; c++) sums[r][c] += left[r] * right[c];
    }
}

void hr_gram_run(const hr_call *call)
{
    const hr_gram_attr *attr = call->attr;
    const int64_t R = attr->R, tiles = (R + GRAM_ROWS - 1) / GRAM_ROWS;
    float *gram = call->out[0];
    double sums[2][GRAM_ROWS][GRAM_COLUMNS];
    int64_t first, last;
    hr_share(attr->N / R * tiles, call->thread, call->threads, &first, &last);
    for (int64_t t = first; t < last; t++) {
        const int64_t group = t / tiles * R, a = group + t % tiles * GRAM_ROWS;
        const int64_t rows = hr_min(GRAM_ROWS, group + R - a);
        for (int64_t b = 0; b < R; b += GRAM_COLUMNS) {
            const int64_t columns = hr_min(GRAM_COLUMNS, R - b);
            for (int32_t of = 0; of < 2; of++)
                multiply(call, of, a, rows, group + b, columns, sums[of]);
            for (int64_t r = 0; r < rows; r++)
                for (int64_t c = 0; c < columns; c++)
                    gram[(a + r) * R + b + c] = (float)(sums[0][r][c] + sums[1][r][c]);
        }
    }
}

/* Adds to GRAM_ROWS elements from `a` on, at most to the end of their group, along index i. */
static void add_gradient(const hr_call *call, int64_t group, int64_t a, int64_t i)
{
    const hr_gram_attr *attr = call->attr;
    const int64_t R = attr->R, rows = hr_min(GRAM_ROWS, group + R - a);
    const float *dgram = call->in[1];
    float *dw = call->out[0];
    double sums[GRAM_ROWS] = { 0 }, w[GRAM_COLUMNS];
    for (int64_t b = 0; b < R; b += GRAM_COLUMNS) {
        const int64_t columns = hr_min(GRAM_COLUMNS, R - b);
        read_along(call, 0, attr->of_rows, i, group + b, columns, w);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++)
                sums[r] += (double)dgram[(a + r) * R + b + c] * w[c];
    }
    for (int64_t r = 0; r < rows; r++)
        dw[place(attr, attr->of_rows, a + r, i)] += (float)(2 * sums[r]);
}

void hr_gram_bwd_run(const hr_call *call)
{
    const hr_gram_attr *attr = call->attr;
    int64_t first, last;
    hr_share(attr->of_rows ? attr->M : attr->K, call->thread, call->threads, &first, &last);
    for (int64_t i = first; i < last; i++)
        for (int64_t group = 0; group < attr->N; group += attr->R)
            for (int64_t a = group; a < group + attr->R; a += GRAM_ROWS)
                add_gradient(call, group, a, i);
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
