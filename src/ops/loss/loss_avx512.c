/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss_avx512.c - loss_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_loss_fill_avx512
#include "ops/loss/loss_template.h"
