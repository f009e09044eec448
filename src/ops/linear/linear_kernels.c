/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_kernels.c - selects the kernels of matrix products for a CPU feature mask. */
#include "ops/linear/linear_kernels.h"

#include "base/cpu.h"

void hr_linear_kernels_fill(hr_linear_kernels *kernels, uint32_t cpu_mask)
{
    hr_linear_typed *f32 = &kernels->of[HR_F32], *bf16 = &kernels->of[HR_BF16];
    hr_linear_typed *f16 = &kernels->of[HR_F16];
    *f32 = (hr_linear_typed){ hr_linear_mm_f32_ref, hr_linear_dw_f32_ref, hr_linear_db_f32_ref, 2 };
    *bf16 = (hr_linear_typed){ hr_linear_mm_bf16_ref, hr_linear_dw_bf16_ref, hr_linear_db_bf16_ref,
                               2 };
    *f16 = (hr_linear_typed){ hr_linear_mm_f16_ref, hr_linear_dw_f16_ref, hr_linear_db_f16_ref, 2 };
    if (!(cpu_mask & HR_CPU_AVX2)) return;
    *f32 = (hr_linear_typed){ hr_linear_mm_f32_avx2, hr_linear_dw_f32_avx2, hr_linear_db_f32_avx2,
                              6 };
    *bf16 = (hr_linear_typed){ hr_linear_mm_bf16_avx2, hr_linear_dw_bf16_avx2,
                               hr_linear_db_bf16_avx2, 6 };
    *f16 = (hr_linear_typed){ hr_linear_mm_f16_avx2, hr_linear_dw_f16_avx2, hr_linear_db_f16_avx2,
                              6 };
    if (!(cpu_mask & HR_CPU_AVX512)) return;
    *f32 = (hr_linear_typed){ hr_linear_mm_f32_avx512, hr_linear_dw_f32_avx512,
                              hr_linear_db_f32_avx512, 12 };
    *bf16 = (hr_linear_typed){ hr_linear_mm_bf16_avx512, hr_linear_dw_bf16_avx512,
                               hr_linear_db_bf16_avx512, 12 };
    *f16 = (hr_linear_typed){ hr_linear_mm_f16_avx512, hr_linear_dw_f16_avx512,
                              hr_linear_db_f16_avx512, 12 };

    /* On Intel vdpbf16ps has half the throughput of fp32 products, so it is used only without AMX.
     * The AMX kernels need AVX512-BF16 for conversions. */
    if (!(cpu_mask & HR_CPU_AVX512BF16)) return;
    bf16->mm = hr_linear_mm_bf16_avx512bf16;
    bf16->dw = hr_linear_dw_bf16_avx512bf16;
    if (!(cpu_mask & HR_CPU_AMX)) return;
    *bf16 = (hr_linear_typed){ hr_linear_mm_bf16_amx, hr_linear_dw_bf16_amx,
                               hr_linear_db_bf16_avx512, 32, true };
}
