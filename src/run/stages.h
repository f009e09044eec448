/* SPDX-License-Identifier: Apache-2.0 */
/* run/stages.h - moves a run from one stage to the next: its program, its batches, its position in
 * the texts. */
#ifndef HR_RUN_STAGES_H
#define HR_RUN_STAGES_H

#include "run/trainer.h"

/* Checks what the texts have for the stages, and counts the steps of the run.
 *
 *   steps  out
 *
 * Errors   USAGE  the passes over the text end before the last stage begins. */
HR_MUST_CHECK hr_status hr_trainer_count_stages(const hr_trainer *trainer, int64_t *steps,
                                                hr_error *err);

/* Puts the program of the stage of a step in place, and lets the batches go on in that stage. Does
 * nothing if they are there, or the run has no stages. Allocates nothing.
 *
 *   step  of which the work is next: the next step, or the last one for the work after it
 *
 * Errors   as hr_stage_set_compile. */
HR_MUST_CHECK hr_status hr_trainer_enter_stage(hr_trainer *trainer, int64_t step, hr_error *err);

#endif
