/* SPDX-License-Identifier: Apache-2.0 */
/* planning/target.c - fills in a machine from the facts of a device. */
#include "planning/target.h"

#include <stddef.h>

#include "base/checked.h"
#include "devices/device_rates.h"

/* Blocks of the driver's allocator, and pages of a cpu. */
enum { CARD_PAGE = 2 << 20, CPU_PAGE = 4096 };

/* A process on another machine beside its regions: the program and its libraries (8 to 14 MiB on
 * Linux distributions), the main stack, the heap, a stack of each thread with its guard, and the
 * counters of 32 processors. */
static const hr_process_base cpu_process = { .page_bytes = CPU_PAGE,
                                             .image_bytes = 14 << 20,
                                             .main_stack_bytes = 256 << 10,
                                             .heap_bytes = 1 << 20,
                                             .stack_bytes = 256 << 10,
                                             .counter_bytes = 2 * 64 * CPU_PAGE };

static hr_admission_needs no_needs(void *context, const hr_config *config)
{
    (void)context;
    (void)config;
    return (hr_admission_needs){ 0 };
}

static hr_status load_rates(void *context, const hr_backend *backend, uint32_t cpu_mask,
                            int32_t threads, hr_rates *rates, char source[HR_TIMES_TEXT_BYTES],
                            hr_error *err)
{
    const hr_measured *measured = context;
    (void)cpu_mask;
    (void)err;
    hr_device_rates(measured->device, backend, threads, rates, source, HR_TIMES_TEXT_BYTES);
    return HR_OK;
}

hr_admission_machine hr_target(const hr_device_choice *device, hr_memory *memory,
                               const char *calibrations, hr_measured *measured)
{
    hr_admission_machine machine = hr_measure(memory, calibrations, measured);
    if (!device) return machine;
    const bool card = device->device->kind == HR_DEVICE_GPU;
    measured->device = device->device;
    machine.device = device;
    machine.cpu_mask = hr_device_mask(device->device);
    machine.threads = card ? 1 : device->device->threads;
    machine.process = card ? (hr_process_base){ .page_bytes = CARD_PAGE } : cpu_process;
    machine.available_bytes = hr_device_budget(device);
    machine.memory_bytes = device->device->usable_bytes;
    machine.rates = load_rates;
    if (card) machine.needs = no_needs;
    return machine;
}

static int64_t lower(int64_t limit, int64_t most)
{
    if (!limit || !most) return limit ? limit : most;
    return hr_min(limit, most);
}

void hr_target_limit(const hr_device_choice *device, hr_config *config)
{
    if (!device) return;
    config->memory.budget = lower(config->memory.budget, hr_device_budget(device));
    config->memory.file_budget = lower(config->memory.file_budget, device->disk_bytes);
}

hr_status hr_target_config(const hr_device_choice *device, const hr_config *config,
                           hr_memory *memory, const hr_config **there, hr_error *err)
{
    hr_region region = { 0 };
    *there = config;
    if (!device) return HR_OK;
    const hr_status status = hr_memory_region_open(memory, "config", (int64_t)sizeof *config + 64,
                                                   &region, err);
    hr_config *copy = status == HR_OK ? hr_region_take(&region, 1, sizeof *copy) : NULL;
    if (!copy) return status;
    *copy = *config;
    hr_target_limit(device, copy);
    *there = copy;
    return HR_OK;
}
