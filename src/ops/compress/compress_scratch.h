/* SPDX-License-Identifier: Apache-2.0 */
/* ops/compress/compress_scratch.h - chunks of rows of y, and the scratch of a call. */
#ifndef HR_OPS_COMPRESS_SCRATCH_H
#define HR_OPS_COMPRESS_SCRATCH_H

#include "base/checked.h"
#include "ops/compress/compress.h"
#include "ops/linear/linear_scratch.h"

/* Rows that a thread has at a time, and rows of one product for the gradient of w1. */
enum { COMPRESS_ROWS = 192, COMPRESS_DW_ROWS = 512 };

/* Offsets: of the call, then of one thread, after those of the call. */
typedef struct {
    int64_t hidden, d_hidden, db1, gathered[2], call_bytes; /* backward */
    int64_t wide, narrow, sums, room, thread_bytes;
} compress_layout;

static inline int64_t compress_take(int64_t *at, int64_t bytes)
{
    const int64_t taken = *at;
    *at += hr_round_up(bytes, 64);
    return taken;
}

/* Rows of y of a call. */
static inline int64_t compress_rows(const hr_compress_attr *attr, int64_t rows)
{
    const int64_t whole = rows / attr->T, rest = rows % attr->T;
    return attr->G * (whole * hr_compress_count(attr, attr->T) + hr_compress_count(attr, rest));
}

static inline compress_layout compress_lay_out(const hr_compress_attr *attr, int64_t rows,
                                               bool backward)
{
    const int64_t K = attr->head_width, U = attr->length * K, M = attr->hidden;
    const int64_t all = compress_rows(attr, rows), word = 4;
    compress_layout l = { 0 };
    int64_t at = 0;
    if (M == 0) return l;
    if (backward) {
        l.hidden = compress_take(&at, all * M * word);
        l.d_hidden = compress_take(&at, all * M * word);
        l.db1 = compress_take(&at, (rows + attr->T - 1) / attr->T * M * word);
        for (int32_t i = 0; i < 2; i++)
            l.gathered[i] = compress_take(&at, COMPRESS_DW_ROWS * U * word);
    }
    l.call_bytes = at;
    int64_t room = hr_max(hr_linear_lay_out_mm(COMPRESS_ROWS, U, M).bytes,
                          hr_linear_lay_out_mm(COMPRESS_ROWS, M, K).bytes);
    if (backward) {
        room = hr_max(room, hr_linear_lay_out_mm(COMPRESS_ROWS, K, M).bytes);
        room = hr_max(room, hr_linear_lay_out_mm(COMPRESS_ROWS, M, U).bytes);
        room = hr_max(room, hr_linear_lay_out_dw(U, M).bytes);
        room = hr_max(room, hr_linear_lay_out_dw(M, K).bytes);
    }
    at = 0;
    l.wide = compress_take(&at, COMPRESS_ROWS * U * word);
    l.narrow = compress_take(&at, COMPRESS_ROWS * hr_max(M, K) * word);
    if (backward)
        l.sums = compress_take(&at, (COMPRESS_ROWS / attr->G + 1 + attr->length / attr->stride) *
                                        attr->stride * attr->G * K * word);
    l.room = compress_take(&at, room);
    l.thread_bytes = at;
    return l;
}

#endif
