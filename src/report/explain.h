/* SPDX-License-Identifier: Apache-2.0 */
/* report/explain.h - a plan, a refusal and a step program as text for people. */
#ifndef HR_REPORT_EXPLAIN_H
#define HR_REPORT_EXPLAIN_H

#include "headroom/plan.h"
#include "plan/compile.h"

/* What the process uses by line, what the arena holds by kind, and what is alive at the peak step.
 *
 *   text  [bytes] out, terminated; cut where it is full */
void hr_explain_plan(const hr_config *config, const hr_compiled *compiled,
                     const hr_plan_answer *answer, char *text, int64_t bytes);

/* The step program: a line a step, indented by loop. */
void hr_explain_program(const hr_compiled *compiled, char *text, int64_t bytes);

/* What a step is in words: "layer 3 backward, attention". */
void hr_explain_step(const hr_program *program, int32_t step, char text[96]);

#endif
