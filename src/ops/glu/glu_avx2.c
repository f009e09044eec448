/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu_avx2.c - glu_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_glu_fill_avx2
#include "ops/glu/glu_template.h"
