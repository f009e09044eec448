/* SPDX-License-Identifier: Apache-2.0 */
/* ops/embed/embed_kernels.c - climbs the ladder. */
#include "ops/embed/embed_kernels.h"

#include "base/cpu.h"

void hr_embed_kernels_fill(hr_embed_kernels *kernels, uint32_t cpu_mask)
{
    (void)cpu_mask;
    hr_embed_fill_ref(kernels);
}
