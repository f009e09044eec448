/* SPDX-License-Identifier: Apache-2.0 */
/* dev/cpu.h - runs steps on the threads of a pool. */
#ifndef HR_DEV_CPU_H
#define HR_DEV_CPU_H

#include "dev/device.h"
#include "dev/pool.h"
#include "ops/kernels.h"

typedef struct {
    hr_device device;
    hr_pool *pool;
    hr_kernels kernels;
} hr_cpu_device;

/* The device that runs steps on an open pool with the kernels for a CPU feature mask
 * (base/cpu.h). */
void hr_cpu_device_open(hr_cpu_device *cpu, hr_pool *pool, uint32_t cpu_mask);

#endif
