/* SPDX-License-Identifier: Apache-2.0 */
/* ops/magnitude/magnitude_avx2.c - magnitude_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_magnitude_fill_avx2
#include "ops/magnitude/magnitude_template.h"
