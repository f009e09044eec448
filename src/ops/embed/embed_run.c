/* SPDX-License-Identifier: Apache-2.0 */
/* ops/embed/embed_run.c - shares the embedding among threads: rows forward, columns backward, so
 * that each sum over tokens is one thread's, in order. */
#include <string.h>

#include "base/checked.h"
#include "ops/element.h"
#include "ops/embed/embed.h"
#include "ops/kernels.h"

enum { COLUMN_UNIT = 16 /* a cache line of sums */ };

void hr_embed_run(const hr_call *call)
{
    const hr_embed_attr *attr = call->attr;
    const int64_t D = attr->D;
    const int32_t *ids = call->in[0];
    const float *words = call->in[1], *positions = call->in[2];
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const int64_t position = (call->row_first + r) % attr->T;
        call->kernels->embed.fwd(words + ids[r] * D, positions ? positions + position * D : NULL,
                                 hr_element_at(call->out[0], r * D, call->dtype), D, call->dtype);
    }
}

static void clear_columns(float *table, int64_t rows, int64_t D, int64_t first, int64_t last)
{
    for (int64_t r = 0; r < rows; r++)
        memset(table + r * D + first, 0, (size_t)(last - first) * sizeof *table);
}

void hr_embed_bwd_run(const hr_call *call)
{
    const hr_embed_attr *attr = call->attr;
    const int64_t D = attr->D;
    const int32_t *ids = call->in[0];
    float *words = call->out[0], *positions = call->out[1];
    int64_t first, last;
    hr_share((D + COLUMN_UNIT - 1) / COLUMN_UNIT, call->thread, call->threads, &first, &last);
    first *= COLUMN_UNIT;
    last = hr_min(last * COLUMN_UNIT, D);
    if (first >= last) return;
    if (call->clear & 1u << 0) clear_columns(words, attr->V, D, first, last);
    if (positions && call->clear & 1u << 1) clear_columns(positions, attr->T, D, first, last);
    for (int64_t r = 0; r < call->rows; r++) {
        const void *dy = hr_element_at(call->in[1], r * D + first, call->dtype);
        const int64_t position = (call->row_first + r) % attr->T;
        call->kernels->embed.bwd(words + ids[r] * D + first, dy, last - first, call->dtype);
        if (positions)
            call->kernels->embed.bwd(positions + position * D + first, dy, last - first,
                                     call->dtype);
    }
}
