/* SPDX-License-Identifier: Apache-2.0 */
/* ops/magnitude/magnitude_run.c - splits lengths over threads by panels of columns; magnitudes by
 * rows; their backward pass by blocks of 64 tokens with their sums in scratch, then by columns. */
#include <math.h>

#include "base/checked.h"
#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"
#include "ops/magnitude/magnitude.h"
#include "ops/row_blocks_scratch.h"

enum { STRIP = 64, RANKS = 64, WIDTH = HR_PANEL_WIDTH };

/* to[i, j] = matrix[k + i, n + j] for a part [rows, columns]; columns past the matrix are 0. */
static void copy_part(const hr_call *call, const void *matrix, int64_t K, int64_t N, int64_t k,
                      int64_t n, int64_t rows, int64_t columns, float *to)
{
    const hr_length_attr *attr = call->attr;
    const hr_layout layout = (hr_layout)attr->layout;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[i * columns + j] = n + j < N
                                      ? hr_element_get(matrix,
                                                       hr_layout_index(layout, K, N, k + i, n + j),
                                                       hr_product_dtype(call->dtype))
                                      : 0;
}

/* The lengths of the columns of one panel. */
static void panel(const hr_call *call, int64_t n)
{
    const hr_length_attr *attr = call->attr;
    float w[STRIP * WIDTH], a[STRIP * RANKS], b[RANKS * WIDTH];
    float *lengths = call->out[call->out[0] == NULL];
    double sums[WIDTH] = { 0 };
    for (int64_t k = 0; k < attr->K; k += STRIP) {
        const int64_t rows = hr_min(STRIP, attr->K - k);
        copy_part(call, call->in[0], attr->K, attr->N, k, n, rows, WIDTH, w);
        for (int64_t r = 0; r < attr->R; r += RANKS) {
            const int64_t ranks = hr_min(RANKS, attr->R - r);
            copy_part(call, call->in[1], attr->K, attr->R, k, r, rows, ranks, a);
            copy_part(call, call->in[2], attr->R, attr->N, r, n, ranks, WIDTH, b);
            call->kernels->magnitude.strip(w, a, ranks, b, rows, ranks, attr->scale);
        }
        for (int64_t c = 0; c < WIDTH; c++) {
            float sum = 0;
            for (int64_t i = 0; i < rows; i++) sum += w[i * WIDTH + c] * w[i * WIDTH + c];
            sums[c] += (double)sum;
        }
    }
    for (int64_t c = 0; c < hr_min(WIDTH, attr->N - n); c++) {
        const double length = sqrt(sums[c]);
        lengths[n + c] = length > 0 ? (float)(1 / length) : 0;
        for (int32_t i = 2; i < 4; i++) {
            float *m = call->out[i];
            if (m && isnan(m[n + c])) m[n + c] = (float)length;
        }
    }
}

void hr_length_run(const hr_call *call)
{
    const hr_length_attr *attr = call->attr;
    int64_t first, last;
    hr_share((attr->N + WIDTH - 1) / WIDTH, call->thread, call->threads, &first, &last);
    for (int64_t p = first; p < last; p++) panel(call, p * WIDTH);
}

static void *at_row(void *rows, int64_t row, const hr_call *call)
{
    const hr_magnitude_attr *attr = call->attr;
    return rows ? hr_element_at(rows, row * attr->N, call->dtype) : NULL;
}

void hr_magnitude_run(const hr_call *call)
{
    const hr_magnitude_attr *attr = call->attr;
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    call->kernels->magnitude.fwd(at_row(call->in[0], first, call), call->in[1], call->in[2],
                                 call->in[3], at_row(call->in[4], first, call),
                                 at_row(call->out[0], first, call), last - first, attr->N,
                                 call->dtype);
}

static void bwd_blocks(const hr_call *call, int64_t block_first, int64_t block_count)
{
    const hr_magnitude_attr *attr = call->attr;
    int64_t first, last;
    hr_share(block_count, call->thread, call->threads, &first, &last);
    for (int64_t k = first; k < last; k++) {
        const int64_t block = block_first + k;
        const int64_t start = hr_row_block_first_row(block, attr->T) - call->row_first;
        const int64_t end = hr_row_block_first_row(block + 1, attr->T) - call->row_first;
        const int64_t row = hr_max(start, 0), count = hr_min(end, call->rows) - row;
        call->kernels->magnitude.bwd(
            at_row(call->in[0], row, call), at_row(call->in[1], row, call), call->in[2],
            call->in[3], at_row(call->in[4], row, call), at_row(call->out[0], row, call),
            (float *)call->scratch + k * attr->N, count, attr->N, call->dtype);
    }
}

void hr_magnitude_bwd_run(const hr_call *call)
{
    const hr_magnitude_attr *attr = call->attr;
    const int64_t N = attr->N, row_last = call->row_first + call->rows - 1;
    const int64_t block_first = hr_row_block_of(call->row_first, attr->T);
    const int64_t blocks = call->rows > 0 ? hr_row_block_of(row_last, attr->T) - block_first + 1
                                          : 0;
    int64_t first, last;
    if (call->phase == 0) {
        bwd_blocks(call, block_first, blocks);
        return;
    }
    hr_share((N + WIDTH - 1) / WIDTH, call->thread, call->threads, &first, &last);
    first *= WIDTH;
    last = hr_min(last * WIDTH, N);
    if (first < last && call->out[1])
        hr_row_blocks_add(call->out[1], call->scratch, blocks, N, first, last, call->clear & 2u);
}

const hr_op_run hr_length_cpu_run = { hr_length_run, 1 };
const hr_op_run hr_magnitude_cpu_run = { hr_magnitude_run, 1 };
const hr_op_run hr_magnitude_bwd_cpu_run = { hr_magnitude_bwd_run, 2 };
