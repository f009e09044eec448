/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu_avx512.c - glu_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_glu_fill_avx512
#include "ops/glu/glu_template.h"
