/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/rig.h - a compiled run in ordinary memory, with batches and weights from the test.
 *
 * Program, plan, executor and kernels are those of the product; only the text and the sealed memory
 * are replaced. */
#ifndef HR_TESTS_SUPPORT_RIG_H
#define HR_TESTS_SUPPORT_RIG_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bf16.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "base/random.h"
#include "config/schedule.h"
#include "dev/cpu.h"
#include "dev/executor.h"
#include "ops/cpu.h"
#include "ops/host/host.h"
#include "plan/compile.h"
#include "plan/strategy_file.h"
#include "run/initialize.h"
#include "sections/assemble.h"

/* The arena is aligned to huge pages and requests them, as in the product. */
enum { RIG_HUGE_BYTES = 2 << 20 };

typedef struct rig {
    hr_config config;
    void *region_memory, *arena_memory, *stacks;
    hr_region region;
    hr_compiled compiled;
    hr_memory memory;
    hr_pool pool;
    hr_cpu_device cpu;
    hr_executor executor;
    int64_t rows;           /* per batch: batch x seq_len */
    int32_t *ids, *targets; /* [rows] the batch of every step and of evaluation */
    float *(*weights)(void *context,
                      const char *name); /* null: random; else file order, malloced */
    void *context;
    double loss, norm, evaluation_loss;
    double z_loss;     /* of the last step; 0: not in the recipe */
    float *logits;     /* [rows, V] of the last evaluation */
    double *gradients; /* of the last step, in file order; copied when the update has read them */
    int64_t gradient_count;
} rig;

static inline void rig_must(hr_status status, const hr_error *err)
{
    if (status == HR_OK) return;
    fprintf(stderr, "rig: %s\n", err->message);
    abort();
}

static inline int64_t rig_elements(const hr_param *param)
{
    return param->dims[0] * hr_max(param->dims[1], 1);
}

/* Index in memory of element i in file order. */
static inline int64_t rig_place(const rig *r, int32_t index, int64_t i)
{
    const hr_param *param = &r->compiled.program.params[index];
    const hr_layout layout = (hr_layout)r->compiled.program.tensors[param->master].layout;
    const int64_t K = param->dims[0], N = hr_max(param->dims[1], 1);
    if (param->external_transposed) return hr_layout_index(layout, K, N, i % K, i / K);
    if (param->rule.stacks_columns) {
        const int64_t R = N / param->rule.stack;
        return hr_layout_index(layout, K, N, i / R % K, i / R / K * R + i % R);
    }
    return hr_layout_index(layout, K, N, i / N, i % N);
}

static inline void rig_initialize(rig *r, int32_t step, const hr_call *call)
{
    const hr_program *program = &r->compiled.program;
    const int32_t index = ((const hr_host_attr *)call->attr)->param;
    const hr_param *param = &program->params[index];
    float *master = call->out[0];
    for (int32_t k = 2; k < HR_LOAD_SCALES; k++) /* every state */
        if (call->out[k]) {
            const hr_tensor *tensor = &program->tensors[program->steps[step].out[k]];
            memset(call->out[k], tensor->dtype == HR_U8 ? program->states[k - 2].zero : 0,
                   (size_t)hr_tensor_bytes(tensor));
        }
    const hr_weights_place place = { master, call->out[1], call->out[HR_LOAD_SCALES] };
    hr_initialize(program, index, (uint64_t)r->config.train.seed, place, NULL);
    if (!r->weights) return;
    float *values = r->weights(r->context, param->external_name);
    for (int64_t i = 0; i < rig_elements(param); i++)
        if (master) master[rig_place(r, index, i)] = values[i];
        else ((hr_bf16 *)call->out[1])[rig_place(r, index, i)] = hr_bf16_from_f32(values[i]);
    const int64_t stored = hr_tensor_bytes(&program->tensors[param->master]) / 4;
    for (int64_t i = 0; master && call->out[1] && i < stored; i++)
        ((hr_bf16 *)call->out[1])[i] = hr_bf16_from_f32(master[i]);
    free(values);
}

