/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates_ref.c - reference implementation. */
#include "base/element.h"
#include "ops/gates/gates_kernels.h"

static void sum(const float *gate, void *const *x, int32_t branches, void *o, int64_t at, int64_t K,
                hr_dtype dtype)
{
    for (int64_t c = at; c < at + K; c++) {
        float all = 0;
        for (int32_t b = 0; b < branches; b++) all += gate[b] * hr_element_get(x[b], c, dtype);
        hr_element_set(o, c, dtype, all);
    }
}

static float dot(const void *a, const void *b, int64_t at, int64_t K, hr_dtype dtype)
{
    float all = 0;
    for (int64_t c = at; c < at + K; c++)
        all += hr_element_get(a, c, dtype) * hr_element_get(b, c, dtype);
    return all;
}

void hr_gates_fill_ref(hr_gates_kernels *kernels)
{
    *kernels = (hr_gates_kernels){ sum, dot };
}
