/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/probe.h - runs the training steps of a recipe with generated tokens and weights, and
 * times every call.
 *
 * Program, plan, arena, executor and kernels are those of a run. Only the data and the initial
 * weights differ: generating them takes little time. */
#ifndef HR_CALIBRATE_PROBE_H
#define HR_CALIBRATE_PROBE_H

#include "dev/devices.h"
#include "dev/executor.h"
#include "plan/compile.h"

/* The number of times that are kept of each call: the smallest. */
enum { HR_PROBE_TIMES = 48 };

typedef struct {
    int32_t calls;              /* timed calls */
    int32_t count;              /* used of ns */
    int32_t ns[HR_PROBE_TIMES]; /* in any order */
} hr_probe_times;

typedef struct {
    hr_memory memory;
    hr_region region; /* program, plan and tables */
    hr_compiled compiled;
    hr_pool pool;
    hr_devices devices;
    hr_executor executor;
    int64_t targets;                        /* tokens per batch */
    int64_t fork_join_ns;                   /* minimum time to wake all threads and wait for them */
    int64_t thread_ns[HR_POOL_THREADS_MAX]; /* CPU time of each thread in the current call */
    int64_t step_ns;                        /* sum over the calls of the current step */
    bool timed;
    /* [2 x step_count]: for each operation, calls with all rows, and those of the first iteration,
     * where accumulators start */
    hr_probe_times *times;
} hr_probe;

/* Returns the strategy of the recipe, with one exception: with memory.recompute = layers, the last
 * of several layers recomputes only its activation. That is a different operation from the product
 * that computes both.
 *   recompute_set  out, [maximum of model.n_layers] */
hr_strategy hr_probe_strategy(const hr_config *config, hr_intermediates *recompute_set);

/* Compiles the recipe, opens the arena and initializes the weights.
 *
 *   config    passes hr_config_check; runs with hr_probe_strategy of it
 *   cpu_mask  instruction sets of this machine, or fewer
 *
 * Errors   NO_FIT   not enough memory
 *          FAILURE  the system refuses. Everything is closed again. */
HR_MUST_CHECK hr_status hr_probe_open(hr_probe *probe, const hr_config *config,
                                      const hr_backend *backend, int32_t threads, uint32_t cpu_mask,
                                      hr_error *err);

/* The time of a training step. On an idle machine both values are equal. */
typedef struct {
    int64_t wall_ns;
    int64_t cpu_ns; /* sum over calls of the largest CPU time of a thread; waiting excluded */
} hr_step_time;

/* Runs one training step: the sections fetch, norm, step and update.
 *   timed  keep the CPU time of each call in probe->times */
HR_MUST_CHECK hr_status hr_probe_step(hr_probe *probe, bool timed, hr_step_time *time,
                                      hr_error *err);

/* Clears probe->times. */
void hr_probe_clear_times(hr_probe *probe);

/* Returns the wall time of an empty parallel region in nanoseconds: the minimum of many. */
int64_t hr_probe_fork_join_ns(hr_pool *pool);

/* Accepts a closed or a zeroed probe. */
void hr_probe_close(hr_probe *probe);

#endif
