/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/checkpoint_writer.h - writes the checkpoints of a run in the background.
 *
 * Training stops only while its state is copied into temporary files. A separate thread then
 * flushes them, reads them back past the page cache, renames the directory, publishes the weights
 * in train.out, and removes older checkpoints. After a failure the earlier files are unchanged. */
#ifndef HR_CHECKPOINT_CHECKPOINT_WRITER_H
#define HR_CHECKPOINT_CHECKPOINT_WRITER_H

#include "base/region.h"
#include "checkpoint/base_files.h"
#include "checkpoint/checkpoint_store.h"
#include "checkpoint/weights.h"
#include "dev/io_thread.h"

/* Brings to disk what must not be newer than a checkpoint. Runs on the background thread. */
typedef hr_status hr_checkpoint_flush_fn(const void *context, hr_error *err);

/* Fields are private, except those that the functions below name. */
typedef struct {
    const hr_config *config;
    const hr_program *program;
    const char *strategy;      /* YAML text */
    const hr_base_files *base; /* of adapters; null: the run has none */
    hr_checkpoint_flush_fn *flush;
    const void *flush_context;
    hr_io_thread io_thread;
    char store[HR_CHECKPOINT_STORE_PATH_BYTES];
    char partial[HR_STEP_PATH_BYTES], place[HR_STEP_PATH_BYTES];
    uint8_t *buffer; /* [HR_CHECKPOINT_WRITER_BUFFER], page-aligned */
    char *text;      /* [HR_RECIPE_BYTES] */
    hr_manifest manifest;
    hr_weights_out files[HR_KEPT_MAX];
    bool begun[HR_KEPT_MAX];
    int64_t checkpoint_bytes; /* upper bound for one checkpoint */
    int64_t bytes;            /* of the last checkpoint that was handed over */
    bool pending;             /* handed over, and its result not collected yet */
    bool made;                /* the last checkpoint is complete and renamed */
    hr_status status;         /* HR_OK: and its weights are published in train.out */
    hr_status pruned;         /* result of removing older checkpoints */
    hr_error err, prune_err;
} hr_checkpoint_writer;

enum { HR_CHECKPOINT_WRITER_BUFFER = 256 << 10 };

/* Bytes of the region that a checkpoint writer takes. Pure. */
int64_t hr_checkpoint_writer_bytes(void);

/* Places a checkpoint writer in the region and starts its thread. Without train.out it only takes
 * the memory.
 *
 *   flush             called with its context before a checkpoint is renamed
 *   checkpoint_bytes  as in hr_plan_disk
 *
 * Errors   FAILURE; USAGE  the path is too long. */
HR_MUST_CHECK hr_status hr_checkpoint_writer_open(
    hr_checkpoint_writer **checkpoint_writer, hr_checkpoint_flush_fn *flush, const void *context,
    const hr_config *config, const hr_program *program, const char *strategy,
    const hr_base_files *base, int64_t checkpoint_bytes, hr_region *region, hr_error *err);
void hr_checkpoint_writer_close(hr_checkpoint_writer *checkpoint_writer); /* null is accepted */

/* Begins a checkpoint in a temporary directory; waits for the previous checkpoint.
 *
 *   text  [hr_weights_text_bytes], for headers
 *
 * Errors   FAILURE  the disk is full, or the system refuses; the temporary directory is removed. */
HR_MUST_CHECK hr_status hr_checkpoint_writer_begin(hr_checkpoint_writer *checkpoint_writer,
                                                   int64_t step, char *text, int64_t text_bytes,
                                                   hr_error *err);

/* Returns the file for that kind of state; null if the program has no such state. */
hr_weights_out *hr_checkpoint_writer_file(hr_checkpoint_writer *checkpoint_writer, hr_kept kept);

/* Hands the checkpoint over to the thread, which adds the recipe, the strategy and config.json.
 * checkpoint_writer->manifest has to hold the run state. */
void hr_checkpoint_writer_finish(hr_checkpoint_writer *checkpoint_writer);

/* Removes a checkpoint that was begun but not finished. */
void hr_checkpoint_writer_abort(hr_checkpoint_writer *checkpoint_writer);

/* Returns whether a checkpoint has completed or failed that was not collected yet. If so,
 * checkpoint_writer->made says whether the checkpoint of step
 * checkpoint_writer->manifest.state.step exists, and checkpoint_writer->pruned whether older ones
 * were removed.
 *
 *   wait    wait for the pending checkpoint, if there is one
 *   status  out: HR_OK if the checkpoint exists and its weights are published; otherwise the error,
 *           with its message in err */
bool hr_checkpoint_writer_collect(hr_checkpoint_writer *checkpoint_writer, bool wait,
                                  hr_status *status, hr_error *err);

/* Waits up to two seconds for a small pending checkpoint, and not at all for a large one. */
void hr_checkpoint_writer_linger(hr_checkpoint_writer *checkpoint_writer);

/* Publishes the weights of a checkpoint in train.out again.
 *   buffer  [bytes], for a file system without hard links */
HR_MUST_CHECK hr_status hr_checkpoint_writer_publish(const char *place, const hr_config *config,
                                                     void *buffer, int64_t bytes, hr_error *err);

#endif
