/* SPDX-License-Identifier: Apache-2.0 */
/* report/explain.h - prints a plan as a table; docs/reading-a-plan.md explains each line. */
#ifndef HR_REPORT_EXPLAIN_H
#define HR_REPORT_EXPLAIN_H

#include "base/writer.h"
#include "headroom/plan.h"

/* Prints process memory and step time of a run, live bytes over a step, the components of the peak,
 * and the changes that reduce memory. Prints only the contents of answer and details.
 *
 *   colour, blocks  as in hr_plan_outputs */
void hr_explain_plan(const hr_config *config, const hr_plan_answer *answer,
                     const hr_plan_details *details, bool colour, bool blocks, hr_writer *writer);

/* Prints how much memory is missing, and the changes that make the run fit. */
void hr_explain_refusal(const hr_config *config, const hr_plan_answer *answer,
                        const hr_plan_details *details, bool colour, hr_writer *writer);

/* What a change costs: time, or what its price says. Returns text. */
enum { HR_CHANGE_COST_BYTES = HR_PLAN_CHANGE_BYTES + 64 };
const char *hr_change_cost_print(const hr_plan_change *change, char text[HR_CHANGE_COST_BYTES]);

#endif
