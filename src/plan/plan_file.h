/* SPDX-License-Identifier: Apache-2.0 */
/* plan/plan_file.h - a plan as a JSON file for independent verification.
 *
 * docs/plan-file.md has the schema. The file has everything that determines lifetimes: loops,
 * homes, reads and writes. */
#ifndef HR_PLAN_PLAN_FILE_H
#define HR_PLAN_PLAN_FILE_H

#include "plan/plan.h"

enum { HR_PLAN_FILE_VERSION = 2 };

/* Checks that a plan can be written to `path`: the path is free or holds an earlier plan.
 *
 * Errors   USAGE    the directory is missing, or the file is not a plan.
 *          FAILURE  the directory cannot be written. */
HR_MUST_CHECK hr_status hr_plan_file_check(const char *path, hr_error *err);

/* Writes the plan of a program to `path`. The bytes depend only on these two.
 *
 * Errors   USAGE    the directory is missing or cannot be written.
 *          FAILURE  the disk is full or failed. No partial file remains. */
HR_MUST_CHECK hr_status hr_plan_file_write(const char *path, const hr_program *program,
                                           const hr_plan *plan, hr_error *err);

#endif
