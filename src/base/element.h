/* SPDX-License-Identifier: Apache-2.0 */
/* base/element.h - address, load and store of one activation element. For reference
 * kernels and code that runs once per row; inner loops use vectors. */
#ifndef HR_BASE_ELEMENT_H
#define HR_BASE_ELEMENT_H

#include "base/bf16.h"
#include "base/dtype.h"
#include "base/f16.h"

static inline void *hr_element_at(const void *base, int64_t index, hr_dtype dtype)
{
    return (char *)base + index * hr_dtype_bytes(dtype);
}

static inline float hr_element_get(const void *base, int64_t index, hr_dtype dtype)
{
    return dtype == HR_BF16  ? hr_bf16_to_f32(((const hr_bf16 *)base)[index])
           : dtype == HR_F16 ? hr_f16_to_f32(((const uint16_t *)base)[index])
                             : ((const float *)base)[index];
}

/* Rounds to nearest even. */
static inline void hr_element_set(void *base, int64_t index, hr_dtype dtype, float value)
{
    if (dtype == HR_BF16) ((hr_bf16 *)base)[index] = hr_bf16_from_f32(value);
    else if (dtype == HR_F16) ((uint16_t *)base)[index] = hr_f16_from_f32(value);
    else ((float *)base)[index] = value;
}

#endif
