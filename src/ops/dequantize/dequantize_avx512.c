/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dequantize/dequantize_avx512.c - dequantize_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_dequantize_fill_avx512
#include "ops/dequantize/dequantize_template.h"
