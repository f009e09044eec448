/* SPDX-License-Identifier: Apache-2.0 */
/* ops/compress/compress_kernels.c - selects the kernels for a CPU feature mask. */
#include "ops/compress/compress_kernels.h"

#include "base/cpu.h"

void hr_compress_kernels_fill(hr_compress_kernels *kernels, uint32_t cpu_mask)
{
    hr_compress_fill_ref(kernels);
    if (!(cpu_mask & HR_CPU_AVX2)) return;
    hr_compress_fill_avx2(kernels);
    if (!(cpu_mask & HR_CPU_AVX512)) return;
    hr_compress_fill_avx512(kernels);
}
