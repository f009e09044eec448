/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/calibrate.h - measures kernel timings on this machine so that plans can predict step
 * times, and compares such predictions with real steps. docs/time.md describes the cost model. */
#ifndef HEADROOM_CALIBRATE_H
#define HEADROOM_CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_CALIBRATE_CHECKS_MAX = 40, HR_CALIBRATE_CHECKS_DEFAULT = 10 };

/* A recipe whose step time was predicted and then measured. */
typedef struct {
    char recipe[96];
    bool unseen; /* it has shapes that calibration does not run */
    double predicted_seconds;
    /* CPU seconds, for each call those of the busiest thread: the best of five steps at the machine
     * speed of the calibration; if there were none, the step at the nearest speed */
    double measured_seconds;
    double wall_seconds; /* wall time of that step */
    double error;        /* predicted / measured - 1 */
    /* machine speed around that step. A fixed small step runs before and after it; this is the
     * speed of the part (products, passes, updates) that differs most from the calibration, or
     * without a calibration from the best in this check */
    double speed;
    /* five steps at comparable speed exist, each part within 10 %, and the best is within 10 % of
     * their median; otherwise the row measures the machine, not the model */
    bool counts;
} hr_calibrate_row;

typedef struct {
    size_t size;           /* of this struct */
    const char *directory; /* where calibrations are kept; created if it is missing */
    const char *date;      /* today's date, for people: "2025-03-14" */
    /* highest instruction set, a name of base/cpu.h; null: the best available */
    const char *kernels;
    int32_t threads; /* 0: from CPU affinity and cgroup quota */
    /* number of recipes that hr_calibrate_check runs: 1 to HR_CALIBRATE_CHECKS_MAX */
    int32_t checks;
    double seconds;  /* time limit of hr_calibrate; the first few recipes run in any case */
    int32_t recipes; /* hr_calibrate runs only the first so many recipes; 0: all. For tests */
    void *context;
    void (*progress)(void *context, int32_t done, int32_t all); /* may be null */
    void (*row)(void *context, const hr_calibrate_row *row);    /* may be null */
} hr_calibrate_request;

typedef struct {
    char file[1200]; /* path of the file written */
    char rung[16];
    int32_t threads, recipes, calls; /* calls: number of distinct timed calls */
    int32_t left_out;                /* recipes skipped for lack of time */
    double seconds;                  /* total */
    /* relative errors of the fitted prices: median and 90th percentile */
    double error_median, error_high;
    double products[2]; /* floating-point operations per second: fp32, bf16 */
    double memory;      /* bytes per second in an optimizer update */
    double fork_join;   /* seconds */
    /* bytes per second of files in the calibration directory: written and flushed; moved by the
     * file space, 0 where the disk has no room to measure it */
    double disk, file_write, file_read;
} hr_calibrate_report;

typedef struct {
    char source[160];      /* where the prices come from */
    double speed;          /* median speed of the rows */
    int32_t rows, counted; /* all rows; rows with `counts` */
    /* absolute errors of all rows: median and 90th percentile */
    double error_median, error_high;
    double counted_median, counted_high; /* the same for rows with `counts`; 0 without any */
} hr_calibrate_verdict;

/* Runs small recipes, times every call, fits the prices and writes them to the directory.
 * Errors   USAGE    too many threads; an unknown or unavailable instruction set; a path that is not
 *                   a directory
 *          NO_FIT   less memory than the recipes need, some hundred MiB
 *          FAILURE  the file cannot be written.
 * Cost     at most request->seconds, or the time of one step of 18 recipes if that is longer
 * Threads  one call at a time per process. */
HR_MUST_CHECK hr_status hr_calibrate(const hr_calibrate_request *request,
                                     hr_calibrate_report *report, hr_error *err);

/* Predicts and then runs recipes, with the prices that a plan would use now. Rows without `counts`
 * are measured again, at most twice.
 * Errors   as hr_calibrate; CORRUPT an unusable calibration. */
HR_MUST_CHECK hr_status hr_calibrate_check(const hr_calibrate_request *request,
                                           hr_calibrate_verdict *verdict, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
