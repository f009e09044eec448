/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/machine.h - the back end, kernels and threads that a request selects. */
#ifndef HR_CALIBRATE_MACHINE_H
#define HR_CALIBRATE_MACHINE_H

#include "graph/backend.h"
#include "headroom/calibrate.h"

/* Sets the back end, the CPU mask of the kernels and the number of threads of a request.
 * Errors   USAGE  more threads than the maximum; an unknown kernel name, or kernels that this
 *          processor does not support. */
HR_MUST_CHECK hr_status hr_calibrate_machine(const hr_calibrate_request *request,
                                             const hr_backend **backend, uint32_t *mask,
                                             int32_t *threads, hr_error *err);

#endif
