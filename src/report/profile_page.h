/* SPDX-License-Identifier: Apache-2.0 */
/* report/profile_page.h - a profile as a page: the tables of the text with bars of measured and
 * planned times, and the planned bytes over the step beside those that were measured. */
#ifndef HR_REPORT_PROFILE_PAGE_H
#define HR_REPORT_PROFILE_PAGE_H

#include "headroom/profile.h"

/* Errors as hr_html_open and hr_html_close.
 *   details  of the program that ran; without a curve the page has no chart */
HR_MUST_CHECK hr_status hr_profile_page_write(const char *path, const hr_config *config,
                                              const hr_profile_report *report,
                                              const hr_plan_details *details, hr_error *err);

#endif
