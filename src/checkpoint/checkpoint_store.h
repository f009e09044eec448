/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/checkpoint_store.h - the checkpoint directories of a run, and the lock that keeps two
 * runs out of one folder.
 *
 * A checkpoint is a directory OUT/checkpoints/step-000000000100. While the run writes it, its name
 * begins with a dot and ends in ".partial"; a rename publishes the complete checkpoint. */
#ifndef HR_CHECKPOINT_CHECKPOINT_STORE_H
#define HR_CHECKPOINT_CHECKPOINT_STORE_H

#include <signal.h>

#include "base/file.h"
#include "checkpoint/manifest.h"
#include "headroom/config.h"

enum {
    HR_CHECKPOINT_STORE_PATH_BYTES = HR_PATH_BYTES + 64,
    HR_STEP_NAME_BYTES = 40,
    HR_STEP_PATH_BYTES = HR_CHECKPOINT_STORE_PATH_BYTES + HR_STEP_NAME_BYTES
};

/* Writes the path OUT/checkpoints. Errors USAGE: the path is too long. */
HR_MUST_CHECK hr_status hr_checkpoint_store_path(const char *out,
                                                 char path[HR_CHECKPOINT_STORE_PATH_BYTES],
                                                 hr_error *err);

/* The name of a complete checkpoint, "step-000000000100", and of one that is being written. */
const char *hr_step_name(int64_t step, char name[HR_STEP_NAME_BYTES]);
const char *hr_step_partial(int64_t step, char name[HR_STEP_NAME_BYTES]);

/* Finds the largest step below `below` that has a checkpoint directory; -1 if there is none or the
 * folder does not exist. Errors as hr_directory_list. */
HR_MUST_CHECK hr_status hr_checkpoint_store_newest(const char *store, int64_t below, int64_t *step,
                                                   hr_error *err);

/* Reads the manifest of a step.
 *   text  [HR_MANIFEST_BYTES], scratch
 * Errors   CORRUPT  the manifest is missing, is a symbolic link, or belongs to another step
 *          FAILURE  a system call failed for a reason that may pass, such as permissions. */
HR_MUST_CHECK hr_status hr_checkpoint_store_read(const char *store, int64_t step, char *text,
                                                 hr_manifest *manifest, hr_error *err);

/* Progress callback during verification. Return true to stop. */
typedef bool hr_checkpoint_store_fn(void *context, int64_t bytes_done, int64_t bytes_total);

/* Verifies every file of a checkpoint: size and hash must match the manifest.
 *
 *   memory     [bytes], read buffer; aligned to 4096 if `direct`
 *   direct     read with O_DIRECT, where the file system supports it
 *
 * Errors   CORRUPT  a file is missing, is a symbolic link, or differs in size or hash
 *          INTERRUPTED, FAILURE. */
typedef struct {
    void *memory;
    int64_t bytes;
    bool direct;
    hr_checkpoint_store_fn *progress; /* may be null */
    void *context;
} hr_checkpoint_store_reader;
HR_MUST_CHECK hr_status hr_checkpoint_store_verify(const char *place, const hr_manifest *manifest,
                                                   const hr_checkpoint_store_reader *reader,
                                                   hr_error *err);

/* Removes all partial checkpoints, or the checkpoint of one step. The latter is first renamed to a
 * partial one. */
HR_MUST_CHECK hr_status hr_checkpoint_store_remove_partial(const char *store, hr_error *err);
HR_MUST_CHECK hr_status hr_checkpoint_store_remove(const char *store, int64_t step, hr_error *err);

/* Whether the retention keys of a recipe keep a checkpoint that has `newer` newer ones. Pure. */
bool hr_checkpoint_store_keeps(const hr_config *config, int64_t best_step, int64_t step,
                               int64_t newer);

/* Removes the checkpoints after `step` when the run rewinds to it: they are damaged, or the run
 * must not continue from them. */
HR_MUST_CHECK hr_status hr_checkpoint_store_remove_newer(const char *store, int64_t step,
                                                         hr_error *err);

/* Removes the checkpoints after the current step, and those that train.keep_last, keep_every and
 * keep_best do not keep. If bad steps cause a rewind, the last scheduled checkpoint stays, because
 * a rewind goes to it even if a signal saved a newer one. If one removal fails, the others still
 * happen; returns the last error.
 *   state  of the newest checkpoint */
HR_MUST_CHECK hr_status hr_checkpoint_store_prune(const char *store, const hr_config *config,
                                                  const hr_run_state *state, hr_error *err);

/* Locks OUT/lock for this process until the descriptor is closed or the process ends.
 *   lock  out; a descriptor for hr_file_close
 * Errors   USAGE  another process holds the lock; the message names it. FAILURE. */
HR_MUST_CHECK hr_status hr_checkpoint_store_lock(const char *out, int *lock, hr_error *err);

/* If OUT/lock is no longer the locked file (OUT was moved, removed or created again), locks the new
 * file instead and sets `moved`. Errors as hr_checkpoint_store_lock; `lock` is then unchanged. */
HR_MUST_CHECK hr_status hr_checkpoint_store_lock_again(const char *out, int *lock, bool *moved,
                                                       hr_error *err);

#endif
