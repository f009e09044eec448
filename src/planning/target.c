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

int64_t hr_target_host_bytes(const hr_config *config)
{
    const hr_process_base *base = &cpu_process;
    const hr_admission_needs needs = hr_measure_needs(config);
    const int64_t regions = hr_max(needs.prepare_bytes, needs.reading_bytes + needs.run_bytes);
    return base->image_bytes + base->main_stack_bytes + base->heap_bytes + base->counter_bytes +
           hr_round_up(regions, base->page_bytes);
}

hr_status hr_target_check_host(const hr_device_choice *device, const hr_config *config,
                               hr_error *err)
{
    char needs[64], there[64];
    if (!device || !device->host_bytes || device->device->kind != HR_DEVICE_GPU) return HR_OK;
    const int64_t needed = hr_target_host_bytes(config);
    if (needed <= device->host_bytes) return HR_OK;
    return hr_fail(err, HR_NO_FIT,
                   "the process needs %s of host memory outside its arena, host= of %s is %s",
                   hr_bytes_print(needed, needs), device->device->name,
                   hr_bytes_print(device->host_bytes, there));
}

hr_status hr_target_check_disk(const hr_config *config, const hr_plan_disk *disk,
                               hr_plan_device *device, hr_error *err)
{
    char needs[64], there[64];
    if (!*device->name) return HR_OK;
    if (device->is_card) device->host_needed_bytes = hr_target_host_bytes(config);
    device->disk_needed_bytes = disk->moments_bytes + disk->spilled_bytes + disk->base_bytes;
    if (config->train.out[0])
        device->disk_needed_bytes += disk->bytes + hr_max(disk->shard_bytes, 0);
    if (!device->disk_bytes || device->disk_needed_bytes <= device->disk_bytes) return HR_OK;
    return hr_fail(err, HR_NO_FIT,
                   "the run %s up to %s of checkpoints, logs, shards and moments%s, disk= of %s "
                   "is %s; lower train.keep_last, or write no checkpoints",
                   disk->base_bytes ? "has" : "writes",
                   hr_bytes_print(device->disk_needed_bytes, needs),
                   disk->base_bytes ? ", and weights that stay in files" : "", device->name,
                   hr_bytes_print(device->disk_bytes, there));
}

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
    hr_status status = hr_target_check_host(device, config, err);
    if (status == HR_OK)
        status = hr_memory_region_open(memory, "config", (int64_t)sizeof *config + 64, &region,
                                       err);
    hr_config *copy = status == HR_OK ? hr_region_take(&region, 1, sizeof *copy) : NULL;
    if (!copy) return status;
    *copy = *config;
    hr_target_limit(device, copy);
    *there = copy;
    return HR_OK;
}
