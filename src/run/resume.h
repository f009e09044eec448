/* SPDX-License-Identifier: Apache-2.0 */
/* run/resume.h - finds the checkpoint that a run resumes from: the newest intact one in its
 * folder. */
#ifndef HR_RUN_RESUME_H
#define HR_RUN_RESUME_H

#include "checkpoint/checkpoint_store.h"
#include "headroom/train.h"
#include "mem/memory.h"

/* The checkpoint that was found. Initialize with { 0 }. */
typedef struct {
    bool found;
    bool changed;                         /* the recipe differs in an allowed way */
    bool only_fewer_steps;                /* ... namely in nothing but fewer steps than are done */
    bool reformats;                       /* ... with weights or states in another format */
    char place[HR_STEP_PATH_BYTES];       /* path of the checkpoint */
    char reformatted[HR_STEP_PATH_BYTES]; /* of its files in other formats; empty: none */
    hr_manifest manifest;                 /* of the checkpoint */
} hr_resume;

/* If train.out has checkpoints: locks it, removes incomplete checkpoints of a killed run, and finds
 * the newest intact one. Verifies every file against its hash; reports a damaged checkpoint and
 * tries an older one. The recipe has to be the same, except for keys that do not matter or are
 * allowed to change; each difference is reported.
 *
 *   memory  open; a region of it compares the models, and is closed again
 *   lock    out, for hr_file_close; unchanged if there are no checkpoints
 *   resume  out; not found: there are no checkpoints, or options->fresh
 *
 * Errors   USAGE    the recipe differs; another run uses the folder; the folder has a run whose
 *          checkpoints were all removed; the folder has another model, as hr_folder_check
 *          CORRUPT  there are checkpoints, but none is intact
 *          INTERRUPTED, FAILURE. */
HR_MUST_CHECK hr_status hr_resume_enter(hr_memory *memory, const hr_config *config,
                                        const hr_train_options *options, int *lock,
                                        hr_resume *resume, hr_error *err);

/* If the recipe has other formats of weights or states: writes those files of the checkpoint again,
 * beside it, as an incomplete checkpoint. Errors as hr_recipe_change_reformat. */
HR_MUST_CHECK hr_status hr_resume_reformat(hr_memory *memory, const hr_config *config,
                                           const hr_train_options *options, hr_resume *resume,
                                           hr_error *err);

/* Removes what hr_resume_reformat wrote. */
HR_MUST_CHECK hr_status hr_resume_remove_reformatted(const hr_config *config, hr_resume *resume,
                                                     hr_error *err);

/* Checks that train.out is writable for checkpoints, as hr_directory_check: a run that could not
 * save is refused before it starts. */
HR_MUST_CHECK hr_status hr_resume_check_writable(const hr_config *config, hr_error *err);

/* Locks train.out, which exists by now, unless it is already locked. Errors USAGE, FAILURE. */
HR_MUST_CHECK hr_status hr_resume_lock(const hr_config *config, int *lock, hr_error *err);

/* Returns whether the run is complete, including the last line of its log. */
bool hr_resume_is_done(const hr_resume *resume, const hr_config *config,
                       const hr_train_options *options);

/* Reports the step that the run resumes from, and warns if other kernels computed the earlier
 * steps, or if the length of the learning rate schedule has changed.
 *   steps  total steps by the current recipe */
void hr_resume_report(const hr_resume *resume, const hr_config *config,
                      const hr_train_options *options, const char *rung, int64_t steps);

/* Checks that the texts and their tokenizer are unchanged. Errors USAGE. */
HR_MUST_CHECK hr_status hr_resume_check_texts(const hr_resume *resume, const hr_config *config,
                                              const hr_train_options *options,
                                              const hr_manifest_texts *now, hr_error *err);

/* Checks what hashes do not cover: that the manifest of a checkpoint names a recipe, all files that
 * a run of that recipe writes, and complete statistics.
 * Errors   CORRUPT  something is missing. USAGE  this program cannot read the recipe. FAILURE. */
HR_MUST_CHECK hr_status hr_resume_check_manifest(const char *place, const hr_manifest *manifest,
                                                 hr_error *err);

/* Removes the older checkpoints that a completed run left. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_resume_prune(const hr_resume *resume, const hr_config *config,
                                        hr_error *err);

/* Removes all checkpoints of a folder, so that a new run cannot resume from an earlier one. Errors
 * FAILURE. */
HR_MUST_CHECK hr_status hr_resume_remove_checkpoints(const hr_config *config, hr_error *err);

#endif
