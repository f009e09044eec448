/* SPDX-License-Identifier: Apache-2.0 */
/* ops/recurrence/recurrence_avx2.c - recurrence_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_recurrence_fill_avx2
#include "ops/recurrence/recurrence_template.h"
