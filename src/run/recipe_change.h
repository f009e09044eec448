/* SPDX-License-Identifier: Apache-2.0 */
/* run/recipe_change.h - whether a run may go on with another recipe than its checkpoint's. */
#ifndef HR_RUN_RECIPE_CHANGE_H
#define HR_RUN_RECIPE_CHANGE_H

#include "run/resume.h"

/* Returns whether options allow a key of the recipe to change. */
bool hr_recipe_change_allows(const hr_train_options *options, const char *key);

/* Reports a key whose change is refused. */
void hr_recipe_change_refuse(const hr_train_options *options, const char *key);

/* Compares the recipe of the checkpoint in `resume` with that of the run, and reports each
 * difference. Sets resume->changed, resume->only_fewer_steps and resume->reformats.
 *
 *   memory  open; a region of it compares the models, and is closed again
 *
 * Errors   USAGE  a difference is not allowed, or the checkpoint does not fit the model. */
HR_MUST_CHECK hr_status hr_recipe_change_check(hr_memory *memory, const hr_config *before,
                                               const hr_config *now,
                                               const hr_train_options *options, hr_resume *resume,
                                               hr_error *err);

/* Writes the files of the checkpoint whose formats differ to resume->reformatted, and reports what
 * each loses.
 *   memory  open; two regions of it are closed again
 * Errors   as hr_reformat_write; NO_FIT. */
HR_MUST_CHECK hr_status hr_recipe_change_reformat(hr_memory *memory, const hr_config *before,
                                                  const hr_config *now,
                                                  const hr_train_options *options,
                                                  const hr_resume *resume, hr_error *err);

#endif
