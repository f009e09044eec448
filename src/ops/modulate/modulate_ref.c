/* SPDX-License-Identifier: Apache-2.0 */
/* ops/modulate/modulate_ref.c - reference implementation, element by element. */
#include <math.h>

#include "base/element.h"
#include "ops/modulate/modulate_kernels.h"

/* sum of a b over a group. */
static double dot(const void *a, const void *b, int64_t at, int64_t R, hr_dtype dtype)
{
    double sum = 0;
    for (int64_t c = at; c < at + R; c++)
        sum += (double)hr_element_get(a, c, dtype) * (double)hr_element_get(b, c, dtype);
    return sum;
}

static void fwd(const void *u, const void *p, void *y, int64_t rows, const hr_modulate_attr *attr,
                hr_dtype dtype)
{
    const bool diagonal = attr->form == HR_MODULATE_DIAGONAL;
    const int64_t R = diagonal ? 1 : attr->R;
    for (int64_t at = 0; at < rows * attr->N; at += R) {
        const double inner = (double)attr->scale * dot(u, p, at, R, dtype);
        for (int64_t c = at; c < at + R; c++) {
            const double ux = hr_element_get(u, c, dtype), px = hr_element_get(p, c, dtype);
            hr_element_set(y, c, dtype,
                           (float)(diagonal ? (double)attr->scale * tanh(ux) * px : ux * inner));
        }
    }
}

static void bwd(const void *dy, const void *u, const void *p, void *du, void *dp, int64_t rows,
                const hr_modulate_attr *attr, hr_dtype dtype)
{
    const bool diagonal = attr->form == HR_MODULATE_DIAGONAL;
    const int64_t R = diagonal ? 1 : attr->R;
    for (int64_t at = 0; at < rows * attr->N; at += R) {
        const double inner = (double)attr->scale * dot(u, p, at, R, dtype);
        const double outer = (double)attr->scale * dot(dy, u, at, R, dtype);
        for (int64_t c = at; c < at + R; c++) {
            const double ux = hr_element_get(u, c, dtype), px = hr_element_get(p, c, dtype);
            const double grad = hr_element_get(dy, c, dtype), scaled = (double)attr->scale * grad;
            const double above = cosh(fmin(fabs(ux), 300));
            hr_element_set(
                du, c, dtype,
                (float)(diagonal ? scaled * px / (above * above) : grad * inner + px * outer));
            hr_element_set(dp, c, dtype, (float)(diagonal ? scaled * tanh(ux) : ux * outer));
        }
    }
}

void hr_modulate_fill_ref(hr_modulate_kernels *kernels)
{
    *kernels = (hr_modulate_kernels){ fwd, bwd };
}
