/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/save.h - writes one parameter to a checkpoint file; all threads gather its rows. */
#ifndef HR_CHECKPOINT_SAVE_H
#define HR_CHECKPOINT_SAVE_H

#include "checkpoint/weights.h"
#include "dev/pool.h"

/* Appends a parameter to a file of a checkpoint. One thread writes half of the staging buffer while
 * the others gather rows into the other half.
 *
 *   values   in the layout of the tensor
 *   residual as in hr_weights_gather
 *   scales   of a stored weight; null: it has none
 *   staging  [staging_bytes], at least one row
 *
 * Errors as hr_weights_append. */
HR_MUST_CHECK hr_status hr_save(hr_weights_out *out, int32_t param, hr_pool *pool,
                                const void *values, hr_residual residual, const float *scales,
                                void *staging, int64_t staging_bytes, hr_error *err);

#endif
