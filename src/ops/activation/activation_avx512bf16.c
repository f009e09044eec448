/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation_avx512bf16.c - activation_template.h with AVX-512, rounding
 * as AVX512-BF16 does. */
#include "ops/simd/vec_avx512.h"

#define ACTIVATION_AVX512BF16
#define FILL hr_activation_fill_avx512bf16
#include "ops/activation/activation_template.h"
