/* SPDX-License-Identifier: Apache-2.0 */
/* ops/magnitude/magnitude_avx512.c - magnitude_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_magnitude_fill_avx512
#include "ops/magnitude/magnitude_template.h"
