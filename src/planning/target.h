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

/* Bytes of a process outside its arena, in the host memory of a card: the program, the tables of
 * the run, and what tokenizing and reading weights need. */
int64_t hr_target_host_bytes(const hr_config *config);

/* Refuses a card whose host= does not hold the process outside its arena. Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_target_check_host(const hr_device_choice *device,
                                             const hr_config *config, hr_error *err);

/* Fills device->host_needed_bytes and disk_needed_bytes of a plan for a device; nothing for one of
 * this machine. Refuses a disk= that does not hold the latter.
 *
 *   disk  of the run
 *
 * Errors   NO_FIT. */
HR_MUST_CHECK hr_status hr_target_check_disk(const hr_config *config, const hr_plan_disk *disk,
                                             hr_plan_device *device, hr_error *err);

/* The config of a run there: limited, in a region of `memory`, since it is large for a stack. For
 * null, the same config. Errors NO_FIT, also as hr_target_check_host. */
HR_MUST_CHECK hr_status hr_target_config(const hr_device_choice *device, const hr_config *config,
                                         hr_memory *memory, const hr_config **there, hr_error *err);

#endif
