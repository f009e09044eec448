/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry/tensorboard.h - writes TensorBoard event files, one per start of a run (docs/log.md).
 *
 * Works after the seal: system calls on the caller's buffer only; only opening lists the directory.
 * Events collect in the buffer and are written when it is full, after HR_TENSORBOARD_SECONDS, or on
 * request. The caller passes the time in seconds since 1970. */
#ifndef HR_TELEMETRY_TENSORBOARD_H
#define HR_TELEMETRY_TENSORBOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"
#include "telemetry/metrics.h"

enum {
    HR_TENSORBOARD_BYTES = 16 << 10, /* about 80 steps */
    HR_TENSORBOARD_SECONDS = 5,
    HR_TENSORBOARD_RECORD_BYTES = 592, /* maximum of one event */
    HR_TENSORBOARD_NAME_BYTES = 128
};

typedef struct {
    int fd;                               /* -1: closed, events are discarded */
    const char *directory;                /* must outlive this object */
    char name[HR_TENSORBOARD_NAME_BYTES]; /* file name */
    char *buffer;                         /* [HR_TENSORBOARD_BYTES] */
    int64_t used;                         /* complete records in the buffer */
    int64_t bytes;                        /* complete records in the file */
    double tried_seconds;                 /* time of the last attempt to write the buffer */
    bool any;                             /* an event with a number was written */
    bool instruction;                     /* use the CRC-32C instruction */
    bool cut_due;                         /* the file may end with a partial record */
} hr_tensorboard;

/* Creates the directory, and in it a file whose name sorts after all others, whatever the clock
 * says, because TensorBoard reads files in that order. The file begins with a session start at
 * `first_step`, so that TensorBoard drops events of earlier files from that step on. A null
 * directory opens nothing.
 *
 *   first_step  first step of the run: 1, or the step after the checkpoint
 *   buffer      [HR_TENSORBOARD_BYTES], must outlive the object
 *
 * Errors   USAGE    the directory is a file, or its name is too long
 *          FAILURE  the directory or the file cannot be created. */
HR_MUST_CHECK hr_status hr_tensorboard_open(hr_tensorboard *board, const char *directory,
                                            int64_t first_step, double wall_seconds, char *buffer,
                                            hr_error *err);

/* Starts another session in the same file, for a run that rolls back to `first_step`. Errors as
 * hr_tensorboard_write_step. */
HR_MUST_CHECK hr_status hr_tensorboard_restart(hr_tensorboard *board, double wall_seconds,
                                               int64_t first_step, hr_error *err);

/* Write the numbers of a step or an evaluation, with their names in metrics.jsonl. Non-finite
 * numbers are written unchanged; fraction_of_ceiling and z_loss only if known. A run can continue
 * after an error: the buffer is tried again, and events that do not fit are dropped.
 *
 * Errors   FAILURE, which includes a full disk: the file ends after a complete record. */
HR_MUST_CHECK hr_status hr_tensorboard_write_step(hr_tensorboard *board, double wall_seconds,
                                                  const hr_metrics_step *step, hr_error *err);
HR_MUST_CHECK hr_status hr_tensorboard_write_evaluation(hr_tensorboard *board, double wall_seconds,
                                                        int64_t step, double valid_loss,
                                                        hr_error *err);

/* Writes the buffer to the file, before a checkpoint is published, so that a kill does not lose
 * events that the run will not repeat. Errors as hr_tensorboard_write_step. */
HR_MUST_CHECK hr_status hr_tensorboard_push(hr_tensorboard *board, hr_error *err);

/* Flushes the file to disk. Errors FAILURE. Threads any, while the object is open. */
HR_MUST_CHECK hr_status hr_tensorboard_flush(const hr_tensorboard *board, hr_error *err);

/* Writes the buffer and closes; removes a file without numbers. Accepts a closed object.
 * Errors   FAILURE  some events did not reach the file. */
HR_MUST_CHECK hr_status hr_tensorboard_close(hr_tensorboard *board, hr_error *err);

#endif
