/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation_ref.c - the specification, element by element. */
#include "base/element.h"
#include "ops/activation/activation_kernels.h"
#include "ops/activation/activation_scalar.h"

static void stretch(const void *pre, void *y, int64_t count, hr_act act, hr_dtype dtype)
{
    for (int64_t i = 0; i < count; i++)
        hr_element_set(y, i, dtype, (float)hr_activate(act, hr_element_get(pre, i, dtype)));
}

void hr_activation_fill_ref(hr_activation_kernels *kernels)
{
    *kernels = (hr_activation_kernels){ stretch };
}
