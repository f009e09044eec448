/* SPDX-License-Identifier: Apache-2.0 */
/* train/admit.c - tries plans from the fastest down until one fits. */
#include "train/admit.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/threads.h"
#include "graph/op.h"
#include "mem/limits.h"
#include "model/assemble.h"
#include "ops/list.h"
#include "plan/strategy_file.h"
#include "train/prepare.h"

enum { CHUNKS = 5, LAYERS_MOST = 4096 }; /* as the key model.n_layers has it */

static const char *const packing_words
    [] = { [HR_PACK_AT_FLOOR] = "at floor", [HR_PACK_PROVEN] = "proven", [HR_PACK_OPEN] = "open" };

/* The rung to use: what the machine has, or what the recipe pretends. */
static hr_status choose_rung(const hr_config *config, uint32_t *mask, hr_error *err)
{
    const uint32_t machine = hr_cpu_detect();
    if (!strcmp(config->train.kernels, "auto")) {
        *mask = machine;
        return HR_OK;
    }
    const int64_t wanted = hr_cpu_mask_of(config->train.kernels);
    if (wanted < 0 || ((uint32_t)wanted & ~machine))
        return hr_fail(
            err, HR_USAGE,
            "train.kernels: %s is not on this machine, whose best is %s; leave it at auto",
            config->train.kernels, hr_cpu_rung_name(machine));
    *mask = (uint32_t)wanted;
    return HR_OK;
}

/* Loss chunks to try, the preferred first: the recipe's own, or 1,024 tokens and shorter ones. */
static int32_t chunks_of(const hr_config *config, int64_t chunks[CHUNKS])
{
    const int64_t T = config->train.seq_len;
    int32_t count = 0;
    if (config->memory.loss_chunk) {
        chunks[0] = config->memory.loss_chunk;
        return 1;
    }
    for (int64_t tokens = 1024; tokens >= 64; tokens /= 2) {
        const int64_t chunk = T % 64 == 0 ? tokens : hr_max(tokens / T, 1) * T;
        if (count == 0 || chunk < chunks[count - 1]) chunks[count++] = chunk;
    }
    return count;
}

typedef struct {
    hr_memory *memory;
    hr_admission *admission;
    const char *rung;
    int32_t threads;
    int64_t compile_bytes;
} trial;

typedef struct {
    int32_t recompute; /* hr_recompute_kind, not AUTO */
    int64_t micro_batch, chunk;
} choice;

/* What the whole process comes to with the plan that is compiled now. */
static int64_t account(const trial *t)
{
    hr_admission *a = t->admission;
    const int64_t page = hr_page_bytes();
    const int64_t program_bytes = hr_round_up(a->region.used, page);
    a->run_bytes = hr_run_bytes(&a->config, &a->compiled.program);
    const int64_t tables = program_bytes + hr_round_up(a->run_bytes, page);
    const int64_t planning = hr_max(hr_round_up(t->compile_bytes, page),
                                    program_bytes + hr_round_up(a->prepare_bytes, page));
    hr_plan *plan = &a->compiled.plan;
    plan->rung = t->rung;
    plan->page_bytes = page;
    hr_memory_account(t->memory, planning, tables, plan);
    return plan->process_bytes;
}

/* Compiles a choice as far as its floor. `bytes` out: the process uses no less. */
static hr_status bound_plan(const trial *t, choice chosen, int64_t *bytes, hr_error *err)
{
    hr_admission *a = t->admission;
    a->region.used = 0;
    a->config.memory.recompute = chosen.recompute;
    a->config.memory.micro_batch = chosen.micro_batch;
    a->config.memory.loss_chunk = chosen.chunk;
    uint8_t dropped[LAYERS_MOST];
    hr_strategy strategy = hr_strategy_of(&a->config, chosen.micro_batch, dropped);
    hr_status status = HR_OK;
    if (*a->config.memory.strategy)
        status = hr_strategy_read(&a->config, a->config.memory.strategy, &strategy, err);
    if (status != HR_OK) return status;
    if (*a->config.memory.strategy) {
        a->config.memory.micro_batch = strategy.micro_batch ? strategy.micro_batch
                                                            : a->config.train.batch;
        a->config.memory.loss_chunk = strategy.loss_chunk;
    }
    status = hr_compile_floor(&a->config, &strategy, t->threads, &a->region, &a->compiled, err);
    if (status == HR_OK) *bytes = account(t);
    return status;
}

