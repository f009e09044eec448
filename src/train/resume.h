/* SPDX-License-Identifier: Apache-2.0 */
/* train/resume.h - what a run goes on from: the newest whole checkpoint of its folder. */
#ifndef HR_TRAIN_RESUME_H
#define HR_TRAIN_RESUME_H

#include "ckpt/checkpoint_store.h"
#include "headroom/train.h"

/* All zeros but what hr_resume_enter writes: nothing was found. */
typedef struct {
    bool found;
    bool changed;                   /* the recipe differs from the run's, in a way that may be */
    char place[HR_STEP_PATH_BYTES]; /* of the checkpoint */
    hr_manifest manifest;           /* its */
} hr_resume;

/* Where train.out has checkpoints: locks it, removes what a killed run left half made, and finds
 * the newest whole one. Every file is read and held against its hash; one that is damaged is told,
 * and an older one is taken. The recipe has to be the same in what matters, or the change be
 * allowed: each is told.
 *
 *   lock    out, for hr_file_close; as it was where there are no checkpoints
 *   resume  out; not found: there are no checkpoints, or options->fresh
 *
 * Errors   USAGE    the recipe is another; another run is in the folder; a run was, and all its
 *                   checkpoints are gone; the folder has another model, as hr_folder_check
 *          CORRUPT  there are checkpoints, and none of them is whole
 *          INTERRUPTED, FAILURE. */
HR_MUST_CHECK hr_status hr_resume_enter(const hr_config *config, const hr_train_options *options,
                                        int *lock, hr_resume *resume, hr_error *err);

/* That checkpoints can be put into train.out, as hr_directory_check: a run that could not save does
 * not begin. */
HR_MUST_CHECK hr_status hr_resume_check_writable(const hr_config *config, hr_error *err);

/* Locks train.out, which is there by now, unless that was done. Errors USAGE, FAILURE. */
HR_MUST_CHECK hr_status hr_resume_lock(const hr_config *config, int *lock, hr_error *err);

/* Whether a key of the recipe may be another than it was. */
bool hr_resume_allows(const hr_train_options *options, const char *key);

/* Whether the run that was found had come to its end, down to the last line of its log. */
bool hr_resume_is_done(const hr_resume *resume, const hr_config *config,
                       const hr_train_options *options);

/* Says where the run goes on, and whether other kernels computed what was, or the learning rate
 * follows a schedule of another length from here on.
 *   steps  of the whole run, as the recipe has it now */
void hr_resume_report(const hr_resume *resume, const hr_config *config,
                      const hr_train_options *options, const char *rung, int64_t steps);

/* That the texts are those of before. Errors USAGE. */
HR_MUST_CHECK hr_status hr_resume_check_texts(const hr_resume *resume, const hr_config *config,
                                              const hr_train_options *options,
                                              const char *train_text, const char *valid_text,
                                              hr_error *err);

/* That a run could go on from a checkpoint with that manifest, which no hash says: it names a
 * recipe and what a run of that recipe lays down, and has whole statistics.
 * Errors   CORRUPT  it does not. USAGE  the recipe is none that this program reads. FAILURE. */
HR_MUST_CHECK hr_status hr_resume_check_manifest(const char *place, const hr_manifest *manifest,
                                                 hr_error *err);

/* Whether the guard of a run can go on with the numbers that a state has of it. Pure. */
bool hr_resume_has_statistics(const hr_run_state *state);

/* Removes the checkpoints that a run which ended had still to remove. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_resume_prune(const hr_resume *resume, const hr_config *config,
                                        hr_error *err);

/* Removes all checkpoints of a folder: a run that starts over is not to be taken for the one
 * before. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_resume_remove_checkpoints(const hr_config *config, hr_error *err);

#endif
