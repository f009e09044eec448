/* SPDX-License-Identifier: Apache-2.0 */
/* ops/compress/compress_avx2.c - compress_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_compress_fill_avx2
#include "ops/compress/compress_template.h"
