/* SPDX-License-Identifier: Apache-2.0 */
/* dev/devices.h - the devices of this build: for each back end, the one that runs its programs. */
#ifndef HR_DEV_DEVICES_H
#define HR_DEV_DEVICES_H

#include "dev/cpu.h"

/* The state of the device of each back end. Only the one that is open is set. */
typedef struct {
    hr_cpu_device cpu;
} hr_devices;

/* Opens the device for programs of a back end.
 *
 *   pool      open; of a device that is not the CPU, the threads of its host
 *   features  of the machine, as for hr_rates_guess (plan/cost.h)
 *   device    out; valid as long as `devices` and the pool
 *
 * Errors   USAGE  this build can plan for the back end, but has no device that runs it. */
HR_MUST_CHECK hr_status hr_device_open(hr_devices *devices, const hr_backend *backend,
                                       hr_pool *pool, uint32_t features, const hr_device **device,
                                       hr_error *err);

#endif
