/* SPDX-License-Identifier: Apache-2.0 */
/* ops/magnitude/magnitude_avx512bf16.c - magnitude_template.h with AVX-512 and the rounding of
 * AVX512-BF16. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_magnitude_fill_avx512bf16
#include "ops/magnitude/magnitude_template.h"
