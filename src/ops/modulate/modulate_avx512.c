/* SPDX-License-Identifier: Apache-2.0 */
/* ops/modulate/modulate_avx512.c - modulate_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_modulate_fill_avx512
#include "ops/modulate/modulate_template.h"
