/* SPDX-License-Identifier: Apache-2.0 */
/* data/rows.h - files of token rows as training data, instead of texts. */
#ifndef HR_DATA_ROWS_H
#define HR_DATA_ROWS_H

#include "checkpoint/token_rows.h"
#include "headroom/train.h"
#include "text/batch.h"

/* Opens the row file of the recipe for training or validation, reads all of it once, reports it,
 * and makes the batch description refer to it. `rows` has to outlive the batches.
 *
 * Errors   as hr_token_rows_open and hr_token_rows_check; USAGE  the row length is not
 *          train.seq_len, or a fixed batch does not have train.batch rows. `rows` is then
 * closed. */
HR_MUST_CHECK hr_status hr_rows_open(hr_token_rows *rows, const hr_config *config, bool validation,
                                     const hr_train_options *options, hr_batch_desc *desc,
                                     hr_error *err);

#endif
