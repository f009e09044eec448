/* SPDX-License-Identifier: Apache-2.0 */
/* planning/measure.h - this machine and this process, as admission/machine.h describes them. */
#ifndef HR_PLANNING_MEASURE_H
#define HR_PLANNING_MEASURE_H

#include "admission/machine.h"
#include "mem/memory.h"

typedef struct {
    hr_memory *memory;
    const char *calibrations;
    const hr_device_facts *device; /* set by hr_target; null: this machine */
} hr_measured;

/* Regions of a run of this config, on any machine. */
hr_admission_needs hr_measure_needs(const hr_config *config);

/* Describes this machine. Limits are those of now.
 *
 *   memory        open; regions are opened in it
 *   calibrations  directory of calibrations; null: rates are estimates
 *   measured      out; the machine refers to it */
hr_admission_machine hr_measure(hr_memory *memory, const char *calibrations, hr_measured *measured);

#endif
