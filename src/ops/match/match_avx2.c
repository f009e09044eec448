/* SPDX-License-Identifier: Apache-2.0 */
/* ops/match/match_avx2.c - match_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_match_fill_avx2
#include "ops/match/match_template.h"
