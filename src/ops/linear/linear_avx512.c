/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_avx512.c - matrix products on AVX-512, bf16 operands widened when packed.
 *
 * Passes: a once per 512 columns, B once per 516 rows, results once. Registers: linear_zmm.h.
 * Bound: FMA. */
#include "ops/linear/linear_zmm.h"

#include "ops/linear/linear_template.h"

void hr_linear_mm_f32_avx512(const hr_linear_mm *mm)
{
    multiply(WORDS_F32, mm);
}

void hr_linear_mm_bf16_avx512(const hr_linear_mm *mm)
{
    multiply(WORDS_WIDENED, mm);
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
