/* SPDX-License-Identifier: Apache-2.0 */
/* ops/match/match_template.h - distances of rows over the vectors of ops/simd. A squared error
 * reads each operand once; a cosine reads a row three times, from the first-level cache. */
#include <math.h>
#include <stdbool.h>

#include "ops/match/match_kernels.h"

VEC_INLINE int64_t lanes_of(int64_t c, int64_t D)
{
    return D - c < VEC_LANES ? D - c : VEC_LANES;
}

VEC_INLINE double mse(const void *y, const void *t, void *dy, int64_t D, double scale,
                      hr_dtype dtype)
{
    const vec factor = vec_set((float)(2 * scale / (double)D));
    vec sum = vec_set(0);
    for (int64_t c = 0; c < D; c += VEC_LANES) {
        const int64_t lanes = lanes_of(c, D);
        const vec apart = vec_sub(vec_load(y, c, lanes, dtype), vec_load(t, c, lanes, dtype));
        sum = vec_fma(apart, apart, sum);
        if (dy) vec_store(dy, c, vec_mul(factor, apart), lanes, dtype);
    }
    return (double)vec_reduce_add(sum) / (double)D;
}

/* 1 / the length of a row; 0 for a row of zeros. */
VEC_INLINE double inverse_length(const void *x, int64_t D, hr_dtype dtype)
{
    vec sum = vec_set(0);
    for (int64_t c = 0; c < D; c += VEC_LANES) {
        const vec part = vec_load(x, c, lanes_of(c, D), dtype);
        sum = vec_fma(part, part, sum);
    }
    const double square = (double)vec_reduce_add(sum);
    return square > 0 ? 1 / sqrt(square) : 0;
}

VEC_INLINE double cosine(const void *y, const void *t, void *dy, int64_t D, double scale,
                         hr_dtype dtype)
{
    const double of_y = inverse_length(y, D, dtype), of_t = inverse_length(t, D, dtype);
    const bool has = of_y > 0 && of_t > 0;
    const vec unit_y = vec_set((float)of_y), unit_t = vec_set((float)of_t);
    vec sum = vec_set(0);
    for (int64_t c = 0; c < D; c += VEC_LANES) {
        const int64_t lanes = lanes_of(c, D);
        const vec other = vec_mul(unit_t, vec_load(t, c, lanes, dtype));
        const vec apart = vec_sub(vec_mul(unit_y, vec_load(y, c, lanes, dtype)), other);
        sum = vec_fma(apart, apart, sum);
    }
    const double error = (double)vec_reduce_add(sum) / 2;
    const vec factor = vec_set(has ? (float)(scale * of_y) : 0), errors = vec_set((float)error);
    for (int64_t c = 0; c < D && dy; c += VEC_LANES) {
        const int64_t lanes = lanes_of(c, D);
        const vec unit = vec_mul(unit_y, vec_load(y, c, lanes, dtype));
        const vec apart = vec_sub(unit, vec_mul(unit_t, vec_load(t, c, lanes, dtype)));
        vec_store(dy, c, vec_mul(factor, vec_fnma(errors, unit, apart)), lanes, dtype);
    }
    return has ? error : 1;
}

VEC_INLINE double row_as(const void *y, const void *t, void *dy, int64_t D, int32_t measure,
                         double scale, hr_dtype dtype)
{
    return measure == HR_MATCH_MSE ? mse(y, t, dy, D, scale, dtype)
                                   : cosine(y, t, dy, D, scale, dtype);
}

static double row(const void *y, const void *t, void *dy, int64_t D, int32_t measure, double scale,
                  hr_dtype dtype)
{
    return VEC_WITH_DTYPE(dtype, row_as, y, t, dy, D, measure, scale);
}

void FILL(hr_match_kernels *kernels)
{
    *kernels = (hr_match_kernels){ row };
}
