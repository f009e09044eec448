/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry/metrics.h - the log of a run, one JSON object per line (docs/log.md).
 *
 * Works after the seal: system calls on the caller's buffer only. Numbers read back to the same
 * bits; non-finite ones are null. Each line is one append; the file is truncated after its last
 * complete line before the first write and after a failure, so no line is incomplete or
 * duplicated. */
#ifndef HR_TELEMETRY_METRICS_H
#define HR_TELEMETRY_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

typedef struct {
    int fd;           /* -1: closed, lines are discarded */
    const char *path; /* for errors; must outlive this object */
    char *line;       /* [HR_METRICS_BYTES] */
    int64_t bytes;    /* length of the complete lines in the file: a checkpoint saves it for
                    * hr_metrics_continue */
    bool made;        /* the file is new */
    bool cut_due;     /* the file may be longer than `bytes`: truncate it before the next line */
} hr_metrics;

/* Room for the longest line: a sample with 16 KiB of text, escaped. */
enum { HR_METRICS_BYTES = 24 << 10 };

/* Room for the longest line of a step, without and with a stage and a loss scale; and of an
 * evaluation, a save or the end of a run. */
enum {
    HR_METRICS_STEP_BYTES = 416,
    HR_METRICS_STAGE_BYTES = 64,
    HR_METRICS_SCALE_BYTES = 48,
    HR_METRICS_EVENT_BYTES = 320
};

typedef struct {
    int64_t step; /* from 1 */
    double loss;  /* nats, mean over real tokens, before the update */
    double lr;
    double grad_norm;                  /* before clipping */
    int64_t tokens;                    /* total so far */
    double tokens_per_second, seconds; /* differ between identical runs */
    bool pulls;                        /* z_loss is part of the loss, and also written separately */
    double z_loss;
    double loss_scale;          /* with which the gradient was computed; 0: it is not scaled */
    double fraction_of_ceiling; /* of the measured peak throughput; 0: unknown */
    int64_t stage;              /* from 1; 0: the run has no stages, and no padding is written */
    double padding;             /* share of the batch without targets */
    bool no_targets;            /* the step had no target tokens: loss and z_loss are undefined */
} hr_metrics_step;

typedef struct {
    int64_t arena_bytes_planned, arena_bytes_used;
    int64_t process_bytes_planned, process_bytes_measured;
    double valid_loss; /* NaN: no evaluation */
} hr_metrics_last;

/* Opens or creates the file, for a run from its first step. Lines of an earlier run stay until the
 * first line is written. A null path opens nothing; lines are then discarded.
 *
 *   line  [HR_METRICS_BYTES], must outlive the object
 *
 * Errors   USAGE  the path is not writable. */
HR_MUST_CHECK hr_status hr_metrics_open(hr_metrics *metrics, const char *path, char *line,
                                        hr_error *err);

/* Opens the file to append after its first `keep_bytes`; later lines stay until the first line is
 * written. A missing file is created if keep_bytes is 0. A pipe or a device is used as it is.
 *
 *   keep_bytes  the `bytes` of the object that wrote it, at the checkpoint
 *
 * Errors   USAGE    the path is not readable and writable
 *          CORRUPT  the file is missing or shorter, no line ends there, or it is not a metrics
 *                   file (see hr_metrics_check). The file is unchanged. */
HR_MUST_CHECK hr_status hr_metrics_continue(hr_metrics *metrics, const char *path,
                                            int64_t keep_bytes, char *line, hr_error *err);

/* Checks that hr_metrics_open would not overwrite another kind of file. An existing file must be
 * empty, or begin with a JSON object with one of our keys ("step", "event") or the part of such a
 * line that a killed run leaves. Changes nothing.
 *
 *   line  [HR_METRICS_BYTES], overwritten
 *
 * Errors   USAGE    the file is not readable
 *          CORRUPT  it is not a metrics file. */
HR_MUST_CHECK hr_status hr_metrics_check(const char *path, char *line, hr_error *err);

/* Returns true when the file has the line of a save; false when it is unreadable. */
bool hr_metrics_has_save(const char *path);

/* Returns true when two open objects write to one file: their lines would be duplicated. */
bool hr_metrics_are_one(const hr_metrics *a, const hr_metrics *b);

/* Takes the file for this run until it is closed. File systems without locks are accepted. Errors:
 * USAGE  another process has it. */
HR_MUST_CHECK hr_status hr_metrics_claim(const hr_metrics *metrics, hr_error *err);

/* Checks that the file still has a name. Errors FAILURE: it was deleted, so its lines are lost. */
HR_MUST_CHECK hr_status hr_metrics_check_name(const hr_metrics *metrics, hr_error *err);

/* Write one line each. A run can continue after an error, and the next line is tried again; the
 * file then lacks only the failed lines. If the path is not a regular file, part of a line can
 * remain.
 *
 * Errors   FAILURE, which includes a full disk: the partial line is removed. */
HR_MUST_CHECK hr_status hr_metrics_write_step(hr_metrics *metrics, const hr_metrics_step *step,
                                              hr_error *err);
HR_MUST_CHECK hr_status hr_metrics_write_last(hr_metrics *metrics, const hr_metrics_last *last,
                                              hr_error *err);

/* Write an event after `step` steps. Errors as hr_metrics_write_step.
 *
 *   text, path, what  any bytes: invalid UTF-8 is written as U+FFFD; text that does not fit is
 *                     truncated, which "cut" reports
 *   signal            a name that needs no escapes: "SIGTERM" */
HR_MUST_CHECK hr_status hr_metrics_write_evaluation(hr_metrics *metrics, int64_t step,
                                                    double valid_loss, int64_t tokens,
                                                    hr_error *err);
HR_MUST_CHECK hr_status hr_metrics_write_sample(hr_metrics *metrics, int64_t step, const char *text,
                                                int64_t bytes, hr_error *err);
HR_MUST_CHECK hr_status hr_metrics_write_save(hr_metrics *metrics, int64_t step, const char *path,
                                              double seconds, hr_error *err);
HR_MUST_CHECK hr_status hr_metrics_write_signal(hr_metrics *metrics, int64_t step,
                                                const char *signal, hr_error *err);
HR_MUST_CHECK hr_status hr_metrics_write_trouble(hr_metrics *metrics, int64_t step,
                                                 const char *what, hr_error *err);

/* Truncates the file to `bytes` if it is longer: for a run that rolls back. */
void hr_metrics_cut(hr_metrics *metrics, int64_t bytes);

/* Flushes the lines to disk, before a checkpoint that contains their length is published. Does
 * nothing for pipes and closed objects.
 *
 * Errors   FAILURE
 * Threads  any, while the object is open; another thread may write lines meanwhile. */
HR_MUST_CHECK hr_status hr_metrics_flush(const hr_metrics *metrics, hr_error *err);

/* Closes the file; removes a new file without lines. Accepts a closed object.
 * Errors   FAILURE  some lines did not reach the file. */
HR_MUST_CHECK hr_status hr_metrics_close(hr_metrics *metrics, hr_error *err);

#endif
