/* SPDX-License-Identifier: Apache-2.0 */
/* ops/product_norm/product_norm_run.c - the phases: for each pair of blocks of tokens the dot
 * products of their rows, piece by piece, then the sum of their products. */
#include <math.h>

#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/linear/linear_pack.h"
#include "ops/product_norm/product_norm_scratch.h"

enum { BLOCK = HR_PRODUCT_NORM_BLOCK, PIECE = HR_PRODUCT_NORM_PIECE };

/* A pair of blocks of tokens: j is i or before it. */
typedef struct {
    const hr_call *call;
    const hr_product_norm_attr *attr;
    hr_product_norm_scratch at;
    int64_t i, j, rows, columns;
    float *sums[2]; /* [rows, columns] */
} pair;

static int32_t phases_of_pair(const hr_product_norm_attr *attr)
{
    const int64_t pieces = hr_product_norm_pieces(attr->K) + hr_product_norm_pieces(attr->N);
    return (int32_t)(2 * pieces + 1);
}

static int32_t phases_of(const hr_call *call)
{
    const hr_product_norm_attr *attr = call->attr;
    const int64_t blocks = hr_product_norm_blocks(attr->rows);
    return (int32_t)(blocks * (blocks + 1) / 2 * phases_of_pair(attr)) + 1;
}

static pair pair_of(const hr_call *call, int64_t index)
{
    const hr_product_norm_attr *attr = call->attr;
    pair p = { .call = call, .attr = attr, .at = hr_product_norm_scratch_of(attr, call->threads) };
    while ((p.i + 1) * (p.i + 2) / 2 <= index) p.i++;
    p.j = index - p.i * (p.i + 1) / 2;
    p.rows = hr_product_norm_tokens(attr->rows, p.i);
    p.columns = hr_product_norm_tokens(attr->rows, p.j);
    for (int32_t m = 0; m < 2; m++) p.sums[m] = (float *)((char *)call->scratch + p.at.sums[m]);
    return p;
}

/* Copies a piece of the rows of block i as they are, and of block j as a weight. */
static void copy(const pair *p, int32_t matrix, int64_t first, int64_t count)
{
    const int64_t width = matrix ? p->attr->N : p->attr->K;
    const int64_t bytes = hr_dtype_bytes(p->call->dtype);
    const void *values = p->call->in[matrix];
    char *rows = (char *)p->call->scratch + p->at.rows;
    int64_t from, end;
    hr_share(p->rows, p->call->thread, p->call->threads, &from, &end);
    for (int64_t r = from; r < end; r++)
        memcpy(rows + r * count * bytes,
               hr_element_at(values, (p->i * BLOCK + r) * width + first, p->call->dtype),
               (size_t)(count * bytes));
    hr_linear_pack(p->call, p->call->dtype,
                   hr_element_at(values, p->j * BLOCK * width + first, p->call->dtype), width,
                   p->columns, count, (char *)p->call->scratch + p->at.panels);
}

/* Adds the products of the copied pieces to the sums, or begins them. */
static void multiply(const pair *p, int32_t matrix, int64_t first, int64_t count)
{
    const hr_linear_attr attr = { .K = p->columns, .N = count };
    hr_call call = *p->call;
    for (int32_t i = 0; i < HR_IN_MAX; i++) call.in[i] = NULL;
    call.in[0] = (char *)p->call->scratch + p->at.rows;
    call.in[1] = (char *)p->call->scratch + p->at.panels;
    call.in[4] = first ? p->sums[matrix] : NULL;
    call.out[0] = NULL;
    call.out[1] = p->sums[matrix];
    call.attr = &attr;
    call.rows = p->rows;
    call.scratch = (char *)p->call->scratch + p->at.product;
    hr_linear_dx_run(&call);
}

/* Adds the products of both sums to the part of each token. The pair (i, j) stands for (j, i),
 * too. */
static void add(const pair *p)
{
    const int32_t *ids = p->attr->K ? NULL : p->call->in[0];
    double *parts = (double *)((char *)p->call->scratch + p->at.parts);
    int64_t first, last;
    hr_share(p->rows, p->call->thread, p->call->threads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const float *x = p->sums[0] + r * p->columns, *dy = p->sums[1] + r * p->columns;
        double sum = 0;
        for (int64_t c = 0; c < p->columns && !ids; c++) sum += (double)x[c] * (double)dy[c];
        for (int64_t c = 0; c < p->columns && ids; c++)
            if (ids[p->i * BLOCK + r] == ids[p->j * BLOCK + c]) sum += (double)dy[c];
        if (p->i == 0) parts[r] = sum;
        else parts[r] += p->i == p->j ? sum : 2 * sum;
    }
}

/* Of rounded dot products the sum may be a little below 0. */
static void finish(const hr_call *call)
{
    const hr_product_norm_attr *attr = call->attr;
    const hr_product_norm_scratch at = hr_product_norm_scratch_of(attr, call->threads);
    const double *parts = (const double *)((const char *)call->scratch + at.parts);
    double sum = 0;
    if (call->thread != 0) return;
    for (int64_t r = 0; r < hr_min(attr->rows, BLOCK); r++) sum += parts[r];
    *(double *)call->out[0] = sum < 0 ? 0 : sum;
}

void hr_product_norm_run(const hr_call *call)
{
    const hr_product_norm_attr *attr = call->attr;
    const int32_t all = phases_of_pair(attr), phase = call->phase % all;
    const int64_t x_phases = 2 * hr_product_norm_pieces(attr->K);
    const int32_t matrix = phase >= x_phases;
    const int64_t width = matrix ? attr->N : attr->K;
    const int64_t first = (phase - (matrix ? x_phases : 0)) / 2 * PIECE;
    if (call->phase + 1 == phases_of(call)) {
        finish(call);
        return;
    }
    const pair p = pair_of(call, call->phase / all);
    if (phase + 1 == all) add(&p);
    else if (phase % 2) multiply(&p, matrix, first, hr_min(PIECE, width - first));
    else copy(&p, matrix, first, hr_min(PIECE, width - first));
}

const hr_op_run hr_product_norm_cpu_run = { hr_product_norm_run, 1, phases_of };
