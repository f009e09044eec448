/* SPDX-License-Identifier: Apache-2.0 */
/* admission/stages.c - admits the stages of a run one after the other. */
#include "admission/stages.h"

#include <string.h>

#include "admission/trial.h"
#include "base/checked.h"

static int64_t set_bytes_of(const hr_config *config, int32_t stages)
{
    return hr_round_up(sizeof(hr_stage_set), 64) + stages * hr_trial_set_bytes(config);
}

static hr_status place_set(const hr_admission_machine *machine, const hr_config *recipe,
                           hr_stage_set **out, hr_error *err)
{
    hr_stages list;
    hr_region region = { 0 };
    hr_status status = hr_config_stages(recipe, &list, err);
    if (status != HR_OK) return status;
    const int64_t bytes = set_bytes_of(recipe, list.count), layers = recipe->model.n_layers;
    status = machine->open(machine->context, "stages", bytes, true, &region, err);
    if (status != HR_OK) return status;
    hr_stage_set *set = hr_region_take(&region, 1, sizeof *set);
    *set = (hr_stage_set){ .list = list, .recipe = recipe, .current = -1 };
    for (int32_t i = 0; i < list.count; i++)
        set->choices[i].strategy.recompute_set = hr_region_take(
            &region, layers, sizeof *set->choices[i].strategy.recompute_set);
    *out = set;
    return HR_OK;
}

/* What the processes of all stages have in common: the largest of each. `at` is overwritten. */
static hr_status share_bytes(const hr_admission_machine *machine, const hr_config *recipe,
                             int32_t stages, hr_config *at, hr_admission_share *share,
                             hr_error *err)
{
    hr_status status = HR_OK;
    *share = (hr_admission_share){ .recipe = recipe, .set_bytes = set_bytes_of(recipe, stages) };
    share->needs = machine->needs(machine->context, recipe); /* all texts are prepared at once */
    for (int32_t i = 0; i < stages && status == HR_OK; i++) {
        status = hr_config_at_stage(recipe, i, at, err);
        if (status != HR_OK) return status;
        /* If weights may stay in files: what reading them needs, too. */
        const bool may_stream = at->memory.weights == HR_PLACE_AUTO &&
                                at->train.adapter.kind != HR_ADAPTER_NONE;
        if (may_stream) at->memory.weights = HR_PLACE_FILE;
        const hr_admission_needs needs = machine->needs(machine->context, at);
        share->needs.prepare_bytes = hr_max(share->needs.prepare_bytes, needs.prepare_bytes);
        share->needs.reading_bytes = hr_max(share->needs.reading_bytes, needs.reading_bytes);
        share->needs.run_bytes = hr_max(share->needs.run_bytes, needs.run_bytes);
        share->kept_bytes = hr_max(share->kept_bytes, hr_compile_bytes(at));
    }
    for (int32_t i = 0; i < stages && status == HR_OK; i++) {
        status = hr_config_at_stage(recipe, i, at, err);
        if (status != HR_OK) return status;
        share->planning_bytes = hr_max(share->planning_bytes,
                                       hr_trial_planning_bytes(at, share->kept_bytes));
        if (at->memory.weights != HR_PLACE_AUTO) continue;
        at->memory.weights = HR_PLACE_FILE; /* which is tried, too */
        share->planning_bytes = hr_max(share->planning_bytes,
                                       hr_trial_planning_bytes(at, share->kept_bytes));
    }
    return status;
}

hr_status hr_stages_share(const hr_admission_machine *machine, const hr_config *recipe,
                          hr_config *scratch, hr_admission_share *share, hr_error *err)
{
    hr_stages list;
    const hr_status status = hr_config_stages(recipe, &list, err);
    if (status != HR_OK) return status;
    return share_bytes(machine, recipe, list.count, scratch, share, err);
}

static hr_status fail_stage(const hr_stage_set *set, int32_t index, hr_status status,
                            const hr_error *why, hr_error *err)
{
    const hr_stage *stage = &set->list.at[index];
    return hr_fail(err, status, "stage %d of %d, %lld x %lld tokens from step %lld: %.700s",
                   index + 1, set->list.count, (long long)stage->batch, (long long)stage->seq_len,
                   (long long)stage->first_step, why->message);
}

