/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_pack.h - a row-major matrix in the layout that products read: for products
 * between values of a program, neither of which is a weight. */
#ifndef HR_OPS_LINEAR_PACK_H
#define HR_OPS_LINEAR_PACK_H

#include <string.h>

#include "base/checked.h"
#include "base/f16.h"
#include "ops/call.h"

/* A line of a panel: from a row, or of bf16 from two. Columns from `count` on are zero, as is a row
 * that is null. */
static inline void hr_linear_pack_wide(const uint32_t *row, int64_t count, uint32_t *line)
{
    enum { WIDTH = HR_PANEL_WIDTH };
    if (count == WIDTH) memcpy(line, row, WIDTH * sizeof *line);
    else
        for (int64_t c = 0; c < WIDTH; c++) line[c] = c < count ? row[c] : 0;
}

static inline void hr_linear_pack_pair(const uint16_t *row, const uint16_t *next, int64_t count,
                                       uint32_t *line)
{
    enum { WIDTH = HR_PANEL_WIDTH };
    if (count == WIDTH && next)
        for (int64_t c = 0; c < WIDTH; c++) line[c] = row[c] | (uint32_t)next[c] << 16;
    else
        for (int64_t c = 0; c < WIDTH; c++) {
            line[c] = c < count ? row[c] : 0;
            if (c < count && next) line[c] |= (uint32_t)next[c] << 16;
        }
}

static inline void hr_linear_pack_half(const uint16_t *row, int64_t count, uint32_t *line)
{
    float values[HR_PANEL_WIDTH] = { 0 };
    for (int64_t c = 0; c < count; c++) values[c] = hr_f16_to_f32(row[c]);
    memcpy(line, values, sizeof values);
}

/* The share of a thread: copies [K, N] in rows of `stride` elements to hr_linear_layout: HR_PANEL
 * (fp32, fp16) or HR_PANEL_PAIR (bf16). */
static inline void hr_linear_pack(const hr_call *call, hr_dtype dtype, const void *from,
                                  int64_t stride, int64_t K, int64_t N, void *to)
{
    enum { WIDTH = HR_PANEL_WIDTH };
    const int64_t rows = dtype == HR_BF16 ? 2 : 1;
    int64_t first, last;
    hr_share((N + WIDTH - 1) / WIDTH, call->thread, call->threads, &first, &last);
    for (int64_t panel = first; panel < last; panel++) {
        const int64_t n = panel * WIDTH, count = hr_min(WIDTH, N - n);
        uint32_t *line = (uint32_t *)to + panel * ((K + rows - 1) / rows) * WIDTH;
        for (int64_t k = 0; k < K; k += rows, line += WIDTH) {
            const int64_t at = k * stride + n;
            const uint16_t *row = (const uint16_t *)from + at;
            if (dtype == HR_F16) hr_linear_pack_half(row, count, line);
            else if (dtype == HR_F32) hr_linear_pack_wide((const uint32_t *)from + at, count, line);
            else hr_linear_pack_pair(row, k + 1 < K ? row + stride : NULL, count, line);
        }
    }
}

#endif
