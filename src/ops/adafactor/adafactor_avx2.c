/* SPDX-License-Identifier: Apache-2.0 */
/* ops/adafactor/adafactor_avx2.c - adafactor_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_adafactor_fill_avx2
#include "ops/adafactor/adafactor_template.h"
