/* SPDX-License-Identifier: Apache-2.0 */
/* train/rows.h - files of rows of tokens as the data of a run, in place of texts. */
#ifndef HR_TRAIN_ROWS_H
#define HR_TRAIN_ROWS_H

#include "ckpt/token_rows.h"
#include "headroom/train.h"
#include "text/batch.h"

/* Opens the file that the recipe names for training, or for validation, reads all of it once, tells
 * of it, and lets the description of batches read from it. `rows` has to outlive those.
 *
 * Errors   as hr_token_rows_open and hr_token_rows_check; USAGE  rows of another length than
 *          train.seq_len, a fixed batch of another size than train.batch. `rows` is then closed. */
HR_MUST_CHECK hr_status hr_rows_open(hr_token_rows *rows, const hr_config *config, bool validation,
                                     const hr_train_options *options, hr_batch_desc *desc,
                                     hr_error *err);

#endif
