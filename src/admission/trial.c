/* SPDX-License-Identifier: Apache-2.0 */
/* admission/trial.c - opens what all plans of one config share, and builds and packs strategies. */
#include "admission/trial.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "headroom/stages.h"
#include "model/family.h"
#include "ops/backends.h"
#include "ops/list.h"
#include "search/proxy_cache.h"
#include "sections/assemble.h"

/* Work units of a proxy-model step, a plan step and a packed item: measured on presets of 6 to 126
 * layers, accurate to a factor of two. */
enum { WORK_PROXY_STEP = 400, WORK_PLAN_STEP = 2000, WORK_PACKED = 10 };

int64_t hr_trial_set_bytes(const hr_config *config)
{
    return hr_round_up(config->model.n_layers * (int64_t)sizeof(hr_intermediates), 64);
}

static int64_t sets_bytes_of(const hr_config *config)
{
    return (HR_TRIAL_SETS_OWN + HR_TRIAL_SETS_SPARE) * hr_trial_set_bytes(config);
}

/* Kept bytes, and those of the search after them. */
static int64_t searching_bytes(const hr_config *config, int64_t kept_bytes)
{
    return hr_round_up(kept_bytes, 64) + hr_round_up(hr_fit_bytes(config), 64);
}

int64_t hr_trial_planning_bytes(const hr_config *config, int64_t kept_bytes)
{
    const int64_t compile_bytes = hr_round_up(hr_compile_bytes(config), 64);
    return hr_max(compile_bytes, searching_bytes(config, kept_bytes)) + sets_bytes_of(config);
}

hr_status hr_trial_open_regions(hr_trial *t, bool touched, hr_error *err)
{
    hr_admission *a = t->admission;
    const int64_t layers = a->config.model.n_layers;
    const int64_t search_bytes = hr_round_up(hr_fit_bytes(&a->config), 64);
    const int64_t sets_bytes = sets_bytes_of(&a->config);
    t->kept_bytes = hr_compile_kept_bytes(&a->config);
    if (a->share) t->kept_bytes = hr_max(t->kept_bytes, a->share->kept_bytes);
    const int64_t searching = searching_bytes(&a->config, t->kept_bytes);
    t->planning_bytes = hr_max(hr_trial_planning_bytes(&a->config, t->kept_bytes), t->tried_bytes);
    /* A change that is tried for a stage may need more than the stages do. */
    if (a->share) t->planning_bytes = hr_max(t->planning_bytes, a->share->planning_bytes);
    hr_region *region = t->room ? &t->room->region : &a->region;
    if (region->bytes < t->planning_bytes) {
        const hr_status status = t->machine->open(
            t->machine->context, "planning", t->planning_bytes, touched && !t->room, region, err);
        if (status != HR_OK) return status;
    }
    a->region = *region;
    t->search = hr_region_over(a->region.base + searching - search_bytes, search_bytes);
    hr_region sets = hr_region_over(a->region.base + t->planning_bytes - sets_bytes, sets_bytes);
    t->chosen = hr_region_take(&sets, layers, sizeof *t->chosen);
    t->least = hr_region_take(&sets, layers, sizeof *t->chosen);
    t->spare = hr_region_take(&sets, layers, sizeof *t->chosen);
    t->lowest.strategy.recompute_set = hr_region_take(&sets, layers, sizeof *t->chosen);
    return HR_OK;
}

static hr_status load_rates(hr_trial *t, hr_error *err)
{
    hr_admission *a = t->admission;
    hr_status status = HR_OK;
    if (t->estimates) hr_rates_guess(a->backend, a->cpu_mask, t->threads, &a->rates);
    else
        status = t->machine->rates(t->machine->context, a->backend, a->cpu_mask, t->threads,
                                   &a->rates, a->answer.times, err);
    if (status != HR_OK) return status;
    const hr_dtype dtype = hr_product_dtype(hr_config_dtype(&a->config));
    const int64_t product_as = a->rates.op[HR_OP_linear][dtype].unit_as[HR_TERM_FLOPS];
    const int64_t attention_as = a->rates.op[HR_OP_attention][dtype].unit_as[HR_TERM_FLOPS];
    a->rates.in_nanoseconds = hr_cost_needs_nanoseconds(&a->config,
                                                        hr_max(product_as, attention_as));
    return HR_OK;
}

