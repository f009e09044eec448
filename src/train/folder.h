/* SPDX-License-Identifier: Apache-2.0 */
/* train/folder.h - whether train.out holds a model that is not this run's.
 *
 * A checkpoint replaces model.safetensors and config.json in train.out, and a run copies its
 * tokenizer there. Files of another model must not be lost that way, and none may be left beside
 * the new weights, where other software would read them as part of the new model. */
#ifndef HR_TRAIN_FOLDER_H
#define HR_TRAIN_FOLDER_H

#include "headroom/train.h"

/* Checks train.out, and its average/ where the run writes one, before a run that begins at step 0.
 * Nothing is changed.
 *
 *   is_run  train.out holds an earlier run, which options->fresh replaces
 *
 * Errors   USAGE    the folder has a file of another model: one that the run would replace, which
 *                   options->fresh allows and the events tell; or one that the run would leave
 *                   beside its own files, which nothing allows
 *          FAILURE  the folder cannot be read. As hr_tokenizer_probe. */
HR_MUST_CHECK hr_status hr_folder_check(const hr_config *config, const hr_train_options *options,
                                        bool is_run, hr_error *err);

/* Whether the model in a run's folder is another than that of one of its checkpoints: with another
 * config.json, and weights of another size. Pure. */
bool hr_folder_has_another_model(const char *folder, const char *place);

#endif
