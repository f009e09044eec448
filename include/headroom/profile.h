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
enum { HR_PROFILE_PARTS_MOST = 32 }; /* five parts in four directions */
enum { HR_PROFILE_ENGINES_MOST = 8 };

/* An operation in one part of the model and one direction. All figures are per step. */
typedef struct {
    const char *operation; /* "linear", as plan --program names it; null: all of a part */
    const char *part;      /* "attention", "MLP", "output head", "embedding", "run" */
    const char *direction; /* "forward", "backward", "recompute"; empty: neither */
    double calls;
    double seconds, planned_seconds;
    /* of `seconds`, those in which a compute thread on average did not compute: it waited for
     * another thread or for a file, or one thread did the work, such as reading a batch */
    double waited_seconds;
    double flops; /* of matrix products and attention, as plan counts them */
} hr_profile_row;

/* What a part of the machine did in a step, or waited for. */
typedef struct {
    const char *engine; /* "compute threads", "file of the run", "files of the base" */
    const char *doing;
    double seconds; /* of a compute thread on average; of a file, while anything was moved */
    double bytes;   /* that were moved */
} hr_profile_engine;

/* Bytes over a step, in parts of equally many operations. */
typedef struct {
    int32_t count;
    int32_t first, last; /* operations */
    /* [count] the most in each part: planned live bytes of the arena, and the resident bytes of the
     * process in all measured steps; they are read every few milliseconds, and a part that passes
     * between two readings has the earlier one */
    int64_t live[HR_PLAN_CURVE_MOST], resident[HR_PLAN_CURVE_MOST];
} hr_profile_curve;

typedef struct {
    hr_train_result run;
    int64_t steps, warm_up_steps; /* measured; before them and not counted */
    double step_seconds;          /* wall time of a step, mean */
    double between_seconds;       /* of it, outside of operations */
    double ceiling_flops;         /* per second, as calibrated; 0: not calibrated */
    hr_profile_row step;          /* the sum of all rows, and what is between operations */
    hr_profile_curve curve;
    int32_t row_count, part_count, engine_count;
    hr_profile_row rows[HR_PROFILE_ROWS_MOST];   /* [row_count], slowest first */
    hr_profile_row parts[HR_PROFILE_PARTS_MOST]; /* [part_count] their sums, slowest first */
    /* [engine_count] the rows of an engine follow one another and fill the step */
    hr_profile_engine engines[HR_PROFILE_ENGINES_MOST];
} hr_profile_report;

/* A file that appears complete, or not at all if the run ends early. */
typedef struct {
    const char *path; /* null: none */
    void *memory;     /* aligned to 64; with a path as many bytes as the file needs */
} hr_profile_file;

enum { HR_PROFILE_TRACE_BYTES = 384 << 10, HR_PROFILE_PAGE_BYTES = 1 << 20 };
typedef struct {
    hr_profile_file trace; /* [..TRACE_BYTES]: operations of the last step, for Perfetto */
    hr_profile_file page;  /* [..PAGE_BYTES]: the report and the planned bytes as an HTML page */
} hr_profile_files;

/* Trains `steps` steps, fewer if the recipe has fewer. Of several the first is not counted: it is
 * the first to touch buffers and files.
 *
 *   options  as hr_train. events.working also gets the operations done in each step
 *   files    null: none
 *   report   out; valid if the result is OK
 *
 * Errors   as hr_train; USAGE  a recipe with train.stages; a file cannot be written there, or
 *          another file is there. */
HR_MUST_CHECK hr_status hr_profile(const hr_config *config, const hr_train_options *options,
                                   int64_t steps, const hr_profile_files *files,
                                   hr_profile_report *report, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
