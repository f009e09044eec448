/* SPDX-License-Identifier: Apache-2.0 */
/* report/metrics.h - what a run says about itself, one JSON object a line.
 *
 * Works after the memory is sealed: system calls on the caller's buffer, nothing else. Numbers read
 * back to the same bits; what is not finite is null. */
#ifndef HR_REPORT_METRICS_H
#define HR_REPORT_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

typedef struct {
    int fd;           /* -1: closed, and every line goes nowhere */
    const char *path; /* for sentences; outlives this object */
    char *line;       /* [HR_METRICS_BYTES] */
    int64_t bytes;    /* of whole lines in the file */
    bool made;        /* the file was not there before */
} hr_metrics;

enum { HR_METRICS_BYTES = 512 };

typedef struct {
    int64_t step; /* from 1 */
    double loss;  /* nats, mean over real tokens, before the update */
    double lr;
    double grad_norm;                  /* before clipping */
    int64_t tokens;                    /* so far */
    double tokens_per_second, seconds; /* what differs between equal runs */
    bool pulls;                        /* z_loss is added to the loss, and written beside it */
    double z_loss;
} hr_metrics_step;

typedef struct {
    int64_t arena_bytes_planned, arena_bytes_used;
    int64_t process_bytes_planned, process_bytes_measured;
    double valid_loss; /* NaN: there was no evaluation */
} hr_metrics_last;

/* Opens or makes the file. What an earlier run left in it stays until the first line. A null path
 * opens nothing, and then all lines go nowhere.
 *
 *   line  [HR_METRICS_BYTES], stays with the object
 *
 * Errors   USAGE  the path cannot be written. */
HR_MUST_CHECK hr_status hr_metrics_open(hr_metrics *metrics, const char *path, char *line,
                                        hr_error *err);

/* One line each. Errors FAILURE, a full disk among them: the part of the line that was written is
 * taken back, where the path is a file. */
HR_MUST_CHECK hr_status hr_metrics_write_step(hr_metrics *metrics, const hr_metrics_step *step,
                                              hr_error *err);
HR_MUST_CHECK hr_status hr_metrics_write_last(hr_metrics *metrics, const hr_metrics_last *last,
                                              hr_error *err);

/* A file that was made and has no line is removed. Accepts a closed object.
 * Errors   FAILURE  what was written did not reach the file. */
HR_MUST_CHECK hr_status hr_metrics_close(hr_metrics *metrics, hr_error *err);

#endif
