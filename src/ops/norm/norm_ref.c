/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm_ref.c - reference implementation of LayerNorm, RMSNorm and their gradients. */
#include <math.h>

#include "base/element.h"
#include "ops/norm/norm_kernels.h"

static void fwd(const void *x, const float *gain, const float *bias, void *y, float *stat,
                int64_t rows, const hr_norm_attr *attr, hr_dtype dtype)
{
    const int64_t D = attr->D;
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, variance = 0;
        for (int64_t c = 0; c < D && attr->centered; c++)
            mean += hr_element_get(x, r * D + c, dtype);
        mean /= (double)D;
        for (int64_t c = 0; c < D; c++) {
            const double centered = hr_element_get(x, r * D + c, dtype) - mean;
            variance += centered * centered;
        }
        const double rstd = 1 / sqrt(variance / (double)D + attr->eps);
        for (int64_t c = 0; c < D; c++) {
            const double h = (hr_element_get(x, r * D + c, dtype) - mean) * rstd;
            hr_element_set(y, r * D + c, dtype, (float)(h * gain[c] + (bias ? bias[c] : 0)));
        }
        if (!stat) continue;
        if (attr->centered) *stat++ = (float)mean;
        *stat++ = (float)rstd;
    }
}

static double mean_of(const float *stat, int64_t r, const hr_norm_attr *attr)
{
    return attr->centered ? stat[2 * r] : 0;
}

static double rstd_of(const float *stat, int64_t r, const hr_norm_attr *attr)
{
    return attr->centered ? stat[2 * r + 1] : stat[r];
}

/* Parameter sums come first, because dx may overwrite dy or x. */
static void bwd(const void *dy, const void *x, const float *stat, const float *gain,
                const void *addend, void *dx, float *partial, int64_t rows,
                const hr_norm_attr *attr, hr_dtype dtype)
{
    const int64_t D = attr->D;
    for (int64_t c = 0; c < D; c++) {
        double dgain = 0, dbias = 0;
        for (int64_t r = 0; r < rows; r++) {
            const double mean = mean_of(stat, r, attr), rstd = rstd_of(stat, r, attr);
            const double slope = hr_element_get(dy, r * D + c, dtype);
            dgain += slope * (hr_element_get(x, r * D + c, dtype) - mean) * rstd;
            dbias += slope;
        }
        partial[c] = (float)dgain;
        if (attr->centered) partial[D + c] = (float)dbias;
    }
    for (int64_t r = 0; r < rows; r++) {
        const double mean = mean_of(stat, r, attr), rstd = rstd_of(stat, r, attr);
        double sum_t = 0, sum_th = 0;
        for (int64_t c = 0; c < D; c++) {
            const double t = (double)hr_element_get(dy, r * D + c, dtype) * gain[c];
            if (attr->centered) sum_t += t;
            sum_th += t * (hr_element_get(x, r * D + c, dtype) - mean) * rstd;
        }
        for (int64_t c = 0; c < D; c++) {
            const int64_t at = r * D + c;
            const double t = (double)hr_element_get(dy, at, dtype) * gain[c];
            const double h = (hr_element_get(x, at, dtype) - mean) * rstd;
            const double slope = rstd * (t - sum_t / (double)D - h * sum_th / (double)D);
            hr_element_set(dx, at, dtype,
                           (float)(slope + (addend ? hr_element_get(addend, at, dtype) : 0)));
        }
    }
}

void hr_norm_fill_ref(hr_norm_kernels *kernels)
{
    *kernels = (hr_norm_kernels){ fwd, bwd };
}
