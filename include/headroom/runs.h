/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/runs.h - what is known of runs that are compared, and a page of it. */
#ifndef HEADROOM_RUNS_H
#define HEADROOM_RUNS_H

#include "headroom/config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_RUN_LOSSES_MOST = 256 };

/* Losses over a run of any length. Each point is the mean of `stride` of them, which doubles when
 * there is no more room, so up to HR_RUN_LOSSES_MOST losses are kept as they are. */
typedef struct {
    double step, tokens, seconds, loss; /* sums of the losses in it */
} hr_run_loss;

typedef struct {
    int32_t count, stride; /* points; losses in each of them, the last one excepted */
    int32_t last_count;    /* losses in the last point */
    hr_run_loss points[HR_RUN_LOSSES_MOST];
} hr_run_losses;

/* Adds a loss, with what was trained before it. Not if a number is NaN or Inf. `losses` begins as
 * zeros. */
void hr_run_losses_add(hr_run_losses *losses, hr_run_loss point);

/* The mean of point i. */
hr_run_loss hr_run_losses_at(const hr_run_losses *losses, int32_t i);

typedef struct {
    const char *folder;
    int64_t steps, tokens, planned, measured; /* bytes; 0: the log has no last line */
    double seconds, loss, valid, best;        /* NaN: not known */
    double common;                            /* loss after the tokens that all runs have */
    hr_run_losses losses, valid_losses;
    hr_config *recipe; /* of its newest checkpoint; null: none. For hr_config_free */
} hr_run;

/* The next key from row `from` of the table on whose values differ among the runs that have a
 * recipe, train.out excepted; null: none. `row` out. */
const hr_key *hr_runs_next_difference(const hr_run *runs, int32_t count, int32_t from,
                                      int32_t *row);

/* The value of a key in a run: "-" if it is not known, "unset" if it is empty. */
const char *hr_run_value(const hr_run *run, const char *key, char text[HR_VALUE_BYTES]);

/* Checks that the page can be written, before any run is read.
 * Errors   USAGE    its directory is missing, or another file is there
 *          FAILURE  the directory is not writable. */
HR_MUST_CHECK hr_status hr_runs_check_page(const char *path, hr_error *err);

/* Writes an HTML page: a table of the runs, their losses as charts, their bytes, and the keys in
 * which their recipes differ. It appears complete or not at all.
 *
 *   tokens  that all runs have
 *
 * Errors   as hr_runs_check_page; FAILURE also a full disk. */
HR_MUST_CHECK hr_status hr_runs_write_page(const char *path, const hr_run *runs, int32_t count,
                                           int64_t tokens, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
