/* SPDX-License-Identifier: Apache-2.0 */
/* admission/queries.h - the questions of headroom/plan_queries.h, about a machine that the caller
 * describes. Answers, text and errors are as there; question->calibrations is not used. */
#ifndef HR_ADMISSION_QUERIES_H
#define HR_ADMISSION_QUERIES_H

#include "admission/machine.h"
#include "headroom/plan_queries.h"

HR_MUST_CHECK hr_status hr_query_largest(const hr_admission_machine *machine,
                                         const hr_config *config, const char *key,
                                         const hr_plan_query *question, hr_largest *answer,
                                         hr_error *err);

HR_MUST_CHECK hr_status hr_query_smallest(const hr_admission_machine *machine,
                                          const hr_config *config, double slowdown,
                                          const hr_plan_query *question, hr_smallest *answer,
                                          hr_error *err);

HR_MUST_CHECK hr_status hr_query_frontier(const hr_admission_machine *machine,
                                          const hr_config *config, const char *svg,
                                          const hr_plan_query *question, hr_frontier *answer,
                                          hr_error *err);

#endif
