/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/progress.h - a progress line on a terminal, rewritten in place.
 *
 * Writes nothing if the file descriptor is not a terminal. Allocates no memory. */
#ifndef HEADROOM_PROGRESS_H
#define HEADROOM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int fd;
    bool terminal;
    int32_t columns_shown; /* width of the visible line, 0: none */
    int64_t shown_ns;      /* time of the last write; 0: never */
} hr_progress;

typedef struct {
    int64_t step, steps; /* completed; of the run */
    double loss;
    double tokens_per_second;
    double seconds_left; /* negative: not known */
    int64_t used_bytes, planned_bytes;
    bool no_targets; /* the step had no target tokens, hence no loss */
    /* Left out if 0 or null: */
    double fraction_of_ceiling, valid; /* the last validation loss */
    int64_t saved;                     /* step of the last checkpoint */
    const struct hr_progress_curve *curve;
} hr_progress_line;

enum { HR_PROGRESS_BYTES = 320, HR_PROGRESS_CURVE = 24 };

/* The losses of a run, as few means. Initialize with { 0 }. */
typedef struct hr_progress_curve {
    double means[HR_PROGRESS_CURVE], sum;
    int64_t each, added; /* losses of a mean; of the next one so far */
    int32_t count;
} hr_progress_curve;

void hr_progress_curve_add(hr_progress_curve *curve, double loss);

/* Determines whether `fd` is a terminal, once. */
hr_progress hr_progress_begin(int fd);

/* Formats the line without control characters, the curve as UTF-8 blocks. Returns its length.
 * Pure. */
int32_t hr_progress_print(const hr_progress_line *line, char text[HR_PROGRESS_BYTES]);

/* Formats "evaluating: 45 %, 23 s left" for work that started `seconds` ago; with total 0
 * "planning", and from one second on, if any work is done, "planning, 2 s so far". Returns its
 * length. Pure. */
int32_t hr_progress_work_print(const char *work, int64_t done, int64_t total, double seconds,
                               char text[HR_PROGRESS_BYTES]);

/* Shows the line, cut to the terminal width. It writes at most five times a second according to
 * `now_ns`, a monotonic clock, and always for the last step. A failed write disables the progress
 * line. */
void hr_progress_show(hr_progress *progress, const hr_progress_line *line, int64_t now_ns);

/* The same for any one-line text, such as work before the first step. */
void hr_progress_note(hr_progress *progress, const char *text, int64_t now_ns);

/* Clears the line, so that later output starts on an empty line. */
void hr_progress_end(hr_progress *progress);

/* Resident memory of this process in bytes, -1 if unknown. */
int64_t hr_progress_resident_bytes(void);

#ifdef __cplusplus
}
#endif

#endif
