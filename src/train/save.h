/* SPDX-License-Identifier: Apache-2.0 */
/* train/save.h - one parameter into the files of a checkpoint, gathered by all threads. */
#ifndef HR_TRAIN_SAVE_H
#define HR_TRAIN_SAVE_H

#include "ckpt/weights.h"
#include "dev/pool.h"

/* Adds what a file keeps of a parameter: rounds in which one thread writes half of the staging
 * while the others gather rows into the other half.
 *
 *   values   in the layout that its tensor has
 *   staging  [staging_bytes], a row at least
 *
 * Errors as hr_weights_append. */
HR_MUST_CHECK hr_status hr_save(hr_weights_out *out, int32_t param, hr_pool *pool,
                                const void *values, void *staging, int64_t staging_bytes,
                                hr_error *err);

#endif
