/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates_avx512.c - gates_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

#define FILL hr_gates_fill_avx512
#include "ops/gates/gates_template.h"
