/* SPDX-License-Identifier: Apache-2.0 */
/* train/load.h - one parameter out of a folder's files, on every thread of the pool. */
#ifndef HR_TRAIN_LOAD_H
#define HR_TRAIN_LOAD_H

#include <signal.h>

#include "ckpt/weights_in.h"
#include "dev/pool.h"

/* Fills master and weight (null: there is none) of parameter `param`. Each thread reads pieces and
 * puts them where they belong, so that one waits for the file while another works.
 *
 *   staging     [staging_bytes], a row of the file's at least, shared out among the threads
 *   interrupts  once above 0, what is not read yet stays so; null: there are none
 *
 * Errors   as hr_weights_in_take, of the first piece that has one; INTERRUPTED. */
HR_MUST_CHECK hr_status hr_load(const hr_weights_in *in, int32_t param, hr_pool *pool,
                                float *master, void *weight, void *staging, int64_t staging_bytes,
                                const volatile sig_atomic_t *interrupts, hr_error *err);

#endif
