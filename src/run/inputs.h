/* SPDX-License-Identifier: Apache-2.0 */
/* run/inputs.h - the training and validation data of a run. */
#ifndef HR_RUN_INPUTS_H
#define HR_RUN_INPUTS_H

#include "admission/stages.h"
#include "base/region.h"
#include "checkpoint/manifest.h"
#include "checkpoint/token_rows.h"
#include "headroom/train.h"
#include "text/batch.h"
#include "text/text.h"
#include "text/word_vocabulary.h"

typedef struct {
    hr_batches *train, *valid;            /* valid: null without evaluation */
    hr_token_rows train_rows, valid_rows; /* read by the batches; closed if the data are texts */
    hr_batch_mixture *mixtures;           /* of the stages */
    int32_t cursors;                      /* texts of training in which stages have a position */
    hr_vocabulary *vocabulary;            /* null: the data are ids already */
    hr_manifest_texts identity;           /* of the texts */
} hr_inputs;

/* Opens the batches: files of rows if the recipe names them, else windows of the texts. The row
 * files of `inputs` are closed (-1).
 *
 *   config   with the chosen memory.micro_batch, by which validation is read
 *   region   lends tables for the run
 *   stages   of the run; null: none
 *   steps    out: steps of the run without stages, from the recipe or from its epochs
 *
 * Errors   as hr_rows_open and hr_batches_open; USAGE  too many steps. */
HR_MUST_CHECK hr_status hr_inputs_open(hr_inputs *inputs, const hr_config *config,
                                       const hr_train_options *options, const hr_text *text,
                                       const hr_batch_mixture *mixture, const hr_stage_set *stages,
                                       hr_region *region, int64_t *steps, hr_error *err);

/* Opens the vocabulary of the texts, if there are any. Errors as hr_vocabulary_open. */
HR_MUST_CHECK hr_status hr_inputs_open_vocabulary(hr_inputs *inputs, const hr_config *config,
                                                  const hr_text *text, hr_region *region,
                                                  hr_error *err);

/* Accepts inputs that were never opened, with closed row files. */
void hr_inputs_close(hr_inputs *inputs);

#endif
