/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_avx512.c - matrix products with AVX-512; bf16 operands are widened when packed.
 *
 * Passes: a once per 512 columns, B once per 516 rows if packed, results once. Registers:
 * linear_zmm.h. Bound: FMA. AMD Zen 4, 2 threads, d = 512, a busy machine, 2026-11: forward and dx
 * 87-92 % of it, 80-85 % if an epilogue reads two operands or computes GELU, dW 83-88 %. */
#include "ops/linear/linear_zmm.h"

#include "ops/linear/linear_few.h"

void hr_linear_mm_f32_avx512(const hr_linear_mm *mm)
{
    multiply_rows(WORDS_F32, mm);
}

void hr_linear_mm_bf16_avx512(const hr_linear_mm *mm)
{
    multiply_rows(WORDS_WIDENED, mm);
}

void hr_linear_dw_f32_avx512(const hr_linear_dw *dw)
{
    accumulate(WORDS_F32, dw);
}

void hr_linear_dw_bf16_avx512(const hr_linear_dw *dw)
{
    accumulate(WORDS_WIDENED, dw);
}

void hr_linear_db_f32_avx512(const hr_linear_db *db)
{
    sum_rows(HR_F32, db);
}

void hr_linear_db_bf16_avx512(const hr_linear_db *db)
{
    sum_rows(HR_BF16, db);
}

void hr_linear_mm_f16_avx512(const hr_linear_mm *mm)
{
    multiply_rows(WORDS_HALVES, mm);
}

void hr_linear_dw_f16_avx512(const hr_linear_dw *dw)
{
    accumulate(WORDS_HALVES, dw);
}

void hr_linear_db_f16_avx512(const hr_linear_db *db)
{
    sum_rows(HR_F16, db);
}
