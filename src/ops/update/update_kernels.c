/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_kernels.c - selects the kernels for a CPU feature mask. */
#include "ops/update/update_kernels.h"

#include "base/cpu.h"

void hr_update_kernels_fill(hr_update_kernels *kernels, uint32_t cpu_mask)
{
    hr_update_fill_ref(kernels);
    if (!(cpu_mask & HR_CPU_AVX2)) return;
    hr_update_fill_avx2(kernels);
    if (!(cpu_mask & HR_CPU_AVX512)) return;
    hr_update_fill_avx512(kernels);
    if (cpu_mask & HR_CPU_AVX512BF16) hr_update_fill_avx512bf16(kernels);
}
