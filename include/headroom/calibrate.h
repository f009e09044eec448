/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/calibrate.h - measures what this machine takes for each operation, so that plans can say
 * how long a step will take; and holds such predictions against steps. docs/time.md: the model. */
#ifndef HEADROOM_CALIBRATE_H
#define HEADROOM_CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_CALIBRATE_CHECKS_MAX = 40, HR_CALIBRATE_CHECKS_DEFAULT = 10 };

/* One recipe that was predicted and then run. */
typedef struct {
    char recipe[96];
    bool unseen; /* with shapes that no calibration runs */
    double predicted_seconds;
    double measured_seconds; /* of processor, of each call the busiest thread: the best of five
                              * steps that ran while the machine was as fast as it was when the
                              * prices were measured; were there none, the step nearest to that */
    double wall_seconds;     /* of that step, by the clock */
    double error;            /* predicted / measured - 1 */
    double speed; /* around that step: products, passes and updates of a fixed small step before and
                   * after, the one that differs most beside what it was when the prices were
                   * measured; with a guess, beside its best in this check */
    bool counts;  /* five such steps were had, each part within a tenth, and the best is within a
                   * tenth of their middle; else the row says more about the machine */
} hr_calibrate_row;

typedef struct {
    const char *directory; /* that keeps calibrations; made if it is missing */
    const char *date;      /* of today, for people: "2025-03-14" */
    const char *kernels;   /* highest rung, a name of base/cpu.h; null: what the machine has */
    int32_t threads;       /* 0: as affinity and the quota allow */
    int32_t checks;        /* recipes of hr_calibrate_check: 1 to HR_CALIBRATE_CHECKS_MAX */
    double seconds;        /* that hr_calibrate may take; a few recipes it runs anyway */
    int32_t recipes;       /* of hr_calibrate, the first so many; 0: all. For tests */
    void *context;
    void (*progress)(void *context, int32_t done, int32_t all); /* null: nobody asks */
    void (*row)(void *context, const hr_calibrate_row *row);    /* null: nobody asks */
} hr_calibrate_request;

typedef struct {
    char file[1200]; /* that was written */
    char rung[16];
    int32_t threads, recipes, calls; /* calls: different ones that were timed */
    int32_t left_out;                /* recipes that there was no time for */
    double seconds;                  /* in all */
    double error_median, error_high; /* of the calls' prices; high: 90 of 100 are below */
    double products[2];              /* floating-point operations a second: fp32, bf16 */
    double memory;                   /* bytes a second in an update of weights */
    double fork_join;                /* seconds */
    double disk; /* bytes a second, written and flushed, where the calibration is kept */
} hr_calibrate_report;

typedef struct {
    char source[160];                    /* where the prices came from */
    double speed;                        /* median of the rows' */
    int32_t rows, counted;               /* all; those that count */
    double error_median, error_high;     /* of all rows, without their signs */
    double counted_median, counted_high; /* of those that count; 0 of none */
} hr_calibrate_verdict;

/* Runs small recipes, times every call, fits the prices and writes them to the directory.
 * Errors   USAGE    more threads than there may be; kernels that there are not; a directory that is
 *                   none
 *          NO_FIT   less memory than the recipes need, some hundred MiB
 *          FAILURE  the file cannot be written.
 * Cost     request->seconds or less; more where a dozen recipes, a step each, take longer
 * Threads  one at a time in a process. */
HR_MUST_CHECK hr_status hr_calibrate(const hr_calibrate_request *request,
                                     hr_calibrate_report *report, hr_error *err);

/* Predicts and runs recipes, with the prices that a plan would use now. Rows that do not count
 * are run again, twice at most.
 * Errors   as hr_calibrate; CORRUPT a calibration that cannot be used. */
HR_MUST_CHECK hr_status hr_calibrate_check(const hr_calibrate_request *request,
                                           hr_calibrate_verdict *verdict, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
