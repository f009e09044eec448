/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/profile.h - trains a few steps of a recipe and measures each of their operations.
 *
 * The run is that of hr_train, in the memory of its plan, without an output directory: nothing is
 * saved. */
#ifndef HEADROOM_PROFILE_H
#define HEADROOM_PROFILE_H

#include "headroom/train.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_PROFILE_ROWS_MOST = 512, HR_PROFILE_STEPS_DEFAULT = 3, HR_PROFILE_STEPS_MOST = 1000000 };

/* An operation in one part of the model and one direction. All figures are per step. */
typedef struct {
    const char *operation; /* "linear", as plan --program names it */
    const char *part;      /* "attention", "MLP", "output head", "embedding", "run" */
    const char *direction; /* "forward", "backward", "recompute"; empty: neither */
    double calls;
    double seconds, planned_seconds;
    double flops; /* of matrix products and attention, as plan counts them */
} hr_profile_row;

typedef struct {
    hr_train_result run;
    int64_t steps, warm_up_steps; /* measured; before them and not counted */
    double step_seconds;          /* wall time of a step, mean */
    double between_seconds;       /* of it, outside of operations */
    double planned_seconds;       /* of all rows */
    double ceiling_flops;         /* per second, as calibrated; 0: not calibrated */
    int32_t row_count;
    hr_profile_row rows[HR_PROFILE_ROWS_MOST]; /* [row_count], slowest first */
} hr_profile_report;

/* A file for the operations of the last step, as a trace of Perfetto. */
enum { HR_PROFILE_TRACE_BYTES = 384 << 10 };
typedef struct {
    const char *path;
    void *memory; /* [HR_PROFILE_TRACE_BYTES], aligned to 8 */
} hr_profile_trace;

/* Trains `steps` steps, fewer if the recipe has fewer. Of several the first is not counted: it is
 * the first to touch buffers and files.
 *
 *   options  as hr_train. events.working also gets the operations done in each step
 *   trace    null: none
 *   report   out; valid if the result is OK
 *
 * Errors   as hr_train; USAGE  a recipe with train.stages. */
HR_MUST_CHECK hr_status hr_profile(const hr_config *config, const hr_train_options *options,
                                   int64_t steps, const hr_profile_trace *trace,
                                   hr_profile_report *report, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
