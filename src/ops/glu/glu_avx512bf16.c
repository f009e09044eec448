/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu_avx512bf16.c - glu_template.h with AVX-512, rounding as AVX512-BF16 does. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_glu_fill_avx512bf16
#include "ops/glu/glu_template.h"
