/* SPDX-License-Identifier: Apache-2.0 */
/* plan/timeline.h - the predicted time of a training step with transfers: a clock for each engine.
 *
 * Operations run one after the other on the compute engine, and transfers on the file engine, in
 * the order in which they begin. A transfer starts when it has begun and the engine is free;
 * compute goes on until the step that waits for it. */
#ifndef HR_PLAN_TIMELINE_H
#define HR_PLAN_TIMELINE_H

#include "plan/cost.h"

/* In the unit of costs (plan/cost.h); each at most INT64_MAX. */
typedef struct {
    int64_t compute;    /* all operations, without waiting */
    int64_t file;       /* all transfers, one after the other */
    int64_t step;       /* from the first operation to the end of the last */
    int64_t read_bytes; /* of weights of the base, in all iterations; not in the unit of costs */
} hr_timeline;

/* The sections fetch, norm, step and update of a program. Transfers are outside of loops that
 * repeat. */
hr_timeline hr_timeline_of(const hr_program *program, const hr_rates *rates);

#endif
