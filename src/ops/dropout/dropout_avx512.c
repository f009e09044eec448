/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dropout/dropout_avx512.c - dropout_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_dropout_fill_avx512
#include "ops/dropout/dropout_template.h"
