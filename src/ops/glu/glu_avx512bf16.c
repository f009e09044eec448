/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu_avx512bf16.c - glu_template.h with AVX-512, with the rounding of AVX512-BF16. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_glu_fill_avx512bf16
#include "ops/glu/glu_template.h"
