/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/probe.c - opens a run without its data and times every call. */
#include "calibrate/probe.h"

#include <string.h>

#include "base/bf16.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/random.h"
#include "ops/host/host.h"
#include "ops/list.h"
#include "sections/assemble.h"

/* Fills weights with values in (-1/32, 1/32), so that no product overflows or underflows. The
 * generator of real runs computes a logarithm for each value; the values do not affect the
 * times. */
static void fill_weights(const hr_program *program, const hr_step *step, const hr_call *call)
{
    float *master = call->out[0];
    hr_bf16 *weight = call->out[1];
    const int64_t count = hr_tensor_bytes(&program->tensors[step->out[0]]) / 4;
    uint32_t state = 2463534242u;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        master[i] = (float)(int32_t)state * 0x1p-36f;
        if (weight) weight[i] = hr_bf16_from_f32(master[i]);
    }
    for (int32_t k = 2; k < 4; k++)
        if (call->out[k])
            memset(call->out[k], 0, (size_t)hr_tensor_bytes(&program->tensors[step->out[k]]));
}

/* Fills a stored weight with bytes that are 0.008 as f16 and 0.125 as E4M3, scales with 1/64. */
static void fill_stored(const hr_program *program, const hr_step *step, const hr_call *call)
{
    memset(call->out[1], 0x20, (size_t)hr_tensor_bytes(&program->tensors[step->out[1]]));
    const int32_t table = step->out[HR_LOAD_SCALES];
    float *scales = call->out[HR_LOAD_SCALES];
    for (int64_t i = 0; scales && i < hr_tensor_bytes(&program->tensors[table]) / 4; i++)
        scales[i] = 0x1p-6f;
}

static void fill_tokens(const hr_probe *probe, const hr_call *call)
{
    const uint64_t V = (uint64_t)probe->compiled.program.params[0].dims[0];
    const hr_random_stream stream = hr_random_stream_of(1, 0, HR_SITE_PROBE, 0);
    for (int64_t i = 0; i < call->rows; i++) {
        const hr_random_row row = hr_random_row_of(stream, 0, (uint32_t)i);
        ((int32_t *)call->out[0])[i] = (int32_t)hr_random_below(hr_random_wide(&row, 0), V);
        ((int32_t *)call->out[1])[i] = (int32_t)hr_random_below(hr_random_wide(&row, 1), V);
    }
    if (call->out[4]) memset(call->out[4], 0, (size_t)call->rows * sizeof(int32_t));
    if (call->out[2]) *(double *)call->out[2] = 1.0 / (double)probe->targets;
    if (call->out[3]) *(double *)call->out[3] = 1e-4;
}

static hr_status fill(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                      hr_error *err)
{
    const hr_step *s = &executor->program->steps[step];
    (void)err;
    if (s->op == HR_OP_initialize && call->out[0]) fill_weights(executor->program, s, call);
    else if (s->op == HR_OP_initialize) fill_stored(executor->program, s, call);
    else fill_tokens(context, call);
    return HR_OK;
}

/* Times are measured without what the host does otherwise. */
static hr_status ignore(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                        hr_error *err)
{
    (void)context, (void)executor, (void)step, (void)call, (void)err;
    return HR_OK;
}

static const hr_service services[] = {
    { HR_OP_initialize, HR_LOOP_LOAD, fill, NULL },
    { HR_OP_batch, HR_LOOP_OTHER, fill, NULL },
    { HR_NONE, HR_LOOP_OTHER, ignore, NULL },
};

/* Adds a time, and keeps the HR_PROBE_TIMES smallest. */
static void keep(hr_probe_times *times, int64_t ns)
{
    const int32_t kept = (int32_t)hr_min(ns, INT32_MAX);
    times->calls++;
    if (times->count < HR_PROBE_TIMES) {
        times->ns[times->count++] = kept;
        return;
    }
    int32_t largest = 0;
    for (int32_t i = 1; i < HR_PROBE_TIMES; i++)
        if (times->ns[i] > times->ns[largest]) largest = i;
    if (kept < times->ns[largest]) times->ns[largest] = kept;
}

/* Returns the time of the last call: the largest CPU time of a thread plus the minimum fork-join
 * time. 0 for host operations, which use no pool thread. */
static int64_t take_longest_ns(hr_probe *probe)
{
    int64_t longest = 0;
    for (int32_t t = 0; t < probe->pool.threads; t++) {
        longest = hr_max(longest, probe->thread_ns[t]);
        probe->thread_ns[t] = 0;
    }
    return longest > 0 ? longest + probe->fork_join_ns : 0;
}

/* Keeps the time of a call if no loop around it is in a shorter last iteration. The first iteration
 * has its own slot. */
static void record(void *context, const hr_executor *executor, int32_t step)
{
    hr_probe *probe = context;
    const int64_t took_ns = take_longest_ns(probe);
    probe->step_ns += took_ns;
    const hr_loop *loops = executor->program->loops;
    bool full = true, first = true;
    for (int32_t l = executor->program->steps[step].loop; l > 0; l = loops[l].parent) {
        if (executor->turn[l] > 0) first = false;
        if (loops[l].rows > 0 && (executor->turn[l] + 1) * loops[l].rows > loops[l].rows_total)
            full = false;
    }
    if (full && probe->timed) keep(&probe->times[2 * step + first], took_ns);
}

hr_strategy hr_probe_strategy(const hr_config *config, hr_intermediates *recompute_set)
{
    const int64_t micro = config->memory.micro_batch ? config->memory.micro_batch
                                                     : config->train.batch;
    hr_strategy strategy = hr_strategy_of(config, micro, recompute_set);
    if (config->memory.recompute == HR_RECOMPUTE_LAYERS && strategy.layer_count > 1) {
        recompute_set[strategy.layer_count - 1] = 1u << HR_INTERMEDIATE_ACTIVATION;
        hr_strategy_canonical(config, &strategy);
    }
    return strategy;
}

