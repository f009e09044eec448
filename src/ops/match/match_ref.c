/* SPDX-License-Identifier: Apache-2.0 */
/* ops/match/match_ref.c - reference implementation, element by element in double. */
#include <math.h>

#include "base/element.h"
#include "ops/match/match_kernels.h"

static double mse(const void *y, const void *t, void *dy, int64_t D, double scale, hr_dtype dtype)
{
    double sum = 0;
    for (int64_t c = 0; c < D; c++) {
        const double apart = (double)hr_element_get(y, c, dtype) -
                             (double)hr_element_get(t, c, dtype);
        sum += apart * apart;
        if (dy) hr_element_set(dy, c, dtype, (float)(2 * scale * apart / (double)D));
    }
    return sum / (double)D;
}

/* 1 / the length of a row; 0 for a row of zeros. */
static double inverse_length(const void *x, int64_t D, hr_dtype dtype)
{
    double sum = 0;
    for (int64_t c = 0; c < D; c++)
        sum += (double)hr_element_get(x, c, dtype) * (double)hr_element_get(x, c, dtype);
    return sum > 0 ? 1 / sqrt(sum) : 0;
}

static double cosine(const void *y, const void *t, void *dy, int64_t D, double scale,
                     hr_dtype dtype)
{
    const double of_y = inverse_length(y, D, dtype), of_t = inverse_length(t, D, dtype);
    const bool has = of_y > 0 && of_t > 0;
    double error = 0;
    for (int64_t c = 0; c < D; c++) {
        const double apart = (double)hr_element_get(y, c, dtype) * of_y -
                             (double)hr_element_get(t, c, dtype) * of_t;
        error += apart * apart / 2;
    }
    for (int64_t c = 0; c < D && dy; c++) {
        const double unit = (double)hr_element_get(y, c, dtype) * of_y;
        const double apart = unit - (double)hr_element_get(t, c, dtype) * of_t;
        hr_element_set(dy, c, dtype, has ? (float)(scale * of_y * (apart - error * unit)) : 0);
    }
    return has ? error : 1;
}

static double row(const void *y, const void *t, void *dy, int64_t D, int32_t measure, double scale,
                  hr_dtype dtype)
{
    return measure == HR_MATCH_MSE ? mse(y, t, dy, D, scale, dtype)
                                   : cosine(y, t, dy, D, scale, dtype);
}

void hr_match_fill_ref(hr_match_kernels *kernels)
{
    *kernels = (hr_match_kernels){ row };
}
