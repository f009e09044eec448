/* SPDX-License-Identifier: Apache-2.0 */
/* ops/magnitude/magnitude_template.h - lengths and magnitudes over the vectors of ops/simd. Passes
 * over rows read and write each operand once; a strip has four rows at a time in registers. */
#include <stddef.h>

#include "base/element.h"
#include "ops/magnitude/magnitude_kernels.h"

enum { PARTS = HR_PANEL_WIDTH / VEC_LANES, ROWS = 4 };

/* `count` rows of a strip, a constant at each call. */
VEC_INLINE void strip_rows(float *w, const float *a, int64_t stride, const float *b, int64_t R,
                           vec scale, int32_t count)
{
    vec sums[ROWS][PARTS];
    for (int32_t k = 0; k < count; k++)
        for (int32_t p = 0; p < PARTS; p++) sums[k][p] = vec_set(0);
    for (int64_t r = 0; r < R; r++)
        for (int32_t p = 0; p < PARTS; p++) {
            const vec row = vec_load_f32(b + r * HR_PANEL_WIDTH + p * VEC_LANES, VEC_LANES);
            for (int32_t k = 0; k < count; k++)
                sums[k][p] = vec_fma(vec_set(a[k * stride + r]), row, sums[k][p]);
        }
    for (int32_t k = 0; k < count; k++)
        for (int32_t p = 0; p < PARTS; p++) {
            float *at = w + k * HR_PANEL_WIDTH + p * VEC_LANES;
            vec_store_f32(at, vec_fma(scale, sums[k][p], vec_load_f32(at, VEC_LANES)), VEC_LANES);
        }
}

static void strip(float *w, const float *a, int64_t stride, const float *b, int64_t rows, int64_t R,
                  float scale)
{
    const vec scales = vec_set(scale);
    int64_t k = 0;
    for (; k + ROWS <= rows; k += ROWS)
        strip_rows(w + k * HR_PANEL_WIDTH, a + k * stride, stride, b, R, scales, ROWS);
    for (; k < rows; k++)
        strip_rows(w + k * HR_PANEL_WIDTH, a + k * stride, stride, b, R, scales, 1);
}

VEC_INLINE void fwd_step(const void *x, const float *m, const float *c, const float *bias,
                         const void *residual, void *y, int64_t at, int64_t n, int64_t lanes,
                         hr_dtype dtype)
{
    const vec gain = vec_mul(vec_load_f32(m + n, lanes), vec_load_f32(c + n, lanes));
    vec onto = bias ? vec_load_f32(bias + n, lanes) : vec_set(0);
    if (residual) onto = vec_add(onto, vec_load(residual, at + n, lanes, dtype));
    vec_store(y, at + n, vec_fma(vec_load(x, at + n, lanes, dtype), gain, onto), lanes, dtype);
}

VEC_INLINE void fwd_as(const void *x, const float *m, const float *c, const float *bias,
                       const void *residual, void *y, int64_t rows, int64_t N, hr_dtype dtype)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t n = 0;
        for (; n + VEC_LANES <= N; n += VEC_LANES)
            fwd_step(x, m, c, bias, residual, y, r * N, n, VEC_LANES, dtype);
        if (n < N) fwd_step(x, m, c, bias, residual, y, r * N, n, N - n, dtype);
    }
}

static void fwd(const void *x, const float *m, const float *c, const float *bias,
                const void *residual, void *y, int64_t rows, int64_t N, hr_dtype dtype)
{
    VEC_WITH_DTYPE(dtype, fwd_as, x, m, c, bias, residual, y, rows, N);
}

VEC_INLINE void bwd_step(const void *dy, const void *x, const float *m, const float *c,
                         const void *addend, void *dx, float *partial, int64_t at, int64_t n,
                         int64_t lanes, hr_dtype dtype)
{
    const vec slope = vec_load(dy, at + n, lanes, dtype), part = vec_load_f32(c + n, lanes);
    const vec h = vec_mul(vec_load(x, at + n, lanes, dtype), part);
    const vec onto = addend ? vec_load(addend, at + n, lanes, dtype) : vec_set(0);
    const vec gain = vec_mul(vec_load_f32(m + n, lanes), part);
    vec_store_f32(partial + n, vec_fma(slope, h, vec_load_f32(partial + n, lanes)), lanes);
    vec_store(dx, at + n, vec_fma(slope, gain, onto), lanes, dtype);
}

VEC_INLINE void bwd_as(const void *dy, const void *x, const float *m, const float *c,
                       const void *addend, void *dx, float *partial, int64_t rows, int64_t N,
                       hr_dtype dtype)
{
    for (int64_t n = 0; n < N; n++) partial[n] = 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t n = 0;
        for (; n + VEC_LANES <= N; n += VEC_LANES)
            bwd_step(dy, x, m, c, addend, dx, partial, r * N, n, VEC_LANES, dtype);
        if (n < N) bwd_step(dy, x, m, c, addend, dx, partial, r * N, n, N - n, dtype);
    }
}

static void bwd(const void *dy, const void *x, const float *m, const float *c, const void *addend,
                void *dx, float *partial, int64_t rows, int64_t N, hr_dtype dtype)
{
    VEC_WITH_DTYPE(dtype, bwd_as, dy, x, m, c, addend, dx, partial, rows, N);
}

void FILL(hr_magnitude_kernels *kernels)
{
    *kernels = (hr_magnitude_kernels){ strip, fwd, bwd };
}
