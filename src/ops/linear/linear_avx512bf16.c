/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_avx512bf16.c - bf16 matrix products with vdpbf16ps, two products per lane.
 *
 * Passes: a once per 512 columns, B once per 516 rows if packed, results once. Registers:
 * linear_zmm.h. Bound: vdpbf16ps. AMD Zen 4, 2 threads, d = 512, a busy machine, 2026-11: forward
 * and dx 90-94 % of it, 86-92 % with GELU or two operands to read, dW 82-89 %. */
#define LINEAR_AVX512BF16
#include "ops/linear/linear_zmm.h"

#include "ops/linear/linear_few.h"

void hr_linear_mm_bf16_avx512bf16(const hr_linear_mm *mm)
{
    multiply_rows(WORDS_PAIRS, mm);
}

void hr_linear_dw_bf16_avx512bf16(const hr_linear_dw *dw)
{
    accumulate(WORDS_PAIRS, dw);
}
