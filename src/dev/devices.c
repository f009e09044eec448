/* SPDX-License-Identifier: Apache-2.0 */
/* dev/devices.c - the table of devices. */
#include "dev/devices.h"

#include "ops/cpu.h"

static const hr_device *open_cpu(hr_devices *devices, hr_pool *pool, uint32_t features)
{
    hr_cpu_device_open(&devices->cpu, pool, features);
    return &devices->cpu.device;
}

static const struct {
    const hr_backend *backend;
    const hr_device *(*open)(hr_devices *devices, hr_pool *pool, uint32_t features);
} rows[] = { { &hr_cpu_backend, open_cpu } };

hr_status hr_device_open(hr_devices *devices, const hr_backend *backend, hr_pool *pool,
                         uint32_t features, const hr_device **device, hr_error *err)
{
    const int32_t count = sizeof rows / sizeof *rows;
    int32_t i = 0;
    while (i < count && rows[i].backend != backend) i++;
    if (i == count)
        return hr_fail(err, HR_USAGE, "this build plans for the %s back end, but does not run it",
                       backend->name);
    *device = rows[i].open(devices, pool, features);
    return HR_OK;
}
