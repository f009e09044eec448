/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/machine.h - what a request asks the machine to be. */
#ifndef HR_CALIBRATE_MACHINE_H
#define HR_CALIBRATE_MACHINE_H

#include "headroom/calibrate.h"

/* Kernels and threads that a request means.
 * Errors   USAGE  more threads than there may be; kernels that there are not. */
HR_MUST_CHECK hr_status hr_calibrate_machine(const hr_calibrate_request *request, uint32_t *mask,
                                             int32_t *threads, hr_error *err);

#endif
