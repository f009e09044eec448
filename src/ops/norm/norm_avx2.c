/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm_avx2.c - norm_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_norm_fill_avx2
#include "ops/norm/norm_template.h"
