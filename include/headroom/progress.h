/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/progress.h - one line on a terminal that is rewritten in place.
 *
 * On anything that is not a terminal nothing is written at all. Takes no memory from the system. */
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
    int32_t columns_shown; /* of the line that stands there, 0: none */
    int64_t shown_ns;      /* when; 0: never */
} hr_progress;

typedef struct {
    int64_t step, steps; /* done; in the run */
    double loss;
    double tokens_per_second;
    double seconds_left; /* negative: not known yet */
    int64_t used_bytes, planned_bytes;
    bool no_targets; /* the step predicted no token, and has no loss */
} hr_progress_line;

enum { HR_PROGRESS_BYTES = 192 };

/* Terminal or not is decided here, once. */
hr_progress hr_progress_begin(int fd);

/* The line as text, without control characters. Returns its length. Pure. */
int32_t hr_progress_print(const hr_progress_line *line, char text[HR_PROGRESS_BYTES]);

/* "evaluating: 45 %, 0:23 left", for work that began so many seconds ago and is done in part; total
 * 0: "planning". Returns its length. Pure. */
int32_t hr_progress_work_print(const char *work, int64_t done, int64_t total, double seconds,
                               char text[HR_PROGRESS_BYTES]);

/* Shows the line, cut to the terminal's width; at most five times a second by `now_ns`, a clock
 * that only moves forward, and always for the last step. A write that fails ends the showing. */
void hr_progress_show(hr_progress *progress, const hr_progress_line *line, int64_t now_ns);

/* The same for any text of one line, as for work before the first step. */
void hr_progress_note(hr_progress *progress, const char *text, int64_t now_ns);

/* Wipes the line, so that what is printed next starts in an empty one. */
void hr_progress_end(hr_progress *progress);

/* Bytes of this process that are resident now, -1 when the system does not say. */
int64_t hr_progress_resident_bytes(void);

#ifdef __cplusplus
}
#endif

#endif
