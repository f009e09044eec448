/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dropout/dropout_template.h - one row of dropout over the vectors of ops/simd. One pass; the
 * hash of base/random.h is some fifteen integer instructions a vector. One thread of Zen 4,
 * 2026-11: fp32 88 % of read-modify-write, bound by memory; bf16 33 %, bound by the hash. */
#include <stddef.h>

#include "ops/dropout/dropout_kernels.h"

/* hr_random_element of base/random.h, line by line; the first product is one of constants plus one
 * of scalars. */
VEC_INLINE vec_bits random_bits(uint64_t key, uint32_t first)
{
    const uint32_t golden = 0x9e3779b9u;
    vec_bits x = vec_bits_mul(vec_bits_count(), vec_bits_set(golden));
    x = vec_bits_add(x, vec_bits_set(first * golden));
    x = vec_bits_xor(x, vec_bits_set((uint32_t)key));
    x = vec_bits_xor(x, vec_bits_shift_right(x, 16));
    x = vec_bits_mul(x, vec_bits_set(0x7feb352du));
    x = vec_bits_xor(x, vec_bits_shift_right(x, 15));
    x = vec_bits_mul(x, vec_bits_set(0x846ca68bu));
    x = vec_bits_xor(x, vec_bits_set((uint32_t)(key >> 32)));
    x = vec_bits_xor(x, vec_bits_shift_right(x, 16));
    x = vec_bits_mul(x, vec_bits_set(0x7feb352du));
    return vec_bits_xor(x, vec_bits_shift_right(x, 15));
}

VEC_INLINE void drop_step(const void *x, const void *residual, void *y, int64_t c, uint64_t key,
                          vec_bits threshold, vec scale, int64_t lanes, hr_dtype dtype)
{
    const vec onto = residual ? vec_load(residual, c, lanes, dtype) : vec_set(0);
    const vec branch = vec_keep_from(vec_load(x, c, lanes, dtype), random_bits(key, (uint32_t)c),
                                     threshold);
    vec_store(y, c, vec_fma(branch, scale, onto), lanes, dtype);
}

VEC_INLINE void drop_row(const void *x, const void *residual, void *y, int64_t D, uint64_t key,
                         uint32_t threshold, float scale, hr_dtype dtype)
{
    const vec_bits least = vec_bits_set(threshold);
    const vec scales = vec_set(scale);
    int64_t c = 0;
    for (; c + VEC_LANES <= D; c += VEC_LANES)
        drop_step(x, residual, y, c, key, least, scales, VEC_LANES, dtype);
    if (c < D) drop_step(x, residual, y, c, key, least, scales, D - c, dtype);
}

static void row(const void *x, const void *residual, void *y, int64_t D, uint64_t key,
                uint32_t threshold, float scale, hr_dtype dtype)
{
    if (dtype == HR_BF16) drop_row(x, residual, y, D, key, threshold, scale, HR_BF16);
    else drop_row(x, residual, y, D, key, threshold, scale, HR_F32);
}

void FILL(hr_dropout_kernels *kernels)
{
    *kernels = (hr_dropout_kernels){ row };
}
