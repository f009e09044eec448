/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss_avx2.c - loss_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_loss_fill_avx2
#include "ops/loss/loss_template.h"
