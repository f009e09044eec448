/* SPDX-License-Identifier: Apache-2.0 */
/* dev/device.h - the executor's half of a back end: what runs a step. The planner's half, which
 * says what a step needs, is graph/backend.h. */
#ifndef HR_DEV_DEVICE_H
#define HR_DEV_DEVICE_H

#include "graph/backend.h"
#include "ops/call.h"

/* The first member of a back end's own state. */
typedef struct hr_device {
    const hr_backend *backend; /* that its programs are planned for */

    /* Runs one step of such a program, and returns when its outputs are complete. `call` has
     * everything but kernels, phase and thread. */
    void (*launch)(const struct hr_device *device, const hr_program *program, int32_t step,
                   const hr_call *call);
} hr_device;

#endif