static hr_status compile(hr_probe *probe, const hr_config *config, const hr_backend *backend,
                         int32_t threads, hr_error *err)
{
    hr_intermediates recompute_set[4096]; /* the maximum of model.n_layers */
    const hr_strategy strategy = hr_probe_strategy(config, recompute_set);
    const hr_model_limits limits = hr_model_limits_of(config);
    const int64_t tables = limits.steps * (int64_t)(2 * sizeof(hr_probe_times)) + (1 << 16);
    const int64_t bytes = hr_compile_bytes(config) + tables;
    hr_status status = hr_memory_region_open(&probe->memory, "planning", bytes, &probe->region,
                                             err);
    if (status == HR_OK)
        status = hr_compile(config, backend, &strategy, threads, &probe->region, &probe->compiled,
                            err);
    if (status != HR_OK) return status;
    hr_plan *plan = &probe->compiled.plan;
    hr_memory_account(&probe->memory, bytes, bytes, plan->arena_bytes, &plan->process);
    probe->times = hr_region_take(&probe->region, probe->compiled.program.step_count,
                                  2 * sizeof *probe->times);
    probe->executor.program = &probe->compiled.program;
    if (!probe->times)
        return hr_fail(err, HR_FAILURE, "out of memory for the timing of %d operations",
                       probe->compiled.program.step_count);
    return hr_executor_place(&probe->region, &probe->executor, err);
}

static void nothing(void *context, int32_t thread, int32_t threads)
{
    (void)context, (void)thread, (void)threads;
}

int64_t hr_probe_fork_join_ns(hr_pool *pool)
{
    enum { RUNS = 2000 };
    int64_t least = INT64_MAX;
    for (int32_t i = 0; i < RUNS; i++) {
        const int64_t begin = hr_clock_ns();
        hr_pool_run(pool, nothing, 0);
        least = hr_min(least, hr_clock_ns() - begin);
    }
    return least;
}

static hr_status take_memory(hr_probe *probe, int32_t threads, hr_error *err)
{
    const hr_plan *plan = &probe->compiled.plan;
    const int64_t stacks_bytes = hr_pool_bytes(threads);
    void *stacks;
    hr_status status = hr_memory_stacks_open(&probe->memory, stacks_bytes, &stacks, err);
    if (status == HR_OK) status = hr_pool_open(&probe->pool, stacks, stacks_bytes, threads, err);
    if (status == HR_OK)
        status = hr_memory_arena_open(&probe->memory, &plan->process, plan->arena_bytes, 0, err);
    if (status == HR_OK) probe->fork_join_ns = hr_probe_fork_join_ns(&probe->pool);
    return status;
}

hr_status hr_probe_open(hr_probe *probe, const hr_config *config, const hr_backend *backend,
                        int32_t threads, uint32_t cpu_mask, hr_error *err)
{
    *probe = (hr_probe){ .targets = config->train.batch * config->train.seq_len };
    hr_status status = hr_memory_open(&probe->memory, err);
    if (status == HR_OK) status = compile(probe, config, backend, threads, err);
    if (status == HR_OK) status = take_memory(probe, threads, err);
    if (status == HR_OK)
        status = hr_device_open(&probe->devices, backend, &probe->pool, cpu_mask,
                                &probe->executor.device, err);
    if (status == HR_OK) {
        hr_executor *executor = &probe->executor;
        executor->plan = &probe->compiled.plan;
        executor->memory = &probe->memory;
        executor->pool = &probe->pool;
        executor->context = probe;
        hr_executor_serve(executor,
                          (hr_services){ services, sizeof services / sizeof *services, probe });
        status = hr_executor_check_services(executor, err);
    }
    if (status == HR_OK) {
        hr_executor *executor = &probe->executor;
        status = hr_executor_run(executor, hr_program_loop(executor->program, HR_LOOP_LOAD), err);
    }
    if (status != HR_OK) hr_probe_close(probe);
    return status;
}

hr_status hr_probe_step(hr_probe *probe, bool timed, hr_step_time *time, hr_error *err)
{
    static const hr_loop_id sections[] = { HR_LOOP_FETCH, HR_LOOP_NORM, HR_LOOP_STEP,
                                           HR_LOOP_UPDATE };
    hr_executor *executor = &probe->executor;
    hr_status status = HR_OK;
    executor->watch = record;
    probe->timed = timed;
    probe->step_ns = 0;
    memset(probe->thread_ns, 0, sizeof probe->thread_ns);
    hr_pool_time(&probe->pool, CLOCK_THREAD_CPUTIME_ID, probe->thread_ns);
    const int64_t wall_ns = hr_clock_ns();
    for (int32_t i = 0; i < 4 && status == HR_OK; i++) {
        const int32_t section = hr_program_loop(executor->program, sections[i]);
        if (section != HR_NONE) status = hr_executor_run(executor, section, err);
    }
    *time = (hr_step_time){ .wall_ns = hr_clock_ns() - wall_ns, .cpu_ns = probe->step_ns };
    hr_pool_time(&probe->pool, CLOCK_THREAD_CPUTIME_ID, NULL);
    executor->clock++;
    return status;
}

void hr_probe_clear_times(hr_probe *probe)
{
    const size_t slots = 2 * (size_t)probe->compiled.program.step_count;
    memset(probe->times, 0, slots * sizeof *probe->times);
}

void hr_probe_close(hr_probe *probe)
{
    hr_pool_close(&probe->pool);
    hr_memory_close(&probe->memory);
    *probe = (hr_probe){ .targets = 0 };
}
