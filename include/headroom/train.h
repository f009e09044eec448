/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/train.h - train inside a plan. */
#ifndef HEADROOM_TRAIN_H
#define HEADROOM_TRAIN_H

#include <signal.h>

#include "headroom/config.h"
#include "headroom/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One update. */
typedef struct {
    int64_t step, steps;      /* from 1 */
    double loss;              /* nats, mean over the real tokens of the batch, before the update;
                                 cross-entropy alone */
    double lr, grad_norm;     /* norm before clipping */
    int64_t tokens;           /* real tokens so far */
    double seconds;           /* since the first step began */
    double tokens_per_second; /* of this step */
} hr_train_step;

typedef struct {
    hr_plan_answer plan;
    int64_t arena_bytes_planned, arena_bytes_used;
    int64_t process_bytes_planned, process_bytes_measured;
    int64_t steps, tokens;
    double first_loss, last_loss;
    double valid_loss; /* NaN: not evaluated */
    double seconds;
    bool saved; /* weights were written, since the last update */
} hr_train_result;

/* What the run tells as it goes. Called from the training thread; must not allocate. Any may be
 * null. */
typedef struct {
    void *context;
    void (*preparing)(void *context, const char *work, int64_t bytes_done, int64_t bytes_total);
    void (*planned)(void *context, const hr_plan_answer *plan);
    void (*text)(void *context, const char *line); /* a sentence about the data, the seal */
    void (*step)(void *context, const hr_train_step *step);
    void (*evaluated)(void *context, int64_t step, double loss, int64_t tokens);
    void (*sample)(void *context, const char *text, int64_t bytes); /* as it comes */
    void (*saved)(void *context, const char *path);
} hr_train_events;

typedef struct {
    hr_train_events events;
    const char *metrics;      /* JSON lines, one a step; null: none */
    const char *calibrations; /* directory of calibrations; null: times are guessed */
    const volatile sig_atomic_t
        *interrupts; /* signals so far: 1 ends the run after saving; null: none */
} hr_train_options;

/* Trains from the beginning. The first interrupt ends the present step, saves and gives
 * INTERRUPTED.
 *
 *   result  out; written as far as the run got
 *
 * Errors   as hr_plan_make; USAGE text or output directory; CORRUPT text; DIVERGED a loss that is
 * not
 *          finite; BROKEN measured above planned; INTERRUPTED; FAILURE the system. */
HR_MUST_CHECK hr_status hr_train(const hr_config *config, const hr_train_options *options,
                                 hr_train_result *result, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
