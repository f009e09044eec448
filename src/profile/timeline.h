/* SPDX-License-Identifier: Apache-2.0 */
/* profile/timeline.h - the operations of one step as a trace file, for Perfetto and
 * chrome://tracing: a slice for each call of an operation, and the planned live bytes of the arena
 * as a counter.
 *
 * The memory is the caller's. The file has no name before it is complete. */
#ifndef HR_PROFILE_TIMELINE_H
#define HR_PROFILE_TIMELINE_H

#include "base/file.h"
#include "graph/rates.h"
#include "headroom/profile.h"
#include "plan/plan.h"

typedef struct hr_timeline hr_timeline;

/* How every trace begins. */
extern const char hr_timeline_begin[];

/* Begins the file. Errors as hr_file_begin_path; USAGE also if another file is there. */
HR_MUST_CHECK hr_status hr_timeline_open(hr_timeline **trace, const hr_profile_file *where,
                                         hr_error *err);

/* Notes the program that runs. */
void hr_timeline_place(hr_timeline *trace, const hr_program *program, const hr_plan *plan,
                       const hr_rates *rates);

/* Adds a call of an operation, by the clock of hr_clock_ns.
 *   resident  bytes of the process at its end */
void hr_timeline_add(hr_timeline *trace, int32_t step, int64_t begun_ns, int64_t ended_ns,
                     int64_t resident);

/* Writes what was added; the program ends with the run. */
void hr_timeline_flush(hr_timeline *trace);

/* Adds the bytes of the process, and completes the file. Errors as hr_file_append.
 *   budget  0: none */
HR_MUST_CHECK hr_status hr_timeline_finish(hr_timeline *trace, int64_t planned, int64_t measured,
                                           int64_t budget, hr_error *err);

/* Removes an incomplete file. Accepts null. */
void hr_timeline_close(hr_timeline *trace);

#endif
