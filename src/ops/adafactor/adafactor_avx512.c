/* SPDX-License-Identifier: Apache-2.0 */
/* ops/adafactor/adafactor_avx512.c - adafactor_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_adafactor_fill_avx512
#include "ops/adafactor/adafactor_template.h"
