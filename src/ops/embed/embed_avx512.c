/* SPDX-License-Identifier: Apache-2.0 */
/* ops/embed/embed_avx512.c - embed_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_embed_fill_avx512
#include "ops/embed/embed_template.h"
