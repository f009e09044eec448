/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/train.h - trains a model inside a memory plan. */
#ifndef HEADROOM_TRAIN_H
#define HEADROOM_TRAIN_H

#include <signal.h>

#include "headroom/config.h"
#include "headroom/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One optimizer step. */
typedef struct {
    int64_t step, steps; /* step counts from 1 */
    /* cross-entropy in nats before the update: mean over the real tokens of the batch */
    double loss;
    double lr, grad_norm;     /* grad_norm is before clipping */
    int64_t tokens;           /* real tokens so far */
    double seconds;           /* since the first step began */
    double tokens_per_second; /* of this step */
    /* estimated to the end of the run, with evaluations, samples and saves */
    double seconds_left;
    int64_t targets;            /* target tokens of this step; 0: none, and loss is NaN */
    double fraction_of_ceiling; /* of the calibrated rate of large products; 0: not calibrated */
    int64_t saved_step;         /* of the newest complete checkpoint; below 1: none */
} hr_train_step;

typedef struct {
    hr_plan_answer plan;
    int64_t arena_bytes_planned, arena_bytes_used;
    int64_t process_bytes_planned, process_bytes_measured;
    int64_t steps, tokens;        /* of the whole run, including earlier sessions */
    double first_loss, last_loss; /* over steps with targets; NaN: no such step */
    double valid_loss;            /* NaN: not evaluated */
    double seconds;
    /* weights that stayed in files: bytes read by this process, how long that took, and how long
     * the run waited for it; 0: none stayed */
    int64_t read_bytes;
    double read_seconds, read_waited_seconds;
    bool saved; /* weights were written after the last update */
} hr_train_result;

/* Callbacks of a run. They are called from the training thread and must not allocate. Any may be
 * null. */
typedef struct {
    void *context;
    void (*preparing)(void *context, const char *work, int64_t bytes_done, int64_t bytes_total);
    /* Work outside the steps: planning, loading weights, evaluating, sampling, saving. `done` and
     * `total` are in units of the work; total 0: not known. */
    void (*working)(void *context, const char *work, int64_t done, int64_t total);
    void (*planned)(void *context, const hr_plan_answer *plan);
    void (*text)(void *context, const char *line); /* a sentence about the data or the seal */
    void (*step)(void *context, const hr_train_step *step);
    /* tokens 0: no targets, and loss is NaN */
    void (*evaluated)(void *context, int64_t step, double loss, int64_t tokens);
    void (*sample)(void *context, const char *text, int64_t bytes); /* UTF-8, as it is generated */
    void (*saved)(void *context, int64_t step,
                  const char *path);                  /* a checkpoint, in folder `path` */
    void (*trouble)(void *context, const char *line); /* a problem that does not end the run */
    /* A key that differs from the run to resume and is the reason for the refusal; list it in
     * `allowed` to resume anyway. */
    void (*refused)(void *context, const char *key);
} hr_train_events;

typedef struct {
    size_t size; /* of this struct */
    hr_train_events events;
    const char *metrics;        /* file of JSON lines, one per step; null: none */
    const char *calibrations;   /* directory of calibrations; null: step times are estimated */
    int64_t cache_limit_bytes;  /* size limit of data.cache, see hr_cache_prune; 0: none */
    bool fresh;                 /* start over: existing checkpoints are removed */
    const char *const *allowed; /* [allowed_count] keys that may differ from the run to resume */
    int32_t allowed_count;
    /* signals received so far: 1 ends the run after saving; null: none */
    const volatile sig_atomic_t *interrupts;
    const volatile sig_atomic_t *signal; /* number of the last signal, for the log */
    /* each increment requests a checkpoint or a memory report; null: none */
    const volatile sig_atomic_t *saves, *reports;
} hr_train_options;

/* Trains a model. If train.out has checkpoints, training resumes from the newest intact one with
 * bit-identical results. The first interrupt drops the current step unless it is in its update,
 * saves, and returns INTERRUPTED; so does train.max_seconds.
 *
 *   result  out; written as far as the run got
 *
 * Errors   as hr_plan_make; and
 *          USAGE    the text, the output directory, or a recipe that differs from the run to resume
 *          CORRUPT  the text or a checkpoint
 *          DIVERGED a loss that is not finite
 *          BROKEN   measured memory above the plan
 *          INTERRUPTED, FAILURE. */
HR_MUST_CHECK hr_status hr_train(const hr_config *config, const hr_train_options *options,
                                 hr_train_result *result, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
