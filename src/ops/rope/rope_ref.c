/* SPDX-License-Identifier: Apache-2.0 */
/* ops/rope/rope_ref.c - reference implementation of a row's rotation. */
#include "base/element.h"
#include "ops/rope/rope_kernels.h"

static void rotate_head(void *row, int64_t at, const float *table, int64_t half, double sign,
                        hr_dtype dtype)
{
    for (int64_t e = 0; e < half; e++) {
        const double c = table[e], s = sign * table[half + e];
        const double low = hr_element_get(row, at + e, dtype);
        const double high = hr_element_get(row, at + half + e, dtype);
        hr_element_set(row, at + e, dtype, (float)(low * c - high * s));
        hr_element_set(row, at + half + e, dtype, (float)(high * c + low * s));
    }
}

static void rotate(void *row, const float *table, const hr_rope_attr *attr, hr_dtype dtype)
{
    for (int32_t u = 0; u < attr->runs; u++)
        for (int32_t h = 0; h < attr->heads; h++)
            rotate_head(row, attr->offset[u] + h * attr->head_stride, table, attr->rotary / 2,
                        attr->inverse ? -1 : 1, dtype);
}

void hr_rope_fill_ref(hr_rope_kernels *kernels)
{
    *kernels = (hr_rope_kernels){ rotate };
}