/* The products of a run are in the dtype of its activations. */
static hr_status check_format(const hr_trial *t, hr_error *err)
{
    const bool bf16 = t->admission->config.train.dtype == HR_FORMAT_BF16;
    return hr_device_check_format(t->machine->device->device,
                                  bf16 ? HR_DEVICE_BF16 : HR_DEVICE_FP32,
                                  bf16 ? "train.dtype=bf16" : "train.dtype=fp32", err);
}

/* The kernels of the recipe, which the machine of the plan must have. */
static hr_status choose_kernels(hr_trial *t, hr_error *err)
{
    hr_admission *a = t->admission;
    const hr_device_choice *device = t->machine->device;
    const char *wanted = a->config.train.kernels;
    const hr_status status = hr_cpu_choose("train.kernels", wanted, t->machine->cpu_mask,
                                           &a->cpu_mask, err);
    if (status == HR_OK || !device) return status;
    return hr_fail(err, status,
                   "train.kernels: %s has no %.40s; the best available is %s (or use auto)",
                   device->device->name, wanted, hr_cpu_rung_name(t->machine->cpu_mask));
}

/* Whether the recipe's program has values in a file: memory.moments=file leaves small ones in the
 * arena, and some recipes have no others. With memory.spill=auto any strategy may have some. */
static hr_status find_file(hr_trial *t, hr_error *err)
{
    hr_admission *a = t->admission;
    hr_program program;
    a->has_file = a->config.memory.spill == HR_SPILL_AUTO;
    if (a->config.memory.moments != HR_PLACE_FILE && a->config.memory.weights != HR_PLACE_FILE)
        return HR_OK;
    a->region.used = 0;
    const hr_status status = hr_model_assemble(&a->config, a->backend, a->config.train.batch,
                                               &a->region, &program, err);
    for (int32_t i = 0; status == HR_OK && i < program.tensor_count; i++)
        a->has_file |= hr_tensor_is_away(&program, i);
    a->region.used = 0;
    return status;
}

hr_status hr_trial_prepare(hr_trial *t, bool touched, hr_error *err)
{
    hr_admission *a = t->admission;
    hr_plan_answer *answer = &a->answer;
    const hr_config *config = &a->config;
    t->threads = config->train.threads ? (int32_t)config->train.threads : t->machine->threads;
    if (hr_admission_is_card(t->machine)) t->threads = 1; /* threads of the CPU have no scratch */
    a->backend = hr_backend_find(HR_BACKEND_DEFAULT);
    hr_status status = hr_config_check(config, err);
    if (status == HR_OK && hr_config_has_stages(config))
        status = hr_fail(
            err, HR_USAGE,
            "train.stages: this is answered for one stage at a time; add --stage 1, or "
            "another one");
    if (status == HR_OK && t->machine->device) status = check_format(t, err);
    if (status == HR_OK) status = choose_kernels(t, err);
    if (status == HR_OK) status = load_rates(t, err);
    if (status == HR_OK) status = hr_trial_open_regions(t, touched, err);
    if (status == HR_OK) status = find_file(t, err);
    if (status != HR_OK) return status;
    t->rung = hr_cpu_rung_name(a->cpu_mask);
    a->needs = a->share ? a->share->needs : t->machine->needs(t->machine->context, config);
    answer->available_bytes = config->memory.budget ? config->memory.budget
                                                    : t->machine->available_bytes;
    answer->memory_bytes = t->machine->memory_bytes;
    answer->machine_bytes = config->memory.budget ? 0 : answer->memory_bytes;
    if (t->room) hr_proxy_cache_use(t->room->cache, config);
    return HR_OK;
}

void hr_trial_copy_found(const hr_trial *t, const hr_fit_found *from, hr_fit_found *to)
{
    hr_intermediates *recompute_set = to->strategy.recompute_set;
    const int64_t layers = t->admission->config.model.n_layers;
    memcpy(recompute_set, from->strategy.recompute_set, (size_t)layers * sizeof *recompute_set);
    *to = *from;
    to->strategy.recompute_set = recompute_set;
}

