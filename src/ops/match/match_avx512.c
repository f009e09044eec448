/* SPDX-License-Identifier: Apache-2.0 */
/* ops/match/match_avx512.c - match_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_match_fill_avx512
#include "ops/match/match_template.h"
