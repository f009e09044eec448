/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss_avx512bf16.c - loss_template.h with AVX-512, with the rounding of AVX512-BF16. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_loss_fill_avx512bf16
#include "ops/loss/loss_template.h"
