/* SPDX-License-Identifier: Apache-2.0 */
/* report/html_step.h - the chart of planned bytes over a training step, as areas of components. */
#ifndef HR_REPORT_HTML_STEP_H
#define HR_REPORT_HTML_STEP_H

#include "headroom/plan.h"
#include "report/html.h"

/* A dashed line across the chart and its label. */
typedef struct {
    const char *name;
    int64_t bytes;
    bool right, above;   /* where the label is: at the left end below the line without them */
    const int64_t *over; /* [curve_count] of each part of the step; null: `bytes` in all */
} hr_html_limit;

/* Draws nothing if details have no curve.
 *
 *   outside  bytes of the process outside of the arena, below all components
 *   limits   [limit_count]; the chart ends above the highest */
void hr_html_put_step(hr_html *page, const hr_plan_details *details, int64_t outside,
                      const hr_html_limit *limits, int32_t limit_count);

#endif
