/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_pack.h - packs operands of products in the order of their use.
 *
 * Part of the vector kernel template. Include it after attention_words_*.h and definitions of
 * transpose_words() and WIDTH_STEP; packed head widths are multiples of WIDTH_STEP elements. */
#ifndef HR_OPS_ATTENTION_PACK_H
#define HR_OPS_ATTENTION_PACK_H

#include "ops/attention/attention_scratch.h"

enum { STRIP_ROW = HR_ATTENTION_HEAD_MAX / PAIR + ATTENTION_PAD };

VEC_INLINE int64_t packed_width(const hr_attention_task *task)
{
    return hr_round_up(task->head_width, WIDTH_STEP);
}

VEC_INLINE void store_words(uint32_t *at, vec_bits value)
{
    store_floats((float *)at, (vec)value);
}

/* Prefetches the row that is used ahead_rows later. Rows are short and far apart, which defeats the
 * hardware prefetcher. */
VEC_INLINE void prefetch_row(const hr_attention_task *task, hr_attention_rows rows, int64_t row)
{
    const char *at = row_of(rows, dtype_of(task), row + rows.ahead_rows);
    const int64_t bytes = task->head_width * hr_dtype_bytes(dtype_of(task));
    at += rows.ahead_elements * hr_dtype_bytes(dtype_of(task));
    for (int64_t line = 0; line < bytes; line += 64) vec_prefetch_later(at + line);
}

/* Sums (or maxima) over lanes for as many rows as a vector has lanes: element i of the result
 * belongs to parts[i]. Faster than a reduction per row. */
VEC_INLINE vec reduce_rows(const bool is_max, const vec parts[VEC_LANES])
{
    vec_bits line[VEC_LANES];
    UNROLL for (int i = 0; i < VEC_LANES; i++) line[i] = (vec_bits)parts[i];
    transpose_words(line);
    UNROLL for (int half = VEC_LANES / 2; half > 0; half /= 2) UNROLL for (int i = 0; i < half; i++)
        line[i] = (vec_bits)(is_max ? vec_max((vec)line[i], (vec)line[i + half])
                                    : vec_add((vec)line[i], (vec)line[i + half]));
    return (vec)line[0];
}

/* The rows that start at row `row`. */
VEC_INLINE hr_attention_rows rows_from(const hr_attention_task *task, hr_attention_rows rows,
                                       int64_t row)
{
    rows.first = hr_element_at(rows.first, row * rows.stride, dtype_of(task));
    return rows;
}

/* Packs rows as columns: [length / lanes][width / PAIR][lanes] words; zeros past length and
 * width. */
static void pack_columns(const hr_attention_task *task, hr_attention_rows rows, int64_t length,
                         uint32_t *out)
{
    const hr_dtype dtype = dtype_of(task);
    const int64_t words = packed_width(task) / PAIR;
    for (int64_t row = 0; row < attention_padded(length); row += VEC_LANES) {
        for (int64_t i = 0; i < VEC_LANES; i++) prefetch_row(task, rows, row + i);
        for (int64_t at = 0; at < words; at += VEC_LANES) {
            vec_bits line[VEC_LANES];
            UNROLL for (int64_t i = 0; i < VEC_LANES; i++) line[i] = load_words(
                row_of(rows, dtype, row + i), dtype, at, row + i < length ? task->head_width : 0);
            transpose_words(line);
            UNROLL for (int64_t i = 0; i < VEC_LANES; i++) if (at + i < words)
                store_words(out + row * words + (at + i) * VEC_LANES, line[i]);
        }
    }
}

/* Packs rows in panels that are `panel` words apart: [width / lanes][length / PAIR][lanes] words;
 * zeros past length and width. */
static void pack_rows(const hr_attention_task *task, hr_attention_rows rows, int64_t length,
                      int64_t panel, uint32_t *out)
{
    const hr_dtype dtype = dtype_of(task);
    const int64_t width = packed_width(task), lines = attention_padded(length) / PAIR;
    for (int64_t line = 0; line < lines; line++) {
        for (int64_t i = 0; i < PAIR; i++) prefetch_row(task, rows, PAIR * line + i);
        for (int64_t column = 0; column < width; column += VEC_LANES)
            store_words(out + column / VEC_LANES * panel + line * VEC_LANES,
                        load_line(rows, dtype, length, line, column, task->head_width));
    }
}

/* Copies `count` rows from `first` on, STRIP_ROW words apart; zeros from row `end` on, and past the
 * width. */
static void copy_rows(const hr_attention_task *task, hr_attention_rows rows, int64_t first,
                      int64_t count, int64_t end, uint32_t *out)
{
    const hr_dtype dtype = dtype_of(task);
    const int64_t words = packed_width(task) / PAIR;
    for (int64_t i = 0; i < count; i++) {
        prefetch_row(task, rows, first + i);
        for (int64_t at = 0; at < words; at += VEC_LANES)
            store_words(out + i * STRIP_ROW + at,
                        load_words(row_of(rows, dtype, first + i), dtype, at,
                                   first + i < end ? task->head_width : 0));
    }
}

/* Stores one row of sums, scaled and rounded once. */
VEC_INLINE void store_row(const hr_attention_task *task, hr_attention_rows rows, int64_t row,
                          const float *sums, float scale)
{
    const hr_dtype dtype = dtype_of(task);
    for (int64_t at = 0; at < task->head_width; at += VEC_LANES)
        store_elements((void *)row_of(rows, dtype, row), dtype, at, task->head_width,
                       vec_mul(vec_set(scale), load_floats(sums + at)));
}

#endif
