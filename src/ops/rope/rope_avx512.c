/* SPDX-License-Identifier: Apache-2.0 */
/* ops/rope/rope_avx512.c - rope_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define ROPE_SIXTEEN
#define FILL hr_rope_fill_avx512
#include "ops/rope/rope_template.h"
