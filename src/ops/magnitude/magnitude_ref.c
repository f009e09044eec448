/* SPDX-License-Identifier: Apache-2.0 */
/* ops/magnitude/magnitude_ref.c - reference implementation of lengths and magnitudes. */
#include "base/element.h"
#include "ops/magnitude/magnitude_kernels.h"

static void strip(float *w, const float *a, int64_t stride, const float *b, int64_t rows, int64_t R,
                  float scale)
{
    for (int64_t k = 0; k < rows; k++)
        for (int32_t n = 0; n < HR_PANEL_WIDTH; n++) {
            double sum = 0;
            for (int64_t r = 0; r < R; r++)
                sum += (double)a[k * stride + r] * b[r * HR_PANEL_WIDTH + n];
            w[k * HR_PANEL_WIDTH + n] = (float)(w[k * HR_PANEL_WIDTH + n] + scale * sum);
        }
}

static void fwd(const void *x, const float *m, const float *c, const float *bias,
                const void *residual, void *y, int64_t rows, int64_t N, hr_dtype dtype)
{
    for (int64_t i = 0; i < rows * N; i++) {
        const int64_t n = i % N;
        double value = (double)hr_element_get(x, i, dtype) * c[n] * m[n];
        if (bias) value += bias[n];
        if (residual) value += hr_element_get(residual, i, dtype);
        hr_element_set(y, i, dtype, (float)value);
    }
}

static void bwd(const void *dy, const void *x, const float *m, const float *c, const void *addend,
                void *dx, float *partial, int64_t rows, int64_t N, hr_dtype dtype)
{
    for (int64_t n = 0; n < N; n++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++) {
            const int64_t at = r * N + n;
            const double slope = hr_element_get(dy, at, dtype);
            sum += slope * hr_element_get(x, at, dtype) * c[n];
            const double onto = addend ? hr_element_get(addend, at, dtype) : 0;
            hr_element_set(dx, at, dtype, (float)(onto + slope * c[n] * m[n]));
        }
        partial[n] = (float)sum;
    }
}

void hr_magnitude_fill_ref(hr_magnitude_kernels *kernels)
{
    *kernels = (hr_magnitude_kernels){ strip, fwd, bwd };
}
