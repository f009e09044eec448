/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates_template.h - gates over the vectors of ops/simd. FILL names the function that
 * fills the table. */
#include "ops/gates/gates_kernels.h"

VEC_INLINE void sum_step(const float *gate, void *const *x, int32_t branches, void *o, int64_t at,
                         int64_t lanes, hr_dtype dtype)
{
    vec all = vec_set(0);
    for (int32_t b = 0; b < branches; b++)
        all = vec_fma(vec_set(gate[b]), vec_load(x[b], at, lanes, dtype), all);
    vec_store(o, at, all, lanes, dtype);
}

VEC_INLINE void sum_as(const float *gate, void *const *x, int32_t branches, void *o, int64_t at,
                       int64_t K, hr_dtype dtype)
{
    int64_t c = 0;
    for (; c + VEC_LANES <= K; c += VEC_LANES)
        sum_step(gate, x, branches, o, at + c, VEC_LANES, dtype);
    if (c < K) sum_step(gate, x, branches, o, at + c, K - c, dtype);
}

static void sum(const float *gate, void *const *x, int32_t branches, void *o, int64_t at, int64_t K,
                hr_dtype dtype)
{
    VEC_WITH_DTYPE(dtype, sum_as, gate, x, branches, o, at, K);
}

VEC_INLINE float dot_as(const void *a, const void *b, int64_t at, int64_t K, hr_dtype dtype)
{
    vec all = vec_set(0);
    int64_t c = 0;
    for (; c + VEC_LANES <= K; c += VEC_LANES)
        all = vec_fma(vec_load(a, at + c, VEC_LANES, dtype), vec_load(b, at + c, VEC_LANES, dtype),
                      all);
    if (c < K)
        all = vec_fma(vec_load(a, at + c, K - c, dtype), vec_load(b, at + c, K - c, dtype), all);
    return vec_reduce_add(all);
}

static float dot(const void *a, const void *b, int64_t at, int64_t K, hr_dtype dtype)
{
    return VEC_WITH_DTYPE(dtype, dot_as, a, b, at, K);
}

void FILL(hr_gates_kernels *kernels)
{
    *kernels = (hr_gates_kernels){ sum, dot };
}