void hr_trial_tell(const hr_trial *t)
{
    const hr_plan_progress *progress = &t->admission->progress;
    if (progress->search) progress->search(progress->context);
}

void hr_trial_close_search(hr_trial *t)
{
    if (t->search_is_open) t->admission->work += t->fit.proxy.steps * WORK_PROXY_STEP;
    t->search_is_open = false;
}

hr_status hr_trial_open_search(hr_trial *t, hr_error *err)
{
    hr_admission *a = t->admission;
    if (t->search_is_open) return HR_OK;
    t->search.used = 0;
    t->search_is_open = true;
    const hr_status status = hr_fit_open(&t->fit, &a->config, &a->rates, t->threads, &t->search,
                                         err);
    if (status == HR_OK && t->room) t->fit.proxy.cache = t->room->cache;
    return status;
}

hr_status hr_trial_build_floor(hr_trial *t, const hr_strategy *strategy, hr_error *err)
{
    hr_admission *a = t->admission;
    a->region.used = 0;
    t->is_packed = false;
    hr_trial_close_search(t);
    hr_trial_tell(t);
    const hr_status status = hr_compile_floor(&a->config, a->backend, strategy, t->threads,
                                              &a->region, &a->compiled, err);
    if (status == HR_OK) a->work += a->compiled.program.step_count * (int64_t)WORK_PLAN_STEP / 2;
    return status;
}

hr_status hr_trial_reorder_floor(hr_trial *t, bool *moved, hr_error *err)
{
    hr_admission *a = t->admission;
    HR_ASSERT(t->is_packed);
    hr_trial_close_search(t);
    hr_trial_tell(t);
    const hr_status status = hr_compile_reorder(&a->region, &a->compiled, moved, err);
    a->work += a->compiled.program.step_count * (int64_t)WORK_PLAN_STEP / 4;
    t->is_packed = status == HR_OK && !*moved;
    return status;
}

hr_status hr_trial_pack(hr_trial *t, int64_t work, hr_error *err)
{
    hr_admission *a = t->admission;
    hr_trial_tell(t);
    const hr_status status = hr_compile_pack(&a->region, work, &a->compiled, err);
    hr_trial_tell(t);
    if (status != HR_OK) return status;
    a->pack_work = work;
    a->work += a->compiled.program.step_count * (int64_t)WORK_PLAN_STEP / 2 +
               a->compiled.packing.work * WORK_PACKED;
    HR_ASSERT(a->region.used <= t->kept_bytes);
    a->region.used = t->kept_bytes;
    t->is_packed = true;
    hr_trial_account(t, a->compiled.plan.arena_bytes);
    return HR_OK;
}

/* True if the admission has the plan of a strategy, packed within the same work limit. */
static bool is_there(const hr_trial *t, const hr_strategy *strategy, int64_t work)
{
    const hr_strategy *built = &t->admission->compiled.strategy;
    return t->is_packed && t->admission->pack_work == work &&
           built->micro_batch == strategy->micro_batch &&
           built->loss_chunk == strategy->loss_chunk && built->mlp_tile == strategy->mlp_tile &&
           built->attention_tile == strategy->attention_tile &&
           built->dw_first == strategy->dw_first && built->consume == strategy->consume &&
           built->reorder == strategy->reorder && built->layer_count == strategy->layer_count &&
           !memcmp(built->recompute_set, strategy->recompute_set,
                   (size_t)built->layer_count * sizeof *built->recompute_set);
}

hr_status hr_trial_build(hr_trial *t, const hr_strategy *strategy, int64_t work, hr_error *err)
{
    if (is_there(t, strategy, work)) {
        hr_trial_account(t, t->admission->compiled.packing.arena_bytes);
        return HR_OK;
    }
    hr_status status = hr_trial_build_floor(t, strategy, err);
    if (status == HR_OK) status = hr_trial_pack(t, work, err);
    const hr_compiled *built = &t->admission->compiled;
    if (status != HR_OK || !built->early || built->plan.arena_bytes == built->plan.floor_bytes)
        return status;
    /* Windows that are live early can make packing harder. They are not worth a larger arena. */
    hr_strategy late = *strategy;
    late.late = true;
    status = hr_trial_build_floor(t, &late, err);
    return status == HR_OK ? hr_trial_pack(t, work, err) : status;
}
