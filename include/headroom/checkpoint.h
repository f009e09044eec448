/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/checkpoint.h - the checkpoints of a run's folder: which there are, whether they are
 * whole, and which may go. docs/checkpoints.md has what lies in them. */
#ifndef HEADROOM_CHECKPOINT_H
#define HEADROOM_CHECKPOINT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "headroom/config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int64_t step, steps;          /* done; of the whole run */
    int64_t tokens;               /* real ones so far */
    int64_t bytes;                /* of its files, as the manifest has them */
    double last_loss, valid_loss; /* NaN: not evaluated */
    bool is_best;                 /* of those that the run evaluated */
    const char *kernels;
    const char *problem; /* null: none was found; all else is then of the manifest */
} hr_checkpoint;

typedef struct {
    void *context;
    void (*found)(void *context, const hr_checkpoint *checkpoint);
    void (*reading)(void *context, int64_t bytes_done, int64_t bytes_total); /* may be null */
    void (*removed)(void *context, const char *name);                        /* may be null */
} hr_checkpoint_events;

/* Tells every checkpoint of a folder, the newest first.
 *
 *   thorough  every file is read and held against its hash; else the manifests alone are
 *
 * Errors   USAGE    there is no such folder, or it has no checkpoints
 *          CORRUPT  thorough, and one of them is damaged: the first one found. All are told.
 *          INTERRUPTED, FAILURE. */
HR_MUST_CHECK hr_status hr_checkpoint_list(const char *folder, bool thorough,
                                           const hr_checkpoint_events *events,
                                           const volatile sig_atomic_t *interrupts, hr_error *err);

/* Removes what was never finished, what is damaged, and what train.keep_last, keep_every and
 * keep_best let go. At least one checkpoint is whole before any other goes.
 *
 *   overrides  [count] key=value, over the recipe of the run
 *
 * Errors   USAGE    as above; another process trains into it; a key that is not known
 *          CORRUPT  none is whole, and nothing was removed. FAILURE. */
HR_MUST_CHECK hr_status hr_checkpoint_prune(const char *folder, char *const *overrides,
                                            int32_t count, const hr_checkpoint_events *events,
                                            const volatile sig_atomic_t *interrupts, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
