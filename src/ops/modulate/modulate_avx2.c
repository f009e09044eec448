/* SPDX-License-Identifier: Apache-2.0 */
/* ops/modulate/modulate_avx2.c - modulate_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_modulate_fill_avx2
#include "ops/modulate/modulate_template.h"
