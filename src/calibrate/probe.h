/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/probe.h - a recipe as it would train, on invented tokens and weights, under a watch.
 *
 * Program, plan, arena, executor and kernels are those of a run; what differs is that text and
 * first values are made up in no time, and that every step is timed. */
#ifndef HR_CALIBRATE_PROBE_H
#define HR_CALIBRATE_PROBE_H

#include "dev/executor.h"
#include "plan/compile.h"

/* Times that are kept of a step: the smallest. */
enum { HR_PROBE_TIMES = 48 };

typedef struct {
    int32_t calls;              /* that were watched */
    int32_t count;              /* of times kept */
    int32_t ns[HR_PROBE_TIMES]; /* in any order */
} hr_probe_times;

typedef struct {
    hr_memory memory;
    hr_region region; /* program, plan, tables */
    hr_compiled compiled;
    hr_pool pool;
    hr_kernels kernels;
    hr_executor executor;
    int64_t targets;                     /* tokens of a batch */
    int64_t join_ns;                     /* of waking threads and waiting for them, the least */
    int64_t lap_ns[HR_POOL_THREADS_MAX]; /* of processor that each thread had of this call */
    int64_t step_ns;                     /* of all calls of this step */
    bool watched;
    hr_probe_times *times; /* [2 x step_count] calls with all rows; those where sums start */
} hr_probe;

/* What a recipe asks for, but that with memory.recompute at layers the last of several layers makes
 * only its activation again: another operation than the product that makes both. dropped is as long
 * as a model may have layers, out. */
hr_strategy hr_probe_strategy(const hr_config *config, hr_intermediates *recompute_set);

/* Compiles and loads.
 *
 *   config    passes hr_config_check; it runs with hr_probe_strategy of it
 *   cpu_mask  of this machine or a lesser one
 *
 * Errors   NO_FIT   more memory than there is
 *          FAILURE  the system. What was opened is closed again. */
HR_MUST_CHECK hr_status hr_probe_open(hr_probe *probe, const hr_config *config, int32_t threads,
                                      uint32_t cpu_mask, hr_error *err);

/* What a step of training took. On a quiet machine both are the same. */
typedef struct {
    int64_t wall_ns;
    int64_t cpu_ns; /* of processor, of each call the thread that had the most; no waiting */
} hr_probe_lap;

/* One step of training: sections fetch, norm, step and update.
 *   watched  each call is timed and kept in probe->times, by its processor time */
HR_MUST_CHECK hr_status hr_probe_step(hr_probe *probe, bool watched, hr_probe_lap *lap,
                                      hr_error *err);

/* Empties the times. */
void hr_probe_forget(hr_probe *probe);

/* Nanoseconds by the clock of a run of nothing: the least of many. */
int64_t hr_probe_join_ns(hr_pool *pool);

/* Accepts a probe that is closed, or was never opened but zeroed. */
void hr_probe_close(hr_probe *probe);

#endif