/* Documents of some tokens each, independent of how sequences are split. */
static inline void rig_begins(const rig *r, int64_t first, int64_t rows, int32_t *begins)
{
    const int64_t T = r->config.train.seq_len;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t t = (first + i) % T;
        const bool starts = t == 0 || hr_random_mix((uint64_t)(first + i)) % 9 == 0;
        begins[i] = starts || i == 0 ? (int32_t)t : begins[i - 1];
    }
}

/* The factor of the gradients. */
static inline double rig_loss_scale(const rig *r)
{
    return r->compiled.program.dtype == HR_F16 ? 0x1p16 : 1;
}

static inline void rig_fetch(rig *r, const hr_executor *executor, int32_t step, const hr_call *call)
{
    const int32_t evaluation = hr_program_loop(&r->compiled.program, HR_LOOP_EVALUATION_BATCH);
    int64_t real = 0, first = call->row_first;
    /* evaluation processes the batch in parts */
    if (r->compiled.program.steps[step].loop == evaluation)
        first = executor->turn[evaluation] * call->rows;
    for (int64_t i = 0; call->out[0] && i < call->rows; i++) {
        ((int32_t *)call->out[0])[i] = r->ids[first + i];
        ((int32_t *)call->out[1])[i] = r->targets[first + i];
    }
    if (call->out[4]) rig_begins(r, first, call->rows, call->out[4]);
    if (!call->out[2]) return;
    for (int64_t i = 0; i < r->rows; i++) real += r->targets[i] >= 0;
    double *scale = call->out[2];
    scale[1] = rig_loss_scale(r);
    scale[0] = scale[1] / (double)real;
    *(double *)call->out[3] = hr_schedule_lr(&r->config, NULL, executor->clock,
                                             r->config.train.steps);
}

static inline void rig_report(rig *r, int32_t step, const hr_call *call)
{
    int64_t real = 0;
    for (int64_t i = 0; i < r->rows; i++) real += r->targets[i] >= 0;
    const hr_program *program = &r->compiled.program;
    const double mean = hr_report_loss(program, &program->steps[step], call->in[0]) / (double)real;
    if (r->compiled.program.steps[step].loop ==
        hr_program_loop(&r->compiled.program, HR_LOOP_EVALUATION)) {
        r->evaluation_loss = mean;
        return;
    }
    if (!call->in[1]) return; /* loss only, before the first update */
    r->loss = mean;
    r->z_loss = r->config.train.z_loss > 0 ? ((const double *)call->in[0])[1] / (double)real : 0;
    r->norm = *(const double *)call->in[1];
}

static inline hr_status rig_host(void *context, hr_executor *executor, int32_t step,
                                 const hr_call *call, hr_error *err)
{
    rig *r = context;
    (void)err;
    switch (executor->program->steps[step].op) {
    case HR_OP_initialize: rig_initialize(r, step, call); break;
    case HR_OP_batch: rig_fetch(r, executor, step, call); break;
    case HR_OP_report: rig_report(r, step, call); break;
    case HR_OP_prompt: /* half a window: the later steps get fewer rows than planned */
        executor->rows_here = (r->config.train.seq_len + 1) / 2;
        memcpy(call->out[0], r->ids, (size_t)executor->rows_here * sizeof *r->ids);
        break;
    case HR_OP_save: {
        const hr_host_attr *attr = call->attr;
        memset(call->scratch, 0, (size_t)attr->staging_bytes);
        break;
    }
    default: break;
    }
    return HR_OK;
}

static const hr_service rig_services[] = { { HR_NONE, HR_LOOP_OTHER, rig_host, NULL } };

/* Keeps a copy of the gradient, or of the strip of it, that an update has read. */
static inline void rig_keep_gradient(rig *r, const hr_step *step)
{
    const hr_program *program = &r->compiled.program;
    const float *gradient = hr_executor_address(&r->executor, step->in[0]);
    const float *updated = hr_executor_address(&r->executor, step->out[0]);
    const int64_t count = hr_tensor_bytes(&program->tensors[step->in[0]]) / (int64_t)sizeof(float);
    int64_t at = 0;
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        if (!param->rule.frozen && hr_tensor_root(program, step->out[0]) == param->master) {
            const float *master = hr_executor_address(&r->executor, param->master);
            for (int64_t i = 0; i < rig_elements(param); i++) {
                const int64_t place = rig_place(r, p, i) - (updated - master);
                if (place >= 0 && place < count) r->gradients[at + i] = gradient[place];
            }
        }
        at += rig_elements(param);
    }
}

