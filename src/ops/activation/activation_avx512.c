/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation_avx512.c - activation_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_activation_fill_avx512
#include "ops/activation/activation_template.h"
