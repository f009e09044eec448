/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm_avx512.c - norm_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_norm_fill_avx512
#include "ops/norm/norm_template.h"
