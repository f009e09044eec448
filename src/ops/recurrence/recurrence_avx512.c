/* SPDX-License-Identifier: Apache-2.0 */
/* ops/recurrence/recurrence_avx512.c - recurrence_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_recurrence_fill_avx512
#include "ops/recurrence/recurrence_template.h"
