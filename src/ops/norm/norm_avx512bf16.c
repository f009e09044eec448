/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm_avx512bf16.c - norm_template.h with AVX-512, with the rounding of AVX512-BF16. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_norm_fill_avx512bf16
#include "ops/norm/norm_template.h"