static inline int32_t rig_loop(const hr_program *program, const char *name)
{
    for (int32_t l = 0; l < program->loop_count; l++)
        if (!strcmp(program->loops[l].name, name)) return l;
    return HR_NONE;
}

/* Keeps copies of gradients and of the logits of evaluation during the run. */
static inline void rig_watch(void *context, const hr_executor *executor, int32_t s)
{
    rig *r = context;
    const hr_program *program = executor->program;
    const hr_step *step = &program->steps[s];
    if (step->op == HR_OP_adamw || step->op == HR_OP_sgd || step->op == HR_OP_lion ||
        step->op == HR_OP_adafactor || step->op == HR_OP_muon)
        rig_keep_gradient(r, step);
    const hr_loop *section = &program->loops[hr_program_loop(program, HR_LOOP_EVALUATION)];
    if (step->op != HR_OP_linear || step->block != HR_BLOCK_HEAD) return;
    if (s < section->step_first || s > section->step_last) return;
    const int64_t V = r->config.model.vocab_size, rows = program->tensors[step->out[0]].rows;
    if (program->tensors[step->out[0]].dims[1] != V) return; /* the expansion before the logits */
    const int32_t chunk = rig_loop(program, "evaluation loss chunk");
    int64_t first = executor->turn[hr_program_loop(program, HR_LOOP_EVALUATION_BATCH)] *
                    r->compiled.strategy.micro_batch * r->config.train.seq_len;
    if (chunk != HR_NONE) first += executor->turn[chunk] * rows;
    const void *logits = hr_executor_address(executor, step->out[0]);
    for (int64_t i = 0; i < hr_min(rows, r->rows - first) * V; i++)
        r->logits[first * V + i] = program->dtype == HR_F32
                                       ? ((const float *)logits)[i]
                                       : hr_bf16_to_f32(((const hr_bf16 *)logits)[i]);
}

/* Compiles with a strategy, or with that of the recipe if null, ready for the load section. The
 * arena is filled with NaN. The batch is random ids unless the test fills it before steps. */
static inline void rig_build_with(rig *r, const hr_config *config, const hr_strategy *strategy,
                                  int32_t threads, uint32_t cpu_mask,
                                  float *(*weights)(void *, const char *), void *context)
{
    hr_error err;
    *r = (rig){ .config = *config, .weights = weights, .context = context };
    const int64_t micro = config->memory.micro_batch ? config->memory.micro_batch
                                                     : config->train.batch;
    const int64_t bytes = hr_compile_bytes(config) + (1 << 20);
    r->region_memory = aligned_alloc(64, (size_t)hr_round_up(bytes, 64));
    r->region = hr_region_over(r->region_memory, bytes);
    rig_must(hr_config_check(config, &err), &err);
    hr_intermediates *recompute_set = malloc((size_t)config->model.n_layers *
                                             sizeof *recompute_set);
    hr_strategy asked = hr_strategy_of(config, micro, recompute_set);
    if (strategy) asked = *strategy;
    else if (*config->memory.strategy)
        rig_must(hr_strategy_read(config, config->memory.strategy, &asked, &err), &err);
    rig_must(hr_compile(config, &hr_cpu_backend, &asked, threads, &r->region, &r->compiled, &err),
             &err);
    free(recompute_set);
    if (!r->compiled.strategy.micro_batch) r->compiled.strategy.micro_batch = config->train.batch;
    r->rows = config->train.batch * config->train.seq_len;
    r->ids = calloc((size_t)r->rows, sizeof *r->ids);
    r->targets = calloc((size_t)r->rows, sizeof *r->targets);
    r->logits = calloc((size_t)(r->rows * config->model.vocab_size), sizeof *r->logits);
    r->gradient_count = hr_program_parameters(&r->compiled.program);
    r->gradients = calloc((size_t)r->gradient_count, sizeof *r->gradients);
    for (int64_t i = 0; i < r->rows; i++) {
        const uint64_t V = (uint64_t)config->model.vocab_size;
        r->ids[i] = (int32_t)hr_random_below(hr_random_mix(7 + 2 * (uint64_t)i), V);
        r->targets[i] = (int32_t)hr_random_below(hr_random_mix(8 + 2 * (uint64_t)i), V);
        if (i % 11 == 3) r->targets[i] = -1;
    }
    const int64_t arena = r->compiled.plan.arena_bytes;
    if (posix_memalign(&r->arena_memory, RIG_HUGE_BYTES, (size_t)hr_round_up(arena, 4096))) abort();
    madvise(r->arena_memory, (size_t)hr_round_up(arena, 4096), MADV_HUGEPAGE);
    memset(r->arena_memory, 0xff, (size_t)arena); /* NaN */
    r->memory = (hr_memory){ .arena = r->arena_memory, .arena_bytes = arena };
    r->stacks = aligned_alloc(4096, (size_t)hr_round_up(hr_pool_bytes(threads) + 4096, 4096));
    rig_must(hr_pool_open(&r->pool, r->stacks, hr_pool_bytes(threads), threads, &err), &err);
    hr_cpu_device_open(&r->cpu, &r->pool, cpu_mask);
    r->executor = (hr_executor){ .program = &r->compiled.program,
                                 .plan = &r->compiled.plan,
                                 .memory = &r->memory,
                                 .pool = &r->pool,
                                 .device = &r->cpu.device,
                                 .seed = (uint64_t)config->train.seed,
                                 .watch = rig_watch,
                                 .context = r };
    rig_must(hr_executor_place(&r->region, &r->executor, &err), &err);
    hr_executor_serve(&r->executor, (hr_services){ rig_services, 1, r });
    rig_must(hr_executor_check_services(&r->executor, &err), &err);
}

