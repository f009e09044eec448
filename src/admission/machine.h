/* SPDX-License-Identifier: Apache-2.0 */
/* admission/machine.h - what an admission is told about the machine and the run, by its caller. So
 * it can admit for another machine, and plans with no memory of its own. planning/measure.h
 * describes this machine. */
#ifndef HR_ADMISSION_MACHINE_H
#define HR_ADMISSION_MACHINE_H

#include "base/account.h"
#include "config/config.h"
#include "graph/rates.h"
#include "headroom/devices.h"
#include "headroom/plan.h"

/* Regions of a run that are not for its plan, in bytes. */
typedef struct {
    int64_t prepare_bytes; /* for tokenizing, before the arena */
    int64_t reading_bytes; /* for finding the weights of model.from, before the arena */
    int64_t run_bytes;     /* tables and buffers of the run, a region of its own */
} hr_admission_needs;

typedef struct {
    /* A device that is not here, with the budget of a run in memory.budget; null: this machine. */
    const hr_device_choice *device;
    uint32_t cpu_mask; /* base/cpu.h */
    int32_t threads;   /* of a run whose recipe names none */
    hr_process_base process;
    int64_t available_bytes; /* for a process without a budget */
    int64_t memory_bytes;    /* of the machine, or of its cgroup */
    void *context;           /* of the functions */

    hr_admission_needs (*needs)(void *context, const hr_config *config);

    /* Returns the rates for kernels and threads, and their source as text. Errors CORRUPT. */
    hr_status (*rates)(void *context, const hr_backend *backend, uint32_t cpu_mask, int32_t threads,
                       hr_rates *rates, char source[HR_TIMES_TEXT_BYTES], hr_error *err);

    /* Replaces *region, which may be empty, by an empty one of at least `bytes`. The admission
     * never closes it.
     *   name     what it is for
     *   touched  every page must be resident, because a run follows in this process
     * Errors   NO_FIT. */
    hr_status (*open)(void *context, const char *name, int64_t bytes, bool touched,
                      hr_region *region, hr_error *err);
} hr_admission_machine;

/* Whether the arena is in the memory of a card, and the rest of the process elsewhere. */
static inline bool hr_admission_is_card(const hr_admission_machine *machine)
{
    return machine->device && machine->device->device->kind == HR_DEVICE_GPU;
}

#endif
