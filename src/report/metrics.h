/* SPDX-License-Identifier: Apache-2.0 */
/* report/metrics.h - what a run says about itself, one JSON object a line (docs/log.md).
 *
 * Works after the memory is sealed: system calls on the caller's buffer, nothing else. Numbers read
 * back to the same bits; what is not finite is null. A line is one call that appends, and the file
 * is cut behind its last whole one before the first line and after a failure: no line is torn, nor
 * there twice. */
#ifndef HR_REPORT_METRICS_H
#define HR_REPORT_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

typedef struct {
    int fd;           /* -1: closed, and every line goes nowhere */
    const char *path; /* for sentences; outlives this object */
    char *line;       /* [HR_METRICS_BYTES] */
    int64_t bytes; /* of whole lines in the file: a checkpoint keeps it for hr_metrics_continue */
    bool made;     /* the file was not there before */
    bool cut_due;  /* there may be more in the file, to be cut before the next line */
} hr_metrics;

/* Room for the longest line: a sample's 16 KiB of text and what it is escaped by. */
enum { HR_METRICS_BYTES = 24 << 10 };

/* Room for the longest line of a step; of an evaluation, a save or a run's end. */
enum { HR_METRICS_STEP_BYTES = 416, HR_METRICS_EVENT_BYTES = 320 };

typedef struct {
    int64_t step; /* from 1 */
    double loss;  /* nats, mean over real tokens, before the update */
    double lr;
    double grad_norm;                  /* before clipping */
    int64_t tokens;                    /* so far */
    double tokens_per_second, seconds; /* what differs between equal runs */
    bool pulls;                        /* z_loss is added to the loss, and written beside it */
    double z_loss;
    double fraction_of_ceiling; /* of what the machine was measured to do; 0: not known */
    bool no_targets;            /* the step predicted no token: loss and z_loss are not known */
} hr_metrics_step;

typedef struct {
    int64_t arena_bytes_planned, arena_bytes_used;
    int64_t process_bytes_planned, process_bytes_measured;
    double valid_loss; /* NaN: there was no evaluation */
} hr_metrics_last;

/* Opens or makes the file, for a run from its first step. What an earlier run left in it stays
 * until the first line. A null path opens nothing, and then all lines go nowhere.
 *
 *   line  [HR_METRICS_BYTES], stays with the object
 *
 * Errors   USAGE  the path cannot be written. */
HR_MUST_CHECK hr_status hr_metrics_open(hr_metrics *metrics, const char *path, char *line,
                                        hr_error *err);

/* Opens the file to go on behind `keep_bytes` of it; what lies there stays until the first line. A
 * file that is missing is made where nothing is to be kept; a pipe or a device is gone on with as
 * it is.
 *
 *   keep_bytes  `bytes` of the object that wrote it, at the checkpoint
 *
 * Errors   USAGE    the path cannot be read and written
 *          CORRUPT  the file is missing or shorter; no line ends there; it is none of ours, see
 *                   hr_metrics_check. It is as it was. */
HR_MUST_CHECK hr_status hr_metrics_continue(hr_metrics *metrics, const char *path,
                                            int64_t keep_bytes, char *line, hr_error *err);

/* That hr_metrics_open would not write over what is none of ours: a file that is there and not
 * empty begins with a JSON object that has a key of our lines ("step", "event"), or with as much of
 * such a line as a kill left. Touches nothing.
 *
 *   line  [HR_METRICS_BYTES], written over
 *
 * Errors   USAGE    it cannot be read
 *          CORRUPT  it is none of ours. */
HR_MUST_CHECK hr_status hr_metrics_check(const char *path, char *line, hr_error *err);

/* Whether a file has a line of a save. What cannot be read has none. */
bool hr_metrics_has_save(const char *path);

/* Whether two open objects write into one file: their lines would be there twice. */
bool hr_metrics_are_one(const hr_metrics *a, const hr_metrics *b);

/* That the file still has a name. Errors FAILURE: it was removed, and what is written is lost. */
HR_MUST_CHECK hr_status hr_metrics_check_name(const hr_metrics *metrics, hr_error *err);

/* One line each. A run can go on after an error, and the next line is tried again: then the file
 * has all lines but those that failed. Where the path is no file, a part of a line may stay.
 *
 * Errors   FAILURE, a full disk among them: the part of the line that was written is taken back. */
HR_MUST_CHECK hr_status hr_metrics_write_step(hr_metrics *metrics, const hr_metrics_step *step,
                                              hr_error *err);
HR_MUST_CHECK hr_status hr_metrics_write_last(hr_metrics *metrics, const hr_metrics_last *last,
                                              hr_error *err);

/* What happened after `step` steps. Errors as hr_metrics_write_step.
 *
 *   text, path, what  any bytes: those that are no UTF-8 are written as U+FFFD, and what the line
 *                     has no room for is left out, which "cut" then says
 *   signal            a name without anything to escape: "SIGTERM" */
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

/* Takes back what comes after so many bytes of whole lines, if there are more: for a run that goes
 * back. */
void hr_metrics_cut(hr_metrics *metrics, int64_t bytes);

/* Has the lines written so far reach the disk: before a checkpoint is published that knows their
 * length. Pipes and closed objects have nothing to flush.
 *
 * Errors   FAILURE
 * Threads  any, while the object stays open: another may write lines. */
HR_MUST_CHECK hr_status hr_metrics_flush(const hr_metrics *metrics, hr_error *err);

/* A file that was made and has no line is removed. Accepts a closed object.
 * Errors   FAILURE  what was written did not reach the file. */
HR_MUST_CHECK hr_status hr_metrics_close(hr_metrics *metrics, hr_error *err);

#endif
