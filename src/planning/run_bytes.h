/* SPDX-License-Identifier: Apache-2.0 */
/* planning/run_bytes.h - the memory of a run beside its arena, program and plan. */
#ifndef HR_PLANNING_RUN_BYTES_H
#define HR_PLANNING_RUN_BYTES_H

#include "config/config.h"

/* Bytes of the region for the tables and buffers of a run: executor, data, log, checkpoints,
 * samples. Pure. */
int64_t hr_run_bytes(const hr_config *config);

#endif
