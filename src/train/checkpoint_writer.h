/* SPDX-License-Identifier: Apache-2.0 */
/* train/checkpoint_writer.h - checkpoints of a run while it runs.
 *
 * Training stops only while its state is copied into files that nobody sees yet. Flushing them,
 * reading them back past the page cache, giving them their name, putting the weights in their place
 * in the run's folder and removing older checkpoints goes on behind it, on a thread of its own. A
 * failure anywhere leaves what was there before. */
#ifndef HR_TRAIN_CHECKPOINT_WRITER_H
#define HR_TRAIN_CHECKPOINT_WRITER_H

#include "base/region.h"
#include "ckpt/checkpoint_store.h"
#include "ckpt/weights.h"
#include "dev/io_thread.h"
#include "train/log.h"

/* Fields are the checkpoint writer's own, but those that its functions name. */
typedef struct {
    const hr_config *config;
    const hr_program *program;
    const char *strategy; /* text */
    const hr_log *log;
    hr_io_thread io_thread;
    char store[HR_CHECKPOINT_STORE_PATH_BYTES];
    char partial[HR_STEP_PATH_BYTES], place[HR_STEP_PATH_BYTES];
    uint8_t *buffer; /* [HR_CHECKPOINT_WRITER_BUFFER], on a page */
    char *text;      /* [HR_RECIPE_BYTES] */
    hr_manifest manifest;
    hr_weights_out files[HR_KEPT_KINDS];
    bool begun[HR_KEPT_KINDS];
    int64_t checkpoint_bytes; /* of one checkpoint, at most */
    int64_t bytes;            /* of what was handed over last */
    bool pending;             /* handed over, and its end not yet told */
    bool made;                /* what was handed over last has its name, */
    hr_status status;         /* and its weights their place */
    hr_status pruned;         /* what need not stay is gone */
    hr_error err, prune_err;
} hr_checkpoint_writer;

enum { HR_CHECKPOINT_WRITER_BUFFER = 256 << 10 };

/* Bytes of a region that a checkpoint writer takes. Pure. */
int64_t hr_checkpoint_writer_bytes(void);

/* Takes them, a checkpoint writer among them, and starts the thread. Without train.out there is
 * nothing to keep, and only the bytes are taken. log               flushed before a checkpoint gets
 * its name checkpoint_bytes  hr_plan_disk Errors FAILURE; USAGE the path is too long. */
HR_MUST_CHECK hr_status hr_checkpoint_writer_open(hr_checkpoint_writer **checkpoint_writer,
                                                  const hr_log *log, const hr_config *config,
                                                  const hr_program *program, const char *strategy,
                                                  int64_t checkpoint_bytes, hr_region *region,
                                                  hr_error *err);
void hr_checkpoint_writer_close(hr_checkpoint_writer *checkpoint_writer); /* null is accepted */

/* Begins a checkpoint in a directory of its own; waits for the one before.
 *   text  [hr_weights_text_bytes], for headers
 * Errors FAILURE  no room on the disk, or the system refused: nothing is left of it. */
HR_MUST_CHECK hr_status hr_checkpoint_writer_begin(hr_checkpoint_writer *checkpoint_writer,
                                                   int64_t step, char *text, int64_t text_bytes,
                                                   hr_error *err);

/* The file of that kind, to be added to; null: this program has none. */
hr_weights_out *hr_checkpoint_writer_file(hr_checkpoint_writer *checkpoint_writer, hr_kept kept);

/* Hands everything over, recipe, strategy and config.json to be added; checkpoint writer->manifest
 * has the state by now. */
void hr_checkpoint_writer_finish(hr_checkpoint_writer *checkpoint_writer);

/* Forgets what was begun and not finished. */
void hr_checkpoint_writer_abort(hr_checkpoint_writer *checkpoint_writer);

/* Whether what was handed over has come to an end that was not told yet. Then checkpoint
 * writer->made says whether the checkpoint of checkpoint writer->manifest.state.step is there,
 * checkpoint writer->tidied whether older ones could be removed, and status  out: HR_OK, and it is
 * there with its weights in their place; or what went wrong, in err wait: until it has, if anything
 * was handed over. */
bool hr_checkpoint_writer_collect(hr_checkpoint_writer *checkpoint_writer, bool wait,
                                  hr_status *status, hr_error *err);

/* Waits for what was handed over, but no longer than two seconds, and not for what is large. */
void hr_checkpoint_writer_linger(hr_checkpoint_writer *checkpoint_writer);

/* Puts the weights of a checkpoint in their place in train.out, again.
 *   buffer  [bytes], for a file system that has no links */
HR_MUST_CHECK hr_status hr_checkpoint_writer_publish(const char *place, const char *out,
                                                     void *buffer, int64_t bytes, hr_error *err);

#endif
