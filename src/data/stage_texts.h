/* SPDX-License-Identifier: Apache-2.0 */
/* data/stage_texts.h - the texts of a run whose stages read different ones, or in other shares. */
#ifndef HR_DATA_STAGE_TEXTS_H
#define HR_DATA_STAGE_TEXTS_H

#include "headroom/stages.h"
#include "text/batch.h"

/* If stages have data of their own: sets data.train to a mixture of all their texts, so that these
 * are prepared together, once each. Nothing otherwise.
 * Errors   USAGE  a stage without data beside others that have some; rows or synthetic ids; parts
 *                 without weights; more than HR_BATCH_SHARDS_MAX texts. */
HR_MUST_CHECK hr_status hr_stage_texts_adopt(hr_config *config, hr_error *err);

/* Whether hr_stage_texts_adopt has set data.train. Pure. */
bool hr_stage_texts_differ(const hr_config *config);

/* The mixture of a stage, over the shards of the mixture of all: a text that the stage does not
 * read has share 0. The result is `all` if the stages have no data of their own.
 * Errors as hr_spec_shares. */
HR_MUST_CHECK hr_status hr_stage_texts_mixture(const hr_config *config, int32_t index,
                                               const hr_batch_mixture *all,
                                               hr_batch_mixture *mixture, hr_error *err);

#endif
