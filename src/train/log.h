/* SPDX-License-Identifier: Apache-2.0 */
/* train/log.h - what a run writes down of itself, in all the places that ask for it: the log of
 * train.out, the file of --metrics, TensorBoard's events.
 *
 * A line that cannot be written is told once, and the run goes on; whether all were is said at the
 * end. */
#ifndef HR_TRAIN_LOG_H
#define HR_TRAIN_LOG_H

#include "base/region.h"
#include "ckpt/manifest.h"
#include "headroom/train.h"
#include "report/metrics.h"
#include "report/tensorboard.h"

typedef struct {
    const hr_train_events *events; /* that a failure is told to; null: it is not open */
    hr_metrics log;                /* steps and what happens between them */
    hr_metrics metrics;            /* steps alone */
    hr_tensorboard board;
    bool failure_reported;
    char path[HR_PATH_BYTES + 16], directory[HR_PATH_BYTES + 16];
} hr_log;

extern const char hr_log_name[]; /* of the one in train.out */

/* Bytes of a region that a log takes. Pure. */
int64_t hr_log_bytes(void);

/* Takes them, and opens what there is to write.
 *
 *   out      train.out; empty: there is none
 *   metrics  path; null: none
 *   from     what the run goes on from; null: it begins
 *
 * Errors   USAGE    a path cannot be written
 *          CORRUPT  a file is there that is none of a run's, or not that of this run
 *          FAILURE  the system refuses. */
HR_MUST_CHECK hr_status hr_log_open(hr_log *log, const hr_train_events *events, const char *out,
                                    const char *metrics, const hr_run_state *from,
                                    hr_region *region, hr_error *err);

/* Signals and trouble come before it is open, too: then they are not written. */
void hr_log_step(hr_log *log, const hr_metrics_step *step);
void hr_log_evaluation(hr_log *log, int64_t step, double valid_loss, int64_t tokens);
void hr_log_sample(hr_log *log, int64_t step, const char *text, int64_t bytes);
void hr_log_save(hr_log *log, int64_t step, double seconds);
void hr_log_signal(hr_log *log, int64_t step, const char *signal);
void hr_log_trouble(hr_log *log, int64_t step, const char *what);

/* For a checkpoint: how much of the files there is, in what has it; and that it reaches the disk.
 * Threads  hr_log_flush any, while others write. */
void hr_log_note(hr_log *log, hr_run_state *state);
HR_MUST_CHECK hr_status hr_log_flush(const hr_log *log, hr_error *err);

/* The log and TensorBoard's events go on in train.out as it is now: another folder has its name.
 * Errors as hr_log_open. */
HR_MUST_CHECK hr_status hr_log_follow(hr_log *log, int64_t first_step, hr_error *err);

/* Back to what a checkpoint knows. */
void hr_log_rewind(hr_log *log, const hr_run_state *state);

/* The last line, and whether all of it arrived. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_log_end(hr_log *log, const hr_metrics_last *last, hr_error *err);

/* Closes everything. Accepts what is zeroed or closed. */
void hr_log_close(hr_log *log);

#endif
