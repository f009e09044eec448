/* SPDX-License-Identifier: Apache-2.0 */
/* ops/rope/rope_avx2.c - rope_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_rope_fill_avx2
#include "ops/rope/rope_template.h"