/* Keeps what a stage needs to be compiled again. */
static void keep_choice(hr_stage_set *set, int32_t index, const hr_admission *a)
{
    hr_stage_choice *choice = &set->choices[index];
    hr_intermediates *recompute_set = choice->strategy.recompute_set;
    choice->strategy = a->compiled.strategy;
    choice->strategy.recompute_set = recompute_set;
    memcpy(recompute_set, a->compiled.strategy.recompute_set,
           (size_t)choice->strategy.layer_count * sizeof *recompute_set);
    choice->pack_work = a->pack_work;
    choice->arena_bytes = a->compiled.plan.arena_bytes;
    choice->file_bytes = a->compiled.plan.spaces[HR_SPACE_FILE].bytes;
    choice->weights = a->config.memory.weights;
}

static void describe(hr_stage_set *set, int32_t index, const hr_admission *a)
{
    const hr_stage *stage = &set->list.at[index];
    const hr_strategy *strategy = &a->compiled.strategy;
    const bool last = index + 1 == set->list.count;
    const int64_t end = last ? set->recipe->train.steps : stage[1].first_step;
    hr_plan_stage *plan = &set->plans[index];
    *plan = (hr_plan_stage){ .fits = a->answer.fits,
                             .first_step = stage->first_step,
                             .steps = end ? end - stage->first_step : 0,
                             .seq_len = stage->seq_len,
                             .batch = stage->batch,
                             .micro_batch = a->answer.micro_batch,
                             .loss_chunk = a->answer.loss_chunk,
                             .process_bytes = a->answer.fits ? a->compiled.plan.process.bytes
                                                             : a->answer.minimum_bytes,
                             .arena_bytes = a->compiled.plan.arena_bytes,
                             .floor_bytes = a->compiled.plan.floor_bytes,
                             .lr_scale = stage->lr_scale,
                             .step_seconds = a->answer.step_seconds,
                             .bound_seconds = a->answer.bound_seconds,
                             .releases = strategy->consume };
    for (int32_t l = 0; l < strategy->layer_count; l++)
        plan->recomputing += strategy->recompute_set[l] != 0;
}

static hr_status admit_one(const hr_admission_machine *machine, hr_stage_set *set, int32_t index,
                           hr_place weights, hr_admission_room *room, hr_admission *a,
                           hr_error *err)
{
    hr_error why;
    hr_status status = hr_config_at_stage(set->recipe, index, &set->config, err);
    if (status != HR_OK) return status;
    set->config.memory.weights = weights;
    status = hr_admit(machine, &set->config, false, room, a, &why);
    if (status != HR_OK) (void)fail_stage(set, index, status, &why, err);
    return status;
}

/* Admits all stages, also after one that does not fit: a report has them all, and the refusal names
 * the one that needs most. `worst` out: this one, or if all fit the one with the largest arena. */
static hr_status admit_all(const hr_admission_machine *machine, hr_stage_set *set, hr_place weights,
                           hr_admission_room *room, hr_admission *a, int32_t *worst, hr_error *err)
{
    hr_status found = HR_OK;
    hr_error why;
    int64_t needed = 0;
    set->arena_bytes = set->file_bytes = 0;
    *worst = 0;
    for (int32_t i = 0; i < set->list.count; i++) {
        const hr_status status = admit_one(machine, set, i, weights, room, a, &why);
        if (status != HR_OK && (status != HR_NO_FIT || !a->compiled.program.step_count))
            return hr_fail(err, status, "%s", why.message);
        describe(set, i, a);
        keep_choice(set, i, a);
        const int64_t arena = set->choices[i].arena_bytes;
        const bool larger = status == HR_OK ? found == HR_OK && arena > set->arena_bytes
                                            : found == HR_OK || a->answer.minimum_bytes > needed;
        set->arena_bytes = hr_max(set->arena_bytes, arena);
        set->file_bytes = hr_max(set->file_bytes, set->choices[i].file_bytes);
        if (status == HR_NO_FIT) found = HR_NO_FIT;
        if (!larger) continue;
        *worst = i;
        set->answer = a->answer;
        if (status == HR_NO_FIT) needed = a->answer.minimum_bytes;
        if (status == HR_NO_FIT && err) *err = why;
    }
    return found;
}

