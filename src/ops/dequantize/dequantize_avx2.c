/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dequantize/dequantize_avx2.c - dequantize_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_dequantize_fill_avx2
#include "ops/dequantize/dequantize_template.h"
