/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/checkpoint.h - lists and prunes the checkpoints of a run's folder. docs/checkpoints.md
 * describes their files. */
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
    int64_t step, steps;          /* completed steps; steps of the run */
    int64_t tokens;               /* real tokens (no padding) so far */
    int64_t bytes;                /* size of its files according to the manifest */
    double last_loss, valid_loss; /* NaN: not evaluated */
    bool is_best;                 /* the best validation loss of the run */
    const char *kernels;
    /* what is wrong with it; null: no damage found. The other fields come from the manifest */
    const char *problem;
} hr_checkpoint;

typedef struct {
    void *context;
    void (*found)(void *context, const hr_checkpoint *checkpoint);
    void (*reading)(void *context, int64_t bytes_done, int64_t bytes_total); /* may be null */
    void (*removed)(void *context, const char *name);                        /* may be null */
} hr_checkpoint_events;

/* Reports every checkpoint of a folder, the newest first.
 *
 *   thorough  reads every file and compares its hash; otherwise only the manifests are read
 *
 * Errors   USAGE    no such folder, or it has no checkpoints
 *          CORRUPT  with `thorough`: a checkpoint is damaged. The sentence names the first one; all
 *                   checkpoints are still reported.
 *          INTERRUPTED, FAILURE. */
HR_MUST_CHECK hr_status hr_checkpoint_list(const char *folder, bool thorough,
                                           const hr_checkpoint_events *events,
                                           const volatile sig_atomic_t *interrupts, hr_error *err);

/* Removes unfinished and damaged checkpoints, and those that train.keep_last, keep_every and
 * keep_best do not keep. Nothing is removed before one intact checkpoint is found.
 *
 *   overrides  [count] key=value, applied over the run's recipe
 *
 * Errors   USAGE    as above; another process trains in the folder; an unknown key
 *          CORRUPT  no checkpoint is intact; nothing was removed
 *          FAILURE  the system refused. */
HR_MUST_CHECK hr_status hr_checkpoint_prune(const char *folder, char *const *overrides,
                                            int32_t count, const hr_checkpoint_events *events,
                                            const volatile sig_atomic_t *interrupts, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