/* Packs what was compiled. `bytes` out: what the process uses. */
static hr_status pack_plan(const trial *t, int64_t *bytes, hr_error *err)
{
    const hr_status status = hr_compile_pack(&t->admission->region, &t->admission->compiled, err);
    if (status == HR_OK) *bytes = account(t);
    return status;
}

/* FLOP of training for one token, as the field counts them: three times the products of the
 * forward pass, attention by its kept pairs, causal. */
static int64_t flops_per_token(const hr_config *config, const hr_program *program)
{
    const hr_loop *section = &program->loops[hr_program_loop(program, "step")];
    const int64_t T = config->train.seq_len;
    int64_t forward = 0;
    for (int32_t s = section->step_first; s <= section->step_last; s++) {
        const hr_step *step = &program->steps[s];
        const hr_op *op = program->ops[step->op];
        if (op->flops && step->direction == HR_DIR_FORWARD) forward += op->flops(step->attr, T);
    }
    return 3 * forward / T;
}

static void describe(const trial *t)
{
    const hr_admission *a = t->admission;
    const hr_plan *plan = &a->compiled.plan;
    hr_plan_answer *answer = &t->admission->answer;
    answer->process_bytes = plan->process_bytes;
    answer->arena_bytes = plan->arena_bytes;
    answer->floor_bytes = plan->floor_bytes;
    answer->kernel_bytes = hr_process_kernel_bytes(plan->process_bytes, plan->threads);
    answer->parameters = hr_program_parameters(&a->compiled.program);
    answer->micro_batch = a->config.memory.micro_batch;
    answer->loss_chunk = a->config.memory.loss_chunk;
    answer->recompute = a->config.memory.recompute;
    answer->flops_per_token = flops_per_token(&a->config, &a->compiled.program);
    answer->threads = plan->threads;
    snprintf(answer->rung, sizeof answer->rung, "%s", plan->rung);
    snprintf(answer->packing, sizeof answer->packing, "%s",
             packing_words[a->compiled.packing.proof]);
}

typedef struct {
    const trial *trial;
    const hr_config *config;
    choice fits, least;  /* micro_batch 0: none yet */
    int64_t least_bound; /* of `least` */
    bool exact;          /* second walk: pack whatever may be smaller than the smallest so far */
} searching;

/* What may be used: the budget, or without one what the machine has left. */
static int64_t available(const hr_config *config)
{
    return config->memory.budget ? config->memory.budget : hr_room_memory().left_bytes;
}

/* A budget is for the process; a machine also has to hold the page tables. */
static bool fits(const searching *s, int64_t bytes)
{
    const int64_t beside = s->config->memory.budget
                               ? 0
                               : hr_process_kernel_bytes(bytes, s->trial->threads);
    return bytes + beside <= s->trial->admission->answer.available_bytes;
}

static hr_status consider(searching *s, choice chosen, hr_error *err)
{
    hr_plan_answer *answer = &s->trial->admission->answer;
    int64_t bytes;
    hr_status status = bound_plan(s->trial, chosen, &bytes, err);
    if (status != HR_OK) return status;
    if (s->exact) {
        if (bytes < answer->minimum_bytes) status = pack_plan(s->trial, &bytes, err);
        if (status == HR_OK && bytes < answer->minimum_bytes) {
            answer->minimum_bytes = bytes;
            s->least = chosen;
        }
        return status;
    }
    if (bytes < s->least_bound) {
        s->least_bound = bytes;
        s->least = chosen;
    }
    if (!fits(s, bytes) || s->fits.micro_batch) return HR_OK;
    status = pack_plan(s->trial, &bytes, err);
    if (status == HR_OK && fits(s, bytes)) s->fits = chosen;
    return status;
}

/* Walks the plans that the recipe leaves open, the fastest first: smaller micro-batches and
 * chunks cost little, computing layers again costs a third. Ends at the first that fits unless
 * `thorough`. */
