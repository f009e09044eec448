/* SPDX-License-Identifier: Apache-2.0 */
/* report/stages.h - prints the stages of a run as a table, and the learning rate as a picture. */
#ifndef HR_REPORT_STAGES_H
#define HR_REPORT_STAGES_H

#include "base/writer.h"
#include "headroom/plan.h"
#include "report/style.h"

/* Prints a row for each stage: its batch, what its plan needs and does, its predicted time. Nothing
 * without stages. */
void hr_stages_put(const hr_plan_answer *answer, const hr_style *style, hr_writer *writer);

#endif
