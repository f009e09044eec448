/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_kernels.c - climbs the ladder. */
#include "ops/update/update_kernels.h"

#include "base/cpu.h"

void hr_update_kernels_fill(hr_update_kernels *kernels, uint32_t cpu_mask)
{
    (void)cpu_mask;
    hr_update_fill_ref(kernels);
}
