/* SPDX-License-Identifier: Apache-2.0 */
/* ops/embed/embed_avx2.c - embed_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_embed_fill_avx2
#include "ops/embed/embed_template.h"
