/* SPDX-License-Identifier: Apache-2.0 */
/* run/reporting.h - what a run tells: progress, problems, its result. */
#ifndef HR_RUN_REPORTING_H
#define HR_RUN_REPORTING_H

#include "run/trainer.h"

/* Returns the error that ends a diverged run: what is not finite, which weights are saved, what to
 * try. */
hr_status hr_trainer_diverged(hr_trainer *trainer, const char *what, hr_error *err);

/* Sets the result of a run from its state. */
void hr_trainer_take_result(hr_train_result *result, const hr_run_state *state);

/* Reports the progress of work between the steps. */
void hr_trainer_report_progress(const hr_trainer *trainer, const char *work, int64_t done,
                                int64_t total);

/* Reports a problem; the run continues. */
void hr_trainer_trouble(hr_trainer *trainer, const char *line);

/* Reports the memory that the process uses, compared with the plan: to train.out and to the
 * events. */
void hr_trainer_report_memory(hr_trainer *trainer);

#endif
