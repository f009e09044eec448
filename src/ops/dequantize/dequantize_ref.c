/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dequantize/dequantize_ref.c - reference implementation of dequantize. */
#include "base/e4m3.h"
#include "base/element.h"
#include "ops/dequantize/dequantize_kernels.h"

static void span(const void *w, void *y, int64_t count, float scale, hr_dtype from, hr_dtype to)
{
    for (int64_t i = 0; i < count; i++) {
        const float value = from == HR_F8_E4M3 ? hr_e4m3_to_f32(((const uint8_t *)w)[i])
                                               : hr_element_get(w, i, from);
        hr_element_set(y, i, to, value * scale);
    }
}

void hr_dequantize_fill_ref(hr_dequantize_kernels *kernels)
{
    *kernels = (hr_dequantize_kernels){ span };
}
