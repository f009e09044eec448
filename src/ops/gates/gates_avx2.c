/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates_avx2.c - gates_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

#define FILL hr_gates_fill_avx2
#include "ops/gates/gates_template.h"
