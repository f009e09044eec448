/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation_avx2.c - activation_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_activation_fill_avx2
#include "ops/activation/activation_template.h"
