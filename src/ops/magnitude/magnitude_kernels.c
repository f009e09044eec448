/* SPDX-License-Identifier: Apache-2.0 */
/* ops/magnitude/magnitude_kernels.c - selects the kernels for a CPU feature mask. */
#include "ops/magnitude/magnitude_kernels.h"

#include "base/cpu.h"

void hr_magnitude_kernels_fill(hr_magnitude_kernels *kernels, uint32_t cpu_mask)
{
    hr_magnitude_fill_ref(kernels);
    if (!(cpu_mask & HR_CPU_AVX2)) return;
    hr_magnitude_fill_avx2(kernels);
    if (!(cpu_mask & HR_CPU_AVX512)) return;
    hr_magnitude_fill_avx512(kernels);
    if (!(cpu_mask & HR_CPU_AVX512BF16)) return;
    hr_magnitude_fill_avx512bf16(kernels);
}
