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
    int64_t steps, tokens; /* of the run, from its first step on */
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
    void (*trouble)(void *context, const char *line); /* what went wrong, and the run goes on */
} hr_train_events;

typedef struct {
    hr_train_events events;
    const char *metrics;        /* JSON lines, one a step; null: none */
    const char *calibrations;   /* directory of calibrations; null: times are guessed */
    int64_t cache_limit_bytes;  /* of data.cache, as hr_cache_prune; 0: none */
    bool fresh;                 /* start over: checkpoints that are there go */
    const char *const *allowed; /* [allowed_count] keys that may differ from the run gone on with */
    int32_t allowed_count;
    const volatile sig_atomic_t
        *interrupts; /* signals so far: 1 ends the run after saving; null: none */
    const volatile sig_atomic_t *signal;          /* which of them came last, for the log */
    const volatile sig_atomic_t *saves, *reports; /* each more asks for a checkpoint; for a report
                                                     on memory. Null: nobody asks */
} hr_train_options;

/* Trains; where train.out has checkpoints, from the newest whole one on, as if the run had never
 * ended. The first interrupt drops the present step, unless it is in its update, saves and gives
 * INTERRUPTED; so does train.max_seconds.
 *
 *   result  out; written as far as the run got
 *
 * Errors   as hr_plan_make; USAGE text, output directory, or another recipe than that of the run it
 *          would go on with; CORRUPT text, checkpoints; DIVERGED a loss that is not finite; BROKEN
 *          measured above planned; INTERRUPTED; FAILURE the system. */
HR_MUST_CHECK hr_status hr_train(const hr_config *config, const hr_train_options *options,
                                 hr_train_result *result, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
