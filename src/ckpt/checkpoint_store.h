/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/checkpoint_store.h - the checkpoints of a run's folder: which there are, and the lock that
 * keeps two runs out of one folder.
 *
 * A checkpoint is a directory OUT/checkpoints/step-000000000100. While it is being written its name
 * begins with a dot and ends in ".partial"; only a rename gives it its own. */
#ifndef HR_CKPT_CHECKPOINT_STORE_H
#define HR_CKPT_CHECKPOINT_STORE_H

#include <signal.h>

#include "base/file.h"
#include "ckpt/manifest.h"
#include "headroom/config.h"

enum {
    HR_CHECKPOINT_STORE_PATH_BYTES = HR_PATH_BYTES + 64,
    HR_STEP_NAME_BYTES = 40,
    HR_STEP_PATH_BYTES = HR_CHECKPOINT_STORE_PATH_BYTES + HR_STEP_NAME_BYTES
};

/* OUT/checkpoints. Errors USAGE too long. */
HR_MUST_CHECK hr_status hr_checkpoint_store_path(const char *out,
                                                 char path[HR_CHECKPOINT_STORE_PATH_BYTES],
                                                 hr_error *err);

/* "step-000000000100"; and the name before that is its own. */
const char *hr_step_name(int64_t step, char name[HR_STEP_NAME_BYTES]);
const char *hr_step_partial(int64_t step, char name[HR_STEP_NAME_BYTES]);

/* The largest step below `below` of which there is a directory; -1: none. A folder without
 * checkpoints has none. Errors as hr_directory_list. */
HR_MUST_CHECK hr_status hr_checkpoint_store_newest(const char *store, int64_t below, int64_t *step,
                                                   hr_error *err);

/* Reads the manifest of a step.
 *   text  [HR_MANIFEST_BYTES], used while this runs
 * Errors   CORRUPT  it is missing, or not one of that step; a link
 *          FAILURE  the system refuses now. */
HR_MUST_CHECK hr_status hr_checkpoint_store_read(const char *store, int64_t step, char *text,
                                                 hr_manifest *manifest, hr_error *err);

/* Told while files are read; true: leave the rest. */
typedef bool hr_checkpoint_store_fn(void *context, int64_t bytes_done, int64_t bytes_total);

/* Holds every file of a checkpoint against its manifest.
 *
 *   memory     [bytes], to read through; align 4096 where `direct`
 *   direct     past the page cache, where the file system can
 *
 * Errors   CORRUPT  the file that is missing, of another length, a link, or of other content
 *          INTERRUPTED, FAILURE. */
typedef struct {
    void *memory;
    int64_t bytes;
    bool direct;
    hr_checkpoint_store_fn *told; /* null: nobody */
    void *context;
} hr_checkpoint_store_reader;
HR_MUST_CHECK hr_status hr_checkpoint_store_verify(const char *place, const hr_manifest *manifest,
                                                   const hr_checkpoint_store_reader *reader,
                                                   hr_error *err);

/* Removes what was never finished; and the checkpoint of a step, which first becomes that. */
HR_MUST_CHECK hr_status hr_checkpoint_store_remove_partial(const char *store, hr_error *err);
HR_MUST_CHECK hr_status hr_checkpoint_store_remove(const char *store, int64_t step, hr_error *err);

/* Whether a recipe keeps a checkpoint beside which there are so many newer ones. Pure. */
bool hr_checkpoint_store_keeps(const hr_config *config, int64_t best_step, int64_t step,
                               int64_t newer);

/* Removes the checkpoints behind a step, which the run went back from: they were damaged, or what
 * followed from them is not to be. */
HR_MUST_CHECK hr_status hr_checkpoint_store_remove_newer(const char *store, int64_t step,
                                                         hr_error *err);

/* Removes those, and every checkpoint that train.keep_last, keep_every and keep_best of a recipe
 * let go. Where steps that go wrong are gone back from, the last one that was due stays: a run
 * goes back to that, whatever signals had it save meanwhile. One that cannot be removed keeps
 * none of the others.
 *   state  of the newest checkpoint */
HR_MUST_CHECK hr_status hr_checkpoint_store_prune(const char *store, const hr_config *config,
                                                  const hr_run_state *state, hr_error *err);

/* Takes OUT/lock for this process, until it is closed or the process ends, however it ends.
 *   lock  out; a descriptor for hr_file_close
 * Errors   USAGE  another process has it: which. FAILURE. */
HR_MUST_CHECK hr_status hr_checkpoint_store_lock(const char *out, int *lock, hr_error *err);

/* Where OUT/lock is not the file that was locked (OUT was moved or removed, and may be there anew),
 * takes that one instead: `moved` out. Errors as hr_checkpoint_store_lock; `lock` is then as it
 * was. */
HR_MUST_CHECK hr_status hr_checkpoint_store_lock_again(const char *out, int *lock, bool *moved,
                                                       hr_error *err);

#endif