static hr_status walk(searching *s, bool thorough, hr_error *err)
{
    const hr_config *config = s->config;
    int64_t chunks[CHUNKS];
    const int32_t chunk_count = chunks_of(config, chunks);
    const bool open = config->memory.recompute == HR_RECOMPUTE_AUTO;
    const int32_t kinds[] = { open ? HR_RECOMPUTE_NORMS : config->memory.recompute,
                              HR_RECOMPUTE_LAYERS };
    hr_status status = HR_OK;
    if (*config->memory.strategy)
        return consider(s, (choice){ HR_RECOMPUTE_NORMS, config->train.batch, 0 }, err);
    for (int32_t k = 0; k < (open ? 2 : 1); k++)
        for (int64_t micro = config->train.batch; micro >= 1; micro--) {
            if (config->train.batch % micro) continue;
            if (config->memory.micro_batch && micro != config->memory.micro_batch) continue;
            for (int32_t c = 0; c < chunk_count && status == HR_OK; c++) {
                if (s->fits.micro_batch && !thorough) return HR_OK;
                status = consider(s, (choice){ kinds[k], micro, chunks[c] }, err);
            }
        }
    return status;
}

/* Leaves the first plan that fits compiled and packed, or the smallest. The smallest of all is
 * that with the lowest floor, if it packs there; else it is looked for among those whose floors
 * are lower. */
static hr_status search(const trial *t, const hr_config *config, bool thorough, bool *found,
                        hr_error *err)
{
    hr_plan_answer *answer = &t->admission->answer;
    searching s = { .trial = t, .config = config, .least_bound = INT64_MAX };
    int64_t bytes = INT64_MAX;
    hr_status status = walk(&s, thorough, err);
    if (status == HR_OK && (thorough || !s.fits.micro_batch)) {
        status = bound_plan(t, s.least, &bytes, err);
        if (status == HR_OK) status = pack_plan(t, &bytes, err);
        answer->minimum_bytes = bytes;
        s.exact = true;
        if (status == HR_OK && bytes > s.least_bound) {
            const choice fits = s.fits;
            s.fits.micro_batch = 0;
            status = walk(&s, true, err);
            s.fits = fits;
        }
    }
    if (status != HR_OK) return status;
    *found = s.fits.micro_batch != 0;
    status = bound_plan(t, *found ? s.fits : s.least, &bytes, err);
    return status == HR_OK ? pack_plan(t, &bytes, err) : status;
}

hr_status hr_admit(hr_memory *memory, const hr_config *config, bool thorough,
                   hr_admission *admission, hr_error *err)
{
    *admission = (hr_admission){ .config = *config, .prepare_bytes = hr_prepare_bytes(config) };
    trial t = { .memory = memory,
                .admission = admission,
                .threads = config->train.threads ? (int32_t)config->train.threads
                                                 : hr_threads_default(),
                .compile_bytes = hr_compile_bytes(config) };
    bool found = false;
    hr_status status = hr_config_check(config, err);
    if (status == HR_OK) status = choose_rung(config, &admission->cpu_mask, err);
    if (status == HR_OK)
        status = hr_memory_region_open(memory, "planning", t.compile_bytes, &admission->region,
                                       err);
    if (status != HR_OK) return status;
    /* Touched whole: where planning is the largest moment of a run, its line is what the process
     * has. */
    memset(admission->region.base, 0, (size_t)admission->region.bytes);
    t.rung = hr_cpu_rung_name(admission->cpu_mask);
    admission->answer.available_bytes = available(config);
    status = search(&t, config, thorough, &found, err);
    if (status != HR_OK) return status;
    describe(&t);
    admission->answer.fits = found;
    if (found) return HR_OK;
    char needed[64], there[64];
    return hr_fail(err, HR_NO_FIT, "the run needs at least %s, %s %s",
                   hr_bytes_print(admission->answer.minimum_bytes, needed),
                   config->memory.budget ? "the budget is" : "this machine has left",
                   hr_bytes_print(admission->answer.available_bytes, there));
}

int64_t hr_admit_minimum(hr_memory *memory, const hr_config *config, hr_admission *admission)
{
    hr_error ignored;
    hr_admission other = { .region = admission->region,
                           .config = *config,
                           .cpu_mask = admission->cpu_mask,
                           .prepare_bytes = hr_prepare_bytes(config) };
    const trial t = { .memory = memory,
                      .admission = &other,
                      .threads = config->train.threads ? (int32_t)config->train.threads
                                                       : hr_threads_default(),
                      .compile_bytes = hr_compile_bytes(config),
                      .rung = hr_cpu_rung_name(other.cpu_mask) };
    bool found;
    if (hr_config_check(config, &ignored) != HR_OK) return INT64_MAX;
    if (search(&t, config, true, &found, &ignored) != HR_OK) return INT64_MAX;
    return other.answer.minimum_bytes;
}
