/* SPDX-License-Identifier: Apache-2.0 */
/* cli/audit_files.h - the two halves of headroom audit for recipes and training files.
 *
 * A plan for this machine counts what the process has mapped. So it is made while nothing of the
 * audit is in memory, and equals that of headroom plan. */
#ifndef HR_CLI_AUDIT_FILES_H
#define HR_CLI_AUDIT_FILES_H

#include "cli.h"
#include "headroom/audit.h"
#include "headroom/plan.h"

typedef struct {
    hr_device_choice choice;
    const hr_device_choice *device; /* null: this machine */
    hr_device_list *own;            /* of --device-file, for free(); or null */
    hr_plan_answer answer;          /* if status is OK or NO_FIT */
    hr_status status;
    hr_error error;
} hr_cli_audit_plan;

/* Chooses the device and plans. What planning refuses is in `plan`. Errors USAGE, FAILURE. */
HR_MUST_CHECK hr_status hr_cli_audit_make_plan(const hr_cli_arguments *arguments,
                                               const hr_config *config, hr_cli_audit_plan *plan,
                                               hr_error *err);

/* Estimates and prints. Errors NO_FIT, and those of the estimate and of a recipe's plan. */
HR_MUST_CHECK hr_status hr_cli_audit_print(const hr_cli_arguments *arguments,
                                           const hr_audit_report *report,
                                           const hr_cli_audit_plan *plan, hr_error *err);

#endif
