/* SPDX-License-Identifier: Apache-2.0 */
/* ops/compress/compress_avx512.c - compress_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_compress_fill_avx512
#include "ops/compress/compress_template.h"
