/* SPDX-License-Identifier: Apache-2.0 */
/* ops/choose/choose_kernels.c - selects the kernels for a CPU feature mask. */
#include "ops/choose/choose_kernels.h"

#include "base/cpu.h"

void hr_choose_kernels_fill(hr_choose_kernels *kernels, uint32_t cpu_mask)
{
    hr_choose_fill_ref(kernels);
    if (!(cpu_mask & HR_CPU_AVX2)) return;
    hr_choose_fill_avx2(kernels);
    if (!(cpu_mask & HR_CPU_AVX512)) return;
    hr_choose_fill_avx512(kernels);
}
