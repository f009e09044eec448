/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_words_f32.h - a word is one fp32; bf16 is widened when packed.
 *
 * Part of the template of kernels that multiply in fp32. Include it after simd/vec_*.h. */
#ifndef HR_OPS_ATTENTION_WORDS_F32_H
#define HR_OPS_ATTENTION_WORDS_F32_H

#include "ops/attention/attention_lanes.h"

enum { PAIR = 1 };

VEC_INLINE hr_dtype dtype_of(const hr_attention_task *task)
{
    return task->dtype;
}

VEC_INLINE void store_elements(void *row, hr_dtype dtype, int64_t at, int64_t width, vec value)
{
    vec_store(row, at, value, lanes_of(width - at), dtype);
}

/* Words of a row of `width` elements from word `at` on; zeros past it. */
VEC_INLINE vec_bits load_words(const void *row, hr_dtype dtype, int64_t at, int64_t width)
{
    return (vec_bits)load_elements(row, dtype, at, width);
}

/* Line `at` of rows packed by rows: one word of each column from `column` on. */
VEC_INLINE vec_bits load_line(hr_attention_rows rows, hr_dtype dtype, int64_t length, int64_t at,
                              int64_t column, int64_t width)
{
    return load_words(row_of(rows, dtype, at), dtype, column, at < length ? width : 0);
}

VEC_INLINE vec multiply_add(vec sum, vec_bits line, uint32_t word)
{
    return vec_fma((vec)vec_bits_set(word), (vec)line, sum);
}

/* Stores elements `at`, at + 1, ... of a row of words. */
VEC_INLINE void put_words(uint32_t *row, int64_t at, vec value)
{
    vec_store_f32((float *)row + at, value, VEC_LANES);
}

/* Stores two panels of elements at the start of a row of words. */
VEC_INLINE void put_panels(uint32_t *row, const vec value[2])
{
    put_words(row, 0, value[0]);
    put_words(row, VEC_LANES, value[1]);
}

/* Stores dS' of two keys (rows of `value`) and 2 panels of queries to ds[key] for dK. dQ uses the
 * same words, so `pairs` is unused. */
VEC_INLINE void put_gradients(uint32_t *ds, int64_t ds_row, uint32_t *pairs, const vec value[2][2])
{
    (void)pairs;
    put_panels(ds, value[0]);
    put_panels(ds + ds_row, value[1]);
}

#endif
