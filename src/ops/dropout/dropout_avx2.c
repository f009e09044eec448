/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dropout/dropout_avx2.c - dropout_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_dropout_fill_avx2
#include "ops/dropout/dropout_template.h"
