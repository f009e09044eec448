/* SPDX-License-Identifier: Apache-2.0 */
/* report/page.h - a plan, or a refusal, as one HTML file without scripts, fonts or links: live
 * bytes over the step below the budget, and the tables of the text. */
#ifndef HR_REPORT_PAGE_H
#define HR_REPORT_PAGE_H

#include "headroom/plan.h"

/* Errors as hr_file_begin_path and hr_file_append. */
HR_MUST_CHECK hr_status hr_page_write(const char *path, const hr_config *config,
                                      const hr_plan_answer *answer, const hr_plan_details *details,
                                      hr_error *err);

#endif
