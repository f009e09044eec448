/* SPDX-License-Identifier: Apache-2.0 */
/* ops/compress/compress_template.h - passes over the vectors of ops/simd. FILL names the function
 * that fills the table. */
#include <stddef.h>

#include "ops/compress/compress_kernels.h"

VEC_INLINE void move_as(const void *x, const float *a, void *out, int64_t count, hr_dtype dtype)
{
    for (int64_t i = 0, lanes; i < count; i += lanes) {
        lanes = count - i < VEC_LANES ? count - i : VEC_LANES;
        vec_store(out, i, vec_add(vec_load(x, i, lanes, dtype), vec_load_f32(a + i, lanes)), lanes,
                  dtype);
    }
}

static void move(const void *x, const float *a, void *out, int64_t count, hr_dtype dtype)
{
    VEC_WITH_DTYPE(dtype, move_as, x, a, out, count);
}

VEC_INLINE void add_as(float *sum, const void *x, int64_t count, hr_dtype dtype)
{
    for (int64_t i = 0, lanes; i < count; i += lanes) {
        lanes = count - i < VEC_LANES ? count - i : VEC_LANES;
        vec_store_f32(sum + i, vec_add(vec_load_f32(sum + i, lanes), vec_load(x, i, lanes, dtype)),
                      lanes);
    }
}

static void add(float *sum, const void *x, int64_t count, hr_dtype dtype)
{
    VEC_WITH_DTYPE(dtype, add_as, sum, x, count);
}

VEC_INLINE void store_as(const float *sum, const void *x, void *out, int64_t count, hr_dtype dtype)
{
    for (int64_t i = 0, lanes; i < count; i += lanes) {
        lanes = count - i < VEC_LANES ? count - i : VEC_LANES;
        const vec onto = x ? vec_load(x, i, lanes, dtype) : vec_set(0);
        vec_store(out, i, vec_add(vec_load_f32(sum + i, lanes), onto), lanes, dtype);
    }
}

static void store(const float *sum, const void *x, void *out, int64_t count, hr_dtype dtype)
{
    VEC_WITH_DTYPE(dtype, store_as, sum, x, out, count);
}

void FILL(hr_compress_kernels *kernels)
{
    *kernels = (hr_compress_kernels){ move, add, store };
}
