/* SPDX-License-Identifier: Apache-2.0 */
/* ops/recurrence/recurrence_avx512bf16.c - recurrence_template.h with AVX-512, with the rounding of
 * AVX512-BF16. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_recurrence_fill_avx512bf16
#include "ops/recurrence/recurrence_template.h"
