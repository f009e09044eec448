/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_avx512bf16.c - update_template.h with AVX-512 and VBMI, which the processors of
 * this rung have too. Its own conversion to bf16 makes zeros of denormals: weights keep them. */
#include <immintrin.h>
#undef __AVX512BF16__
#include "ops/update/codes_avx512.h"

#define FILL hr_update_fill_avx512bf16
#include "ops/update/update_template.h"
