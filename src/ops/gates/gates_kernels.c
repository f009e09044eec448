/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates_kernels.c - selects the kernels for a CPU feature mask. */
#include "ops/gates/gates_kernels.h"

#include "base/cpu.h"

void hr_gates_kernels_fill(hr_gates_kernels *kernels, uint32_t cpu_mask)
{
    hr_gates_fill_ref(kernels);
    if (!(cpu_mask & HR_CPU_AVX2)) return;
    hr_gates_fill_avx2(kernels);
    if (!(cpu_mask & HR_CPU_AVX512)) return;
    hr_gates_fill_avx512(kernels);
}
