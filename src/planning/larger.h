/* SPDX-License-Identifier: Apache-2.0 */
/* planning/larger.h - which device of the table would hold a run that a smaller one does not. */
#ifndef HR_PLANNING_LARGER_H
#define HR_PLANNING_LARGER_H

#include "admission/admit.h"
#include "mem/memory.h"

/* Finds the device with the least memory that holds the smallest plan of a refused config, and
 * writes it to answer.device.larger and larger_bytes of the admission. First among devices of the
 * same group, such as laptops, then among cards for the slot of a machine: never a board for a
 * card. Writes nothing without a device, or if none holds it.
 *
 *   admission  refused; its plan is overwritten */
void hr_larger_find(const hr_device_choice *device, const hr_config *config, hr_memory *memory,
                    hr_admission *admission);

#endif
