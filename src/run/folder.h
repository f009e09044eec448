/* SPDX-License-Identifier: Apache-2.0 */
/* run/folder.h - checks whether train.out holds the model of another run.
 *
 * A checkpoint replaces model.safetensors and config.json in train.out, and a run copies its
 * tokenizer there. Files of another model must not be overwritten, and must not remain beside the
 * new weights, where other software would read them as part of the new model. */
#ifndef HR_RUN_FOLDER_H
#define HR_RUN_FOLDER_H

#include "headroom/train.h"

/* Checks train.out, and its average/ if the run writes one, before a run that starts at step 0.
 * Changes nothing.
 *
 *   is_run  train.out holds an earlier run, which options->fresh replaces
 *
 * Errors   USAGE    the folder has a file of another model. If the run would replace it,
 *          options->fresh allows that, and an event reports it. If the run would leave it beside
 *          its own files, nothing allows it
 *          FAILURE  the folder cannot be read. As hr_tokenizer_probe. */
HR_MUST_CHECK hr_status hr_folder_check(const hr_config *config, const hr_train_options *options,
                                        bool is_run, hr_error *err);

/* What existed of the path of train.out before a run. */
typedef struct {
    int64_t path_bytes; /* length of the part of the path that existed */
    bool had_lock;
} hr_folder_before;

hr_folder_before hr_folder_look(const hr_config *config);

/* Removes the lock and the directories that a run has created, if they are empty without it: for a
 * run that is refused. Token shards stay, and the directory with them.
 *   holds_lock  the run has the lock */
void hr_folder_undo(const hr_config *config, const hr_folder_before *before, bool holds_lock);

/* Returns whether the model in the folder of a run differs from that of one of its checkpoints: a
 * different config.json, and weights of a different size. Pure. */
bool hr_folder_has_another_model(const hr_config *config, const char *place);

#endif
