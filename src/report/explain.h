/* SPDX-License-Identifier: Apache-2.0 */
/* report/explain.h - a plan as the table that people read, docs/reading-a-plan.md line by line. */
#ifndef HR_REPORT_EXPLAIN_H
#define HR_REPORT_EXPLAIN_H

#include "base/writer.h"
#include "headroom/plan.h"

/* What a run of this config comes to: its bytes and its time, what moves over a step, what is alive
 * at the peak and why, what would take bytes away. Prints what is in answer and details, and
 * nothing else.
 *
 *   colour, blocks  as in hr_plan_outputs */
void hr_explain_plan(const hr_config *config, const hr_plan_answer *answer,
                     const hr_plan_details *details, bool colour, bool blocks, hr_writer *writer);

/* What the run lacks, and what would make it fit. */
void hr_explain_refusal(const hr_config *config, const hr_plan_answer *answer,
                        const hr_plan_details *details, bool colour, hr_writer *writer);

/* "the fastest there is in these bytes": what is known about the time of a plan, in words. */
const char *hr_explain_certificate(const hr_plan_answer *answer);

#endif
