/* SPDX-License-Identifier: Apache-2.0 */
/* planning/target.h - a device that is not here as a machine to plan for. Nothing of this machine
 * enters its plans, except that regions to plan in are opened here. */
#ifndef HR_PLANNING_TARGET_H
#define HR_PLANNING_TARGET_H

#include "admission/machine.h"
#include "headroom/devices.h"
#include "planning/measure.h"

/* Describes the machine of a device, or this machine for null.
 *
 *   memory, calibrations, measured  as for hr_measure */
hr_admission_machine hr_target(const hr_device_choice *device, hr_memory *memory,
                               const char *calibrations, hr_measured *measured);

/* Lowers memory.budget and memory.file_budget to what the device allows. Nothing for null. */
void hr_target_limit(const hr_device_choice *device, hr_config *config);

/* The config of a run there: limited, in a region of `memory`, since it is large for a stack. For
 * null, the same config. Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_target_config(const hr_device_choice *device, const hr_config *config,
                                         hr_memory *memory, const hr_config **there, hr_error *err);

#endif
