/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dropout/dropout_kernels.c - selects the kernels for a CPU feature mask. */
#include "ops/dropout/dropout_kernels.h"

#include "base/cpu.h"

void hr_dropout_kernels_fill(hr_dropout_kernels *kernels, uint32_t cpu_mask)
{
    hr_dropout_fill_ref(kernels);
    if (!(cpu_mask & HR_CPU_AVX2)) return;
    hr_dropout_fill_avx2(kernels);
    if (!(cpu_mask & HR_CPU_AVX512)) return;
    hr_dropout_fill_avx512(kernels);
}