static inline void rig_build(rig *r, const hr_config *config, int32_t threads, uint32_t cpu_mask,
                             float *(*weights)(void *, const char *), void *context)
{
    rig_build_with(r, config, 0, threads, cpu_mask, weights, context);
}

static inline void rig_section(rig *r, hr_loop_id id)
{
    hr_error err;
    rig_must(hr_executor_run(&r->executor, hr_program_loop(&r->compiled.program, id), &err), &err);
}

/* The same, then runs the load section. */
static inline void rig_open(rig *r, const hr_config *config, int32_t threads, uint32_t cpu_mask,
                            float *(*weights)(void *, const char *), void *context)
{
    rig_build(r, config, threads, cpu_mask, weights, context);
    rig_section(r, HR_LOOP_LOAD);
}

static inline void rig_close(rig *r)
{
    hr_pool_close(&r->pool);
    free(r->region_memory);
    free(r->arena_memory);
    free(r->stacks);
    free(r->ids);
    free(r->targets);
    free(r->logits);
    free(r->gradients);
}

/* Runs one training step. Loss, norm and gradients (before clipping) are then in the rig. */
static inline void rig_step(rig *r)
{
    static const hr_loop_id sections[] = { HR_LOOP_FETCH, HR_LOOP_NORM, HR_LOOP_STEP,
                                           HR_LOOP_UPDATE };
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (hr_program_loop(&r->compiled.program, sections[i]) != HR_NONE)
            rig_section(r, sections[i]);
    r->executor.clock++;
}

/* Evaluates loss and logits of the present batch. */
static inline void rig_evaluate(rig *r)
{
    const int64_t micro = r->compiled.strategy.micro_batch;
    r->executor.count[hr_program_loop(&r->compiled.program, HR_LOOP_EVALUATION_BATCH)] =
        r->config.train.batch / micro;
    rig_section(r, HR_LOOP_EVALUATION);
}

/* Element i of a parameter's master, in file order. */
static inline float rig_weight(const rig *r, int32_t index, int64_t i)
{
    const int32_t tensor = r->compiled.program.params[index].master;
    const void *master = hr_executor_address(&r->executor, tensor);
    const int64_t at = rig_place(r, index, i);
    return r->compiled.program.tensors[tensor].dtype == HR_F32
               ? ((const float *)master)[at]
               : hr_bf16_to_f32(((const hr_bf16 *)master)[at]);
}

#endif
