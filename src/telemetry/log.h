/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry/log.h - writes the metrics of a run to all outputs: the log in train.out, the --metrics
 * file, and TensorBoard events.
 *
 * A failed write is reported once and the run continues; hr_log_end returns whether all lines were
 * written. */
#ifndef HR_TELEMETRY_LOG_H
#define HR_TELEMETRY_LOG_H

#include "base/region.h"
#include "checkpoint/manifest.h"
#include "headroom/train.h"
#include "telemetry/metrics.h"
#include "telemetry/tensorboard.h"

typedef struct {
    const hr_train_events *events; /* receives failures; null: the log is not open */
    hr_metrics log;                /* steps and events between them */
    hr_metrics metrics;            /* steps only */
    hr_tensorboard board;
    int64_t most_bytes; /* of the log and the events of TensorBoard */
    bool failure_reported;
    char path[HR_PATH_BYTES + 16], directory[HR_PATH_BYTES + 16];
} hr_log;

extern const char hr_log_name[]; /* the log in train.out */

/* Bytes of the region that a log takes. Pure. */
int64_t hr_log_bytes(void);

/* Refuses a file of metrics that is the log of another run with --out; null: none. Errors USAGE. */
HR_MUST_CHECK hr_status hr_log_check_metrics(const char *out, const char *metrics, hr_error *err);

/* Places a log in the region and opens its files.
 *
 *   out      train.out; empty: none
 *   metrics  path; null: none
 *   from     state of the checkpoint that the run resumes from; null: a new run
 *   room     bytes by which the files in `out` may grow, so that checkpoints keep theirs: steps,
 *            evaluations and samples beyond that are left out; negative: no limit
 *
 * Errors   USAGE    a path cannot be written
 *          CORRUPT  an existing file is not a log, or not the log of this run
 *          FAILURE  the system refuses. */
HR_MUST_CHECK hr_status hr_log_open(hr_log *log, const hr_train_events *events, const char *out,
                                    const char *metrics, const hr_run_state *from, int64_t room,
                                    hr_region *region, hr_error *err);

/* These may be called before the log is open: then nothing is written. */
void hr_log_step(hr_log *log, const hr_metrics_step *step);
void hr_log_evaluation(hr_log *log, int64_t step, double valid_loss, int64_t tokens);
void hr_log_sample(hr_log *log, int64_t step, const char *text, int64_t bytes);
void hr_log_save(hr_log *log, int64_t step, double seconds);
void hr_log_signal(hr_log *log, int64_t step, const char *signal);
void hr_log_trouble(hr_log *log, int64_t step, const char *what);

/* For a checkpoint: hr_log_note stores the file sizes in the state, hr_log_flush flushes the files
 * to disk.
 * Threads  hr_log_flush: any, while others write. */
void hr_log_note(hr_log *log, hr_run_state *state);
HR_MUST_CHECK hr_status hr_log_flush(const hr_log *log, hr_error *err);

/* Continues the log and the TensorBoard events in the current train.out, after the folder was moved
 * or removed. Errors as hr_log_open. */
HR_MUST_CHECK hr_status hr_log_follow(hr_log *log, int64_t first_step, hr_error *err);

/* Truncates the logs to the sizes in a checkpoint. */
void hr_log_rewind(hr_log *log, const hr_run_state *state);

/* Writes the last line. Errors FAILURE  a line was not written. */
HR_MUST_CHECK hr_status hr_log_end(hr_log *log, const hr_metrics_last *last, hr_error *err);

/* Closes all files. Accepts a zeroed or closed log. */
void hr_log_close(hr_log *log);

#endif