hr_status hr_stage_set_compile(hr_stage_set *set, int32_t index, hr_admission *admission,
                               hr_error *err)
{
    hr_admission *a = admission;
    const hr_stage_choice *choice = &set->choices[index];
    const hr_account process = a->compiled.plan.process;
    hr_status status = hr_config_at_stage(set->recipe, index, &set->config, err);
    if (status != HR_OK) return status;
    const int64_t micro_batch = choice->strategy.micro_batch;
    set->config.memory.micro_batch = micro_batch ? micro_batch : set->config.train.batch;
    set->config.memory.weights = choice->weights;
    set->current = index;
    a->config = set->config;
    a->region.used = 0;
    status = hr_compile_floor(&set->config, a->backend, &choice->strategy, process.threads,
                              &a->region, &a->compiled, err);
    if (status == HR_OK) status = hr_compile_pack(&a->region, choice->pack_work, &a->compiled, err);
    a->compiled.plan.process = process;
    if (status != HR_OK || a->compiled.plan.arena_bytes == choice->arena_bytes) return status;
    return hr_fail(err, HR_BROKEN, "stage %d: its plan was %lld bytes, and is %lld", index + 1,
                   (long long)choice->arena_bytes, (long long)a->compiled.plan.arena_bytes);
}

hr_status hr_stage_set_account(const hr_admission_machine *machine, const hr_stage_set *set,
                               bool alone, hr_admission *admission, hr_error *err)
{
    hr_admission *a = admission;
    const int64_t arena_bytes = a->compiled.plan.arena_bytes;
    hr_trial t = { .machine = machine,
                   .admission = a,
                   .rung = a->compiled.plan.process.rung,
                   .threads = a->compiled.plan.process.threads };
    const hr_status status = hr_trial_open_regions(&t, true, err);
    if (status == HR_OK) hr_trial_account(&t, alone ? arena_bytes : set->arena_bytes);
    a->compiled.plan.arena_bytes = arena_bytes;
    return status;
}

hr_status hr_admit_stages(const hr_admission_machine *machine, const hr_config *recipe,
                          hr_admission *admission, hr_stage_set **out, hr_error *err)
{
    hr_stage_set *set = NULL;
    hr_admission *a = admission;
    hr_admission_room room = { .progress = a->progress };
    int32_t worst = 0;
    hr_status status = hr_config_check(recipe, err);
    if (status == HR_OK && recipe->memory.strategy[0])
        status = hr_fail(
            err, HR_USAGE,
            "memory.strategy is for one length and batch, and train.stages has several: "
            "leave memory.strategy out, or use --stage N");
    if (status == HR_OK) status = place_set(machine, recipe, &set, err);
    if (status == HR_OK)
        status = share_bytes(machine, recipe, set->list.count, &set->config, &set->share, err);
    if (status == HR_OK)
        status = machine->open(machine->context, "planning", set->share.planning_bytes, true,
                               &room.region, err);
    if (status != HR_OK) return status;
    const bool automatic = recipe->memory.weights == HR_PLACE_AUTO;
    const bool adapts = recipe->train.adapter.kind != HR_ADAPTER_NONE;
    const hr_place first = automatic ? HR_PLACE_HOST : (hr_place)recipe->memory.weights;
    a->share = &set->share;
    *out = set;
    status = admit_all(machine, set, first, &room, a, &worst, err);
    if (status == HR_NO_FIT && automatic && adapts)
        status = admit_all(machine, set, HR_PLACE_FILE, &room, a, &worst, err);
    a->region = room.region;
    if (status == HR_NO_FIT) { /* with the smallest plan of the one that does not fit */
        const hr_place weights = (hr_place)set->choices[worst].weights;
        status = admit_one(machine, set, worst, weights, &room, a, err);
        set->current = worst;
        set->config = a->config;
    } else if (status == HR_OK) {
        status = hr_stage_set_compile(set, worst, a, err);
        if (status == HR_OK) status = hr_stage_set_account(machine, set, false, a, err);
        a->answer = set->answer;
        a->answer.file_bytes = hr_space_file_size(set->file_bytes);
    }
    a->answer.stages = set->plans;
    a->answer.stage_count = set->list.count;
    a->answer.stage = worst;
    return status;
}
