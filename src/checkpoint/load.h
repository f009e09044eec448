/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/load.h - loads one parameter from weight files, on all threads of the pool. */
#ifndef HR_CHECKPOINT_LOAD_H
#define HR_CHECKPOINT_LOAD_H

#include <signal.h>

#include "checkpoint/weights_in.h"
#include "dev/pool.h"

/* Fills the places of parameter `param`. Each thread reads chunks and stores
 * them in the layout of the tensor, so reading and conversion overlap.
 *
 *   staging     [staging_bytes], at least one row of the file; divided among the threads
 *   interrupts  once above 0, the remaining chunks stay unread; null: none
 *
 * Errors   as hr_weights_in_take, of the first chunk that fails; INTERRUPTED. */
HR_MUST_CHECK hr_status hr_load(const hr_weights_in *in, int32_t param, hr_pool *pool,
                                hr_weights_place place, void *staging, int64_t staging_bytes,
                                const volatile sig_atomic_t *interrupts, hr_error *err);

#endif
