/* SPDX-License-Identifier: Apache-2.0 */
/* report/tensorboard.h - the log's numbers as TensorBoard reads them: one file of events for each
 * start of a run (docs/log.md).
 *
 * Works after the memory is sealed: system calls on the caller's buffer, nothing else; only opening
 * looks through the directory. Events gather in the buffer, and reach the file when it is full,
 * after HR_TENSORBOARD_SECONDS, and when asked. The caller says what time it is: seconds since
 * 1970. */
#ifndef HR_REPORT_TENSORBOARD_H
#define HR_REPORT_TENSORBOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"
#include "report/metrics.h"

enum {
    HR_TENSORBOARD_BYTES = 16 << 10, /* some 80 steps */
    HR_TENSORBOARD_SECONDS = 5,
    HR_TENSORBOARD_RECORD_BYTES = 528, /* of one event, at most */
    HR_TENSORBOARD_NAME_BYTES = 128
};

typedef struct {
    int fd;                               /* -1: closed, and every event goes nowhere */
    const char *directory;                /* outlives this object */
    char name[HR_TENSORBOARD_NAME_BYTES]; /* of the file in it */
    char *buffer;                         /* [HR_TENSORBOARD_BYTES] */
    int64_t used;                         /* whole records in the buffer */
    int64_t bytes;                        /* whole records in the file */
    double tried_seconds;                 /* when the buffer was last written, or was to be */
    bool any;                             /* an event with a number was written */
    bool instruction;                     /* for checksums */
    bool cut_due;                         /* a part of a record may end the file */
} hr_tensorboard;

/* Makes the directory and in it a file that sorts behind every other, whatever the clock says: so
 * TensorBoard reads them in their order. It begins with the start of a session at `first_step`,
 * which has TensorBoard forget what earlier files say of that step and those behind it. A null
 * directory opens nothing.
 *
 *   first_step  that the run makes: 1, or behind the checkpoint that it goes on from
 *   buffer      [HR_TENSORBOARD_BYTES], stays with the object
 *
 * Errors   USAGE    the directory's name is that of a file, or too long
 *          FAILURE  the system refuses the directory or the file. */
HR_MUST_CHECK hr_status hr_tensorboard_open(hr_tensorboard *board, const char *directory,
                                            int64_t first_step, double wall_seconds, char *buffer,
                                            hr_error *err);

/* The start of another session in the same file: for a run that goes back to `first_step`. Errors
 * as hr_tensorboard_write_step. */
HR_MUST_CHECK hr_status hr_tensorboard_restart(hr_tensorboard *board, double wall_seconds,
                                               int64_t first_step, hr_error *err);

/* The numbers of a step or an evaluation, under their names in metrics.jsonl. A number that is not
 * finite is written as it is; fraction_of_ceiling and z_loss where there is one. A run can go on
 * after an error: what is in the buffer is tried again, what has no room in it is left out.
 *
 * Errors   FAILURE, a full disk among them: the file ends behind a whole record. */
HR_MUST_CHECK hr_status hr_tensorboard_write_step(hr_tensorboard *board, double wall_seconds,
                                                  const hr_metrics_step *step, hr_error *err);
HR_MUST_CHECK hr_status hr_tensorboard_write_evaluation(hr_tensorboard *board, double wall_seconds,
                                                        int64_t step, double valid_loss,
                                                        hr_error *err);

/* Writes what the buffer has to the file: before a checkpoint is published, so that no kill loses
 * events that the run will not repeat. Errors as hr_tensorboard_write_step. */
HR_MUST_CHECK hr_status hr_tensorboard_push(hr_tensorboard *board, hr_error *err);

/* Has the file reach the disk. Errors FAILURE. Threads any, while the object stays open. */
HR_MUST_CHECK hr_status hr_tensorboard_flush(const hr_tensorboard *board, hr_error *err);

/* Pushes and closes; a file in which there would be no number is removed. Accepts a closed object.
 * Errors   FAILURE  something did not reach the file. */
HR_MUST_CHECK hr_status hr_tensorboard_close(hr_tensorboard *board, hr_error *err);

#endif
