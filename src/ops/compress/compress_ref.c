/* SPDX-License-Identifier: Apache-2.0 */
/* ops/compress/compress_ref.c - reference implementation. */
#include <stddef.h>

#include "base/element.h"
#include "ops/compress/compress_kernels.h"

static void move(const void *x, const float *a, void *out, int64_t count, hr_dtype dtype)
{
    for (int64_t i = 0; i < count; i++)
        hr_element_set(out, i, dtype, hr_element_get(x, i, dtype) + a[i]);
}

static void add(float *sum, const void *x, int64_t count, hr_dtype dtype)
{
    for (int64_t i = 0; i < count; i++) sum[i] += hr_element_get(x, i, dtype);
}

static void store(const float *sum, const void *x, void *out, int64_t count, hr_dtype dtype)
{
    for (int64_t i = 0; i < count; i++)
        hr_element_set(out, i, dtype, sum[i] + (x ? hr_element_get(x, i, dtype) : 0));
}

void hr_compress_fill_ref(hr_compress_kernels *kernels)
{
    *kernels = (hr_compress_kernels){ move, add, store };
}
