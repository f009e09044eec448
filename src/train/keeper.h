/* SPDX-License-Identifier: Apache-2.0 */
/* train/keeper.h - checkpoints of a run while it runs.
 *
 * Training stops only while its state is copied into files that nobody sees yet. Flushing them,
 * reading them back past the page cache, giving them their name, putting the weights in their place
 * in the run's folder and removing older checkpoints goes on behind it, on a thread of its own. A
 * failure anywhere leaves what was there before. */
#ifndef HR_TRAIN_KEEPER_H
#define HR_TRAIN_KEEPER_H

#include "base/region.h"
#include "ckpt/shelf.h"
#include "ckpt/weights.h"
#include "dev/aside.h"
#include "train/log.h"

/* Fields are the keeper's own, but those that its functions name. */
typedef struct {
    const hr_config *config;
    const hr_program *program;
    const char *strategy; /* text */
    const hr_log *log;
    hr_aside aside;
    char shelf[HR_SHELF_PATH_BYTES];
    char partial[HR_STEP_PATH_BYTES], place[HR_STEP_PATH_BYTES];
    uint8_t *buffer; /* [HR_KEEPER_BUFFER], on a page */
    char *text;      /* [HR_RECIPE_BYTES] */
    hr_manifest manifest;
    hr_weights_out files[HR_KEPT_KINDS];
    bool begun[HR_KEPT_KINDS];
    int64_t checkpoint_bytes; /* of one checkpoint, at most */
    int64_t bytes;            /* of what was handed over last */
    bool pending;             /* handed over, and its end not yet told */
    bool made;                /* what was handed over last has its name, */
    hr_status status;         /* and its weights their place */
    hr_status tidied;         /* what need not stay is gone */
    hr_error err, tidied_err;
} hr_keeper;

enum { HR_KEEPER_BUFFER = 256 << 10 };

/* Bytes of a region that a keeper takes. Pure. */
int64_t hr_keeper_bytes(void);

/* Takes them, a keeper among them, and starts the thread. Without train.out there is nothing to
 * keep, and only the bytes are taken.
 *   log               flushed before a checkpoint gets its name
 *   checkpoint_bytes  hr_plan_disk
 * Errors FAILURE; USAGE the path is too long. */
HR_MUST_CHECK hr_status hr_keeper_open(hr_keeper **keeper, const hr_log *log,
                                       const hr_config *config, const hr_program *program,
                                       const char *strategy, int64_t checkpoint_bytes,
                                       hr_region *region, hr_error *err);
void hr_keeper_close(hr_keeper *keeper); /* null is accepted */

/* Begins a checkpoint in a directory of its own; waits for the one before.
 *   text  [hr_weights_text_bytes], for headers
 * Errors FAILURE  no room on the disk, or the system refused: nothing is left of it. */
HR_MUST_CHECK hr_status hr_keeper_begin(hr_keeper *keeper, int64_t step, char *text,
                                        int64_t text_bytes, hr_error *err);

/* The file of that kind, to be added to; null: this program has none. */
hr_weights_out *hr_keeper_file(hr_keeper *keeper, hr_kept kept);

/* Hands everything over, recipe, strategy and config.json to be added; keeper->manifest has the
 * state by now. */
void hr_keeper_finish(hr_keeper *keeper);

/* Forgets what was begun and not finished. */
void hr_keeper_abort(hr_keeper *keeper);

/* Whether what was handed over has come to an end that was not told yet. Then keeper->made says
 * whether the checkpoint of keeper->manifest.state.step is there, keeper->tidied whether older ones
 * could be removed, and
 *   status  out: HR_OK, and it is there with its weights in their place; or what went wrong, in err
 * wait: until it has, if anything was handed over. */
bool hr_keeper_told(hr_keeper *keeper, bool wait, hr_status *status, hr_error *err);

/* Waits for what was handed over, but no longer than two seconds, and not for what is large. */
void hr_keeper_linger(hr_keeper *keeper);

/* Puts the weights of a checkpoint in their place in train.out, again.
 *   buffer  [bytes], for a file system that has no links */
HR_MUST_CHECK hr_status hr_keeper_publish(const char *place, const char *out, void *buffer,
                                          int64_t bytes, hr_error *err);

#endif
