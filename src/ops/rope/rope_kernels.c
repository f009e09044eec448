/* SPDX-License-Identifier: Apache-2.0 */
/* ops/rope/rope_kernels.c - selects the kernels for a CPU feature mask. */
#include "ops/rope/rope_kernels.h"

#include "base/cpu.h"

void hr_rope_kernels_fill(hr_rope_kernels *kernels, uint32_t cpu_mask)
{
    hr_rope_fill_ref(kernels);
    if (!(cpu_mask & HR_CPU_AVX2)) return;
    hr_rope_fill_avx2(kernels);
    if (!(cpu_mask & HR_CPU_AVX512)) return;
    hr_rope_fill_avx512(kernels);
}
