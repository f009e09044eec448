/* SPDX-License-Identifier: Apache-2.0 */
/* train/admit.c - computes the arena limit, searches within it, and builds, packs and accounts the
 * plan. */
#include "train/admit.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "base/threads.h"
#include "calibrate/rates_file.h"
#include "ckpt/weights_in.h"
#include "fit/fit.h"
#include "fit/proxy_cache.h"
#include "graph/op.h"
#include "mem/limits.h"
#include "model/assemble.h"
#include "ops/list.h"
#include "plan/strategy_file.h"
#include "train/prepare.h"
#include "train/stopping.h"

enum {
    TRIES_MOST = 5,
    CHANCE_PART = 8, /* a floor above the limit by over 1/8 of itself counts as hopeless */
    SETS_OWN = 4,    /* arrays of recompute sets that a trial uses */
    SETS_SPARE = 2   /* the same at the end of the region, for hr_admit_spare */
};

/* Goals of an admission. */
typedef enum {
    FASTEST,  /* the fastest plan; the smallest if nothing fits */
    THOROUGH, /* as FASTEST, and the bytes of the smallest plan */
    LEAST,    /* only the smallest plan */
    WHETHER   /* any plan that fits; else the smallest, or only a floor if hopeless */
} aims;

static const char *const packing_words
    [] = { [HR_PACK_AT_FLOOR] = "at floor", [HR_PACK_PROVEN] = "proven", [HR_PACK_OPEN] = "open" };

/* State common to every plan of a config. */
typedef struct {
    hr_memory *memory;
    hr_admission *admission;
    hr_admission_room *room; /* or null */
    const char *rung;
    int32_t threads;
    int64_t planning_bytes, kept_bytes;
    hr_region search; /* memory of `fit` */
    bool search_is_open;
    hr_fit_found lowest; /* with the least floor; floor_bytes 0: not computed */
    hr_intermediates *chosen, *least, *spare; /* [layers] recompute sets */
    hr_fit fit;
} trial;

/* Accounts the process with an arena of a given size. Fills the plan; returns process bytes. */
static int64_t account(const trial *t, int64_t arena_bytes)
{
    hr_admission *a = t->admission;
    const int64_t page = hr_page_bytes();
    const int64_t program_bytes = hr_round_up(t->kept_bytes, page);
    const int64_t tables = program_bytes + hr_round_up(a->run_bytes, page);
    const int64_t reading = a->reading_bytes ? hr_round_up(a->run_bytes, page) +
                                                   hr_round_up(a->reading_bytes, page)
                                             : 0;
    const int64_t preparing = hr_max(hr_round_up(a->prepare_bytes, page), reading);
    const int64_t planning = hr_max(hr_round_up(t->planning_bytes, page),
                                    program_bytes + preparing);
    hr_plan *plan = &a->compiled.plan;
    plan->threads = t->threads;
    plan->arena_bytes = arena_bytes;
    plan->rung = t->rung;
    plan->page_bytes = page;
    hr_memory_account(t->memory, planning, tables, plan);
    return plan->process_bytes;
}

/* Bytes that must be available for an arena. A budget covers the process; without one the machine
 * must also hold the page tables of the process. */
static int64_t needed_bytes(const trial *t, int64_t arena)
{
    const int64_t process = account(t, arena);
    return t->admission->config.memory.budget
               ? process
               : process + hr_process_kernel_bytes(process, t->threads);
}

/* The largest arena that fits the available bytes; -1 if none does. */
static int64_t arena_limit(const trial *t)
{
    const int64_t page = hr_page_bytes(), most = INT64_MAX / 4; /* so that sums cannot overflow */
    const int64_t available = hr_min(t->admission->answer.available_bytes, most);
    int64_t fits = 0, too_many = available / page + 1;
    if (needed_bytes(t, 0) > available) return -1;
    while (too_many - fits > 1) {
        const int64_t pages = fits + (too_many - fits) / 2;
        if (needed_bytes(t, pages * page) <= available) fits = pages;
        else too_many = pages;
    }
    return fits * page;
}

/* Work units of a proxy-model step, a plan step and a packed item: measured on presets of 6 to 126
 * layers, accurate to a factor of two. */
enum { WORK_PROXY_STEP = 400, WORK_PLAN_STEP = 2000, WORK_PACKED = 10 };

static void tell(const trial *t)
{
    const hr_plan_progress *progress = &t->admission->progress;
    if (progress->search) progress->search(progress->context);
}

/* Closes the search and adds its steps to the work of the admission. */
static void close_search(trial *t)
{
    if (t->search_is_open) t->admission->work += t->fit.proxy.steps * WORK_PROXY_STEP;
    t->search_is_open = false;
}

/* Opens the search if it is closed. Building a plan closes it, because both use the same memory. */
static hr_status open_search(trial *t, hr_error *err)
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

/* Builds a strategy into the admission up to its floor, without packing. */
static hr_status build_floor(trial *t, const hr_strategy *strategy, hr_error *err)
{
    hr_admission *a = t->admission;
    a->region.used = 0;
    close_search(t);
    tell(t);
    const hr_status status = hr_compile_floor(&a->config, strategy, t->threads, &a->region,
                                              &a->compiled, err);
    if (status == HR_OK) a->work += a->compiled.program.step_count * (int64_t)WORK_PLAN_STEP / 2;
    return status;
}

/* Packs the plan of build_floor within a work limit. */
static hr_status pack(trial *t, int64_t work, hr_error *err)
{
    hr_admission *a = t->admission;
    tell(t);
    const hr_status status = hr_compile_pack(&a->region, work, &a->compiled, err);
    tell(t);
    if (status != HR_OK) return status;
    a->pack_work = work;
    a->work += a->compiled.program.step_count * (int64_t)WORK_PLAN_STEP / 2 +
               a->compiled.packing.work * WORK_PACKED;
    HR_ASSERT(a->region.used <= t->kept_bytes);
    a->region.used = t->kept_bytes;
    account(t, a->compiled.plan.arena_bytes);
    return HR_OK;
}

/* Builds a strategy into the admission and packs it within a work limit. */
static hr_status build(trial *t, const hr_strategy *strategy, int64_t work, hr_error *err)
{
    const hr_status status = build_floor(t, strategy, err);
    return status == HR_OK ? pack(t, work, err) : status;
}

/* Builds the fastest strategy whose packed arena is within a limit. A plan that does not pack at
 * its floor may exceed the limit. The search limit then falls by the excess, times 2 for each
 * earlier try. Only the first try packs with the full work limit; packing a later plan again with
 * that limit gives an arena that is no larger.
 * Errors   NO_FIT  none was found. */
static hr_status build_fastest(trial *t, int64_t limit, hr_fit_found *found, hr_error *err)
{
    int64_t asked = limit, bound_ps = 0;
    for (int32_t tries = 0; tries < TRIES_MOST; tries++) {
        hr_status status = open_search(t, err);
        if (status == HR_OK) status = hr_fit_fastest(&t->fit, asked, found, err);
        if (status == HR_OK)
            status = build(t, &found->strategy,
                           tries ? HR_COMPILE_PACK_WORK_BRIEF : HR_COMPILE_PACK_WORK, err);
        if (status != HR_OK) return status;
        if (tries == 0) bound_ps = found->proven ? found->step_ps : 0;
        const int64_t arena = t->admission->compiled.plan.arena_bytes;
        if (arena <= limit) {
            t->admission->answer.bound_seconds = hr_cost_seconds(&t->admission->rates, bound_ps);
            return HR_OK;
        }
        asked -= (arena - limit) << tries;
    }
    return hr_fail(err, HR_NO_FIT, "no plan fits an arena of %lld bytes", (long long)limit);
}

/* Finds the least floor of any strategy, once. If that exceeds `most`, a lower bound above `most`
 * is enough. */
static hr_status find_floor(trial *t, int64_t most, int64_t *bytes, hr_error *err)
{
    hr_fit_found found = { .strategy.recompute_set = t->lowest.strategy.recompute_set };
    *bytes = t->lowest.floor_bytes;
    if (t->lowest.floor_bytes) return HR_OK;
    hr_status status = open_search(t, err);
    if (status == HR_OK) status = hr_fit_least(&t->fit, most, &found, err);
    if (status != HR_OK) return status;
    t->lowest = found;
    t->admission->least_floor = found.floor_bytes;
    *bytes = found.floor_bytes;
    return HR_OK;
}

/* Copies a search result, and its recompute sets into the memory that the copy owns. */
static void copy_found(const trial *t, const hr_fit_found *from, hr_fit_found *to)
{
    hr_intermediates *recompute_set = to->strategy.recompute_set;
    const int64_t layers = t->admission->config.model.n_layers;
    memcpy(recompute_set, from->strategy.recompute_set, (size_t)layers * sizeof *recompute_set);
    *to = *from;
    to->strategy.recompute_set = recompute_set;
}

/* Finds the fastest strategy with the least floor. If it does not pack at its floor, also searches
 * below its arena. Leaves the strategy with the smallest arena in *least, its arena in *best. */
static hr_status build_low(trial *t, hr_fit_found *least, int64_t *best, hr_error *err)
{
    const hr_admission *a = t->admission;
    int64_t limit;
    hr_fit_found found = { .strategy.recompute_set = t->spare };
    hr_status status = find_floor(t, INT64_MAX, &limit, err);
    *best = INT64_MAX;
    for (int32_t tries = 0; tries < TRIES_MOST && status == HR_OK; tries++) {
        status = open_search(t, err);
        if (status == HR_OK) status = hr_fit_fastest(&t->fit, limit, &found, err);
        if (status == HR_OK) status = build(t, &found.strategy, HR_COMPILE_PACK_WORK_BRIEF, err);
        if (status != HR_OK) return status;
        const int64_t arena = a->compiled.plan.arena_bytes;
        if (arena >= *best) break;
        *best = arena;
        copy_found(t, &found, least);
        if (arena == found.floor_bytes) break;
        limit = arena - HR_ARENA_ALIGN;
    }
    return status;
}

/* Reorders the steps of the strategy that packs into *best bytes. Packs it if its floor is then
 * lower, and keeps the new order if the arena shrinks. Lowers *best to the arena. */
static hr_status build_reordered(trial *t, hr_fit_found *least, int64_t *best, hr_error *err)
{
    const hr_admission *a = t->admission;
    least->strategy.reorder = true;
    hr_status status = build_floor(t, &least->strategy, err);
    if (status == HR_OK && a->compiled.packing.floor_bytes < *best)
        status = pack(t, HR_COMPILE_PACK_WORK_BRIEF, err);
    else least->strategy.reorder = false;
    if (status != HR_OK || !least->strategy.reorder) return status;
    least->strategy.reorder = a->compiled.plan.arena_bytes < *best;
    *best = hr_min(*best, a->compiled.plan.arena_bytes);
    return HR_OK;
}

/* Finds the bytes of the smallest plan. The built plan may be another one afterwards.
 *
 *   least  out: strategy of the smallest plan
 *   best   out: its arena bytes */
static hr_status measure_least(trial *t, hr_fit_found *least, int64_t *best, hr_error *err)
{
    hr_admission *a = t->admission;
    int64_t floor_bytes;
    hr_status status = find_floor(t, INT64_MAX, &floor_bytes, err);
    if (status != HR_OK) return status;
    copy_found(t, &t->lowest, least);
    status = build(t, &least->strategy, HR_COMPILE_PACK_WORK_BRIEF, err);
    if (status == HR_OK) *best = a->compiled.plan.arena_bytes;
    if (status == HR_OK && *best > floor_bytes) status = build_low(t, least, best, err);
    if (status == HR_OK) status = build_reordered(t, least, best, err);
    if (status == HR_OK) a->answer.minimum_bytes = account(t, *best);
    return status;
}

/* Builds the smallest plan: a strategy with the least floor, packed. A reordering of its steps may
 * need fewer bytes than any strategy of the search space.
 *
 *   shown  take the fastest plan of that size, which takes several times as long */
static hr_status build_least(trial *t, bool shown, hr_fit_found *least, hr_error *err)
{
    hr_admission *a = t->admission;
    int64_t best = 0, low;
    hr_status status = measure_least(t, least, &best, err);
    if (status != HR_OK) return status;
    if (!least->strategy.reorder && shown && best == t->lowest.floor_bytes)
        status = build_low(t, least, &low, err);
    if (status == HR_OK) status = build(t, &least->strategy, HR_COMPILE_PACK_WORK_BRIEF, err);
    if (status == HR_OK && a->compiled.plan.arena_bytes > best)
        status = build(t, &t->lowest.strategy, HR_COMPILE_PACK_WORK_BRIEF, err);
    if (status == HR_OK) a->answer.minimum_bytes = a->compiled.plan.process_bytes;
    return status;
}

/* Builds the strategy that the recipe names. */
static hr_status build_named(trial *t, hr_fit_found *found, hr_error *err)
{
    hr_admission *a = t->admission;
    hr_status status = hr_strategy_read(&a->config, a->config.memory.strategy, &found->strategy,
                                        err);
    if (status == HR_OK) status = build(t, &found->strategy, HR_COMPILE_PACK_WORK, err);
    if (status == HR_OK) a->answer.minimum_bytes = a->compiled.plan.process_bytes;
    return status;
}

/* FLOP of training for one token by the usual convention: three times the products of the forward
 * pass, with attention counted over the pairs that the mask keeps. With frozen weights: the
 * products that remain. */
static int64_t flops_per_token(const hr_config *config, const hr_program *program)
{
    const hr_loop *section = &program->loops[hr_program_loop(program, "step")];
    const int64_t T = config->train.seq_len;
    const bool freezes = config->train.freeze[0];
    int64_t whole = 0, rest = 0; /* quotients and remainders by T, so that no sum overflows */
    for (int32_t s = section->step_first; s <= section->step_last; s++) {
        const hr_step *step = &program->steps[s];
        const hr_op *op = program->ops[step->op];
        if (!op->flops) continue;
        const bool forward = step->direction == HR_DIR_FORWARD;
        const bool counted = forward || (step->direction == HR_DIR_BACKWARD && freezes);
        const int64_t flops = counted ? op->flops(step->attr, T) : 0;
        whole += flops / T;
        rest += flops % T;
    }
    const int64_t times = freezes ? 1 : 3;
    return times * whole + times * rest / T;
}

static void describe(const trial *t)
{
    const hr_admission *a = t->admission;
    const hr_plan *plan = &a->compiled.plan;
    const hr_strategy *strategy = &a->compiled.strategy;
    hr_plan_answer *answer = &t->admission->answer;
    hr_writer writer = { answer->strategy, sizeof answer->strategy };
    const int64_t T = a->config.train.seq_len;
    answer->process_bytes = plan->process_bytes;
    answer->arena_bytes = plan->arena_bytes;
    answer->floor_bytes = plan->floor_bytes;
    answer->bound_bytes = a->compiled.packing.bound_bytes;
    answer->kernel_bytes = hr_process_kernel_bytes(plan->process_bytes, plan->threads);
    answer->parameters = hr_program_parameters(&a->compiled.program);
    answer->trained_parameters = hr_program_trained_parameters(&a->compiled.program);
    answer->micro_batch = a->config.memory.micro_batch;
    answer->loss_chunk = strategy->loss_chunk ? strategy->loss_chunk : answer->micro_batch * T;
    answer->flops_per_token = flops_per_token(&a->config, &a->compiled.program);
    answer->step_seconds = hr_cost_seconds(&a->rates,
                                           hr_cost_program(&a->compiled.program, &a->rates));
    answer->stop_seconds = hr_stopping_seconds(&a->compiled.program, &a->rates);
    answer->disk_rate = hr_stopping_disk_rate(&a->rates);
    answer->threads = plan->threads;
    snprintf(answer->rung, sizeof answer->rung, "%s", plan->rung);
    snprintf(answer->packing, sizeof answer->packing, "%s",
             packing_words[a->compiled.packing.proof]);
    hr_strategy_print(&a->config, strategy, &writer);
}

/* Decides whether any plan fits from the strategy with the least floor alone. That is much faster
 * than finding the fastest strategy with that floor.
 *
 *   decided  out: false if the strategy is too close to the limit to decide
 *
 * Errors   NO_FIT  the floor is far above the limit. */
static hr_status build_any(trial *t, int64_t limit, bool *decided, hr_error *err)
{
    hr_admission *a = t->admission;
    int64_t floor_bytes = 0;
    *decided = true;
    const int64_t hopeless = hr_max(limit, 0) / (CHANCE_PART - 1) * CHANCE_PART + CHANCE_PART;
    hr_status status = find_floor(t, hopeless, &floor_bytes, err);
    if (status != HR_OK) return status;
    a->answer.minimum_bytes = account(t, floor_bytes);
    if (floor_bytes > hopeless)
        return hr_fail(err, HR_NO_FIT, "the smallest floor is far above the limit");
    *decided = floor_bytes <= limit;
    if (!*decided) return HR_OK;
    status = build(t, &t->lowest.strategy, HR_COMPILE_PACK_WORK_BRIEF, err);
    *decided = status != HR_OK || a->compiled.plan.arena_bytes <= limit;
    a->answer.minimum_bytes = a->compiled.plan.process_bytes;
    return status;
}

/* Builds the plan that the goal asks for. */
static hr_status search(trial *t, aims aim, hr_error *err)
{
    hr_admission *a = t->admission;
    hr_plan_answer *answer = &a->answer;
    const int64_t limit = arena_limit(t);
    hr_fit_found found = { .strategy.recompute_set = t->chosen },
                 least = { .strategy.recompute_set = t->least };
    hr_status status;
    answer->bound_seconds = -1;
    if (*a->config.memory.strategy) {
        status = build_named(t, &found, err);
        answer->fits = status == HR_OK && a->compiled.plan.arena_bytes <= limit;
        return status;
    }
    int64_t floor_bytes = 0;
    bool decided = false;
    if (aim == WHETHER) {
        status = build_any(t, limit, &decided, err);
        answer->fits = decided && status == HR_OK;
        if (decided) return status;
    }
    if (aim == LEAST || aim == WHETHER) {
        status = build_least(t, false, &least, err);
        answer->fits = status == HR_OK && a->compiled.plan.arena_bytes <= limit;
        return status;
    }
    /* The least floor shows that nothing fits much sooner than a search of all strategies. */
    status = find_floor(t, INT64_MAX, &floor_bytes, err);
    if (status == HR_OK && floor_bytes > limit)
        status = hr_fail(err, HR_NO_FIT, "no strategy fits an arena of %lld bytes",
                         (long long)limit);
    int64_t arena;
    if (status == HR_OK && aim == THOROUGH) status = measure_least(t, &least, &arena, err);
    if (status == HR_OK) status = build_fastest(t, limit, &found, err);
    answer->fits = status == HR_OK;
    if (status == HR_OK && (aim == FASTEST || a->pack_work == HR_COMPILE_PACK_WORK)) return HR_OK;
    if (status == HR_OK) return build(t, &found.strategy, HR_COMPILE_PACK_WORK, err);
    if (status != HR_NO_FIT) return status;
    /* The smallest plan may pack within the limit although the strategies above do not. */
    status = build_least(t, true, &least, err);
    answer->fits = status == HR_OK && a->compiled.plan.arena_bytes <= limit;
    return status;
}

static int64_t set_bytes(const hr_config *config)
{
    return hr_round_up(config->model.n_layers * (int64_t)sizeof(hr_intermediates), 64);
}

/* Opens the planning region: memory to build a plan, or to keep a built plan and search another. */
static hr_status open_regions(trial *t, bool runs, hr_error *err)
{
    hr_admission *a = t->admission;
    const int64_t layers = a->config.model.n_layers;
    const int64_t compile_bytes = hr_round_up(hr_compile_bytes(&a->config), 64);
    const int64_t search_bytes = hr_round_up(hr_fit_bytes(&a->config), 64);
    const int64_t sets_bytes = (SETS_OWN + SETS_SPARE) * set_bytes(&a->config);
    t->kept_bytes = hr_compile_kept_bytes(&a->config);
    const int64_t searching = hr_round_up(t->kept_bytes, 64) + search_bytes;
    t->planning_bytes = hr_max(compile_bytes, searching) + sets_bytes;
    if (t->room && t->room->region.bytes < t->planning_bytes) {
        hr_memory_region_close(t->memory, &t->room->region);
        const hr_status status = hr_memory_region_open(t->memory, "planning", t->planning_bytes,
                                                       &t->room->region, err);
        if (status != HR_OK) return status;
    }
    if (t->room) a->region = t->room->region;
    if (!a->region.base) {
        hr_status status = hr_memory_region_open(t->memory, "planning", t->planning_bytes,
                                                 &a->region, err);
        if (status != HR_OK) return status;
        /* Touches every page, so that the resident size equals the planned bytes even if planning
         * is the peak of the run. */
        if (runs) memset(a->region.base, 0, (size_t)a->region.bytes);
    }
    if (t->planning_bytes > a->region.bytes)
        return hr_fail(err, HR_FAILURE, "out of memory for the plan of %lld layers",
                       (long long)layers);
    t->search = hr_region_over(a->region.base + searching - search_bytes, search_bytes);
    hr_region sets = hr_region_over(a->region.base + t->planning_bytes - sets_bytes, sets_bytes);
    t->chosen = hr_region_take(&sets, layers, sizeof *t->chosen);
    t->least = hr_region_take(&sets, layers, sizeof *t->chosen);
    t->spare = hr_region_take(&sets, layers, sizeof *t->chosen);
    t->lowest.strategy.recompute_set = hr_region_take(&sets, layers, sizeof *t->chosen);
    return HR_OK;
}

/* Loads the rates. A calibration that cannot be opened counts as none and gives estimates; one that
 * can be read but is invalid is an error. */
static hr_status load_rates(trial *t, const char *calibrations, hr_error *err)
{
    hr_admission *a = t->admission;
    hr_status status = HR_USAGE;
    for (int32_t tries = 0; tries < 2 && status == HR_USAGE; tries++)
        status = hr_rates_load(tries ? NULL : calibrations, hr_op_table, HR_OP_COUNT, a->cpu_mask,
                               t->threads, &t->admission->rates, a->answer.times, err);
    if (status != HR_OK) return status;
    const int32_t bf16 = a->config.train.dtype == HR_FORMAT_BF16;
    const int64_t product_as = a->rates.op[HR_OP_linear][bf16].unit_as[HR_TERM_FLOPS];
    const int64_t attention_as = a->rates.op[HR_OP_attention][bf16].unit_as[HR_TERM_FLOPS];
    a->rates.in_nanoseconds = hr_cost_needs_nanoseconds(&a->config,
                                                        hr_max(product_as, attention_as));
    return HR_OK;
}

/* Prepares the search: rates, memory and limits. admission->region may be open already. */
static hr_status prepare(trial *t, const char *calibrations, aims aim, hr_error *err)
{
    hr_admission *a = t->admission;
    hr_plan_answer *answer = &a->answer;
    const hr_config *config = &a->config;
    t->threads = config->train.threads ? (int32_t)config->train.threads : hr_threads_default();
    hr_status status = hr_config_check(config, err);
    if (status == HR_OK)
        status = hr_cpu_choose("train.kernels", config->train.kernels, &a->cpu_mask, err);
    if (status == HR_OK) status = load_rates(t, calibrations, err);
    if (status == HR_OK) status = open_regions(t, aim == FASTEST || aim == THOROUGH, err);
    if (status != HR_OK) return status;
    t->rung = hr_cpu_rung_name(a->cpu_mask);
    a->prepare_bytes = hr_prepare_bytes(config);
    a->reading_bytes = config->model.from[0] ? hr_weights_in_scratch_bytes(config->model.from) : 0;
    a->run_bytes = hr_run_bytes(config);
    answer->available_bytes = config->memory.budget ? config->memory.budget
                                                    : hr_room_process_bytes();
    answer->memory_bytes = hr_room_memory().whole_bytes;
    answer->machine_bytes = config->memory.budget ? 0 : answer->memory_bytes;
    if (t->room) hr_proxy_cache_use(t->room->cache, config);
    return HR_OK;
}

static hr_status admit(trial *t, const char *calibrations, aims aim, hr_error *err)
{
    hr_admission *a = t->admission;
    hr_plan_answer *answer = &a->answer;
    const hr_config *config = &a->config;
    hr_status status = prepare(t, calibrations, aim, err);
    if (status == HR_OK) status = search(t, aim, err);
    close_search(t);
    if (status != HR_OK) return status;
    const hr_strategy *strategy = &a->compiled.strategy;
    a->config.memory.micro_batch = strategy->micro_batch ? strategy->micro_batch
                                                         : config->train.batch;
    describe(t);
    /* Free memory changes from moment to moment. Reports it only if the plan takes most of it;
     * otherwise reports the memory of the machine. */
    if (answer->machine_bytes && answer->process_bytes <= answer->available_bytes / 8 * 7)
        answer->available_bytes = answer->machine_bytes;
    return HR_OK;
}

hr_status hr_admit(hr_memory *memory, const hr_config *config, const char *calibrations,
                   bool thorough, hr_admission_room *room, hr_admission *admission, hr_error *err)
{
    *admission = (hr_admission){ .config = *config, .progress = admission->progress };
    trial t = { .memory = memory, .admission = admission, .room = room };
    const hr_status status = admit(&t, calibrations, thorough ? THOROUGH : FASTEST, err);
    const hr_plan_answer *answer = &admission->answer;
    if (status != HR_OK || answer->fits) return status;
    char needed[64], there[64];
    hr_bytes_print(answer->available_bytes, there);
    if (config->memory.budget)
        return hr_fail(
            err, HR_NO_FIT, "the run needs at least %s, the budget is %s; use --budget %lld",
            hr_bytes_print(answer->minimum_bytes, needed), there, (long long)answer->minimum_bytes);
    /* Without a budget the machine must also hold what the kernel allocates for the process. */
    const int64_t bytes = answer->minimum_bytes + answer->kernel_bytes;
    return hr_fail(err, HR_NO_FIT,
                   "the run needs at least %s with page tables, this machine has %s available%s",
                   hr_bytes_print(bytes, needed), there,
                   bytes > answer->memory_bytes ? "" : "; free some memory");
}

int64_t hr_admit_minimum(hr_memory *memory, const hr_config *config, bool exact,
                         hr_admission *admission)
{
    hr_error ignored;
    hr_admission other = { .region = admission->region,
                           .config = *config,
                           .progress = admission->progress };
    trial t = { .memory = memory, .admission = &other };
    other.region.used = 0;
    const hr_status status = admit(&t, NULL, exact ? LEAST : WHETHER, &ignored);
    admission->work += other.work;
    const bool known = status == HR_OK || (status == HR_NO_FIT && other.answer.minimum_bytes > 0);
    return known ? other.answer.minimum_bytes : INT64_MAX;
}

hr_status hr_admit_least(hr_memory *memory, const hr_config *config, const char *calibrations,
                         hr_admission_room *room, hr_admission *admission, hr_error *err)
{
    *admission = (hr_admission){ .config = *config, .progress = admission->progress };
    trial t = { .memory = memory, .admission = admission, .room = room };
    return admit(&t, calibrations, LEAST, err);
}

hr_status hr_admit_any(hr_memory *memory, const hr_config *config, const char *calibrations,
                       hr_admission_room *room, hr_admission *admission, hr_error *err)
{
    *admission = (hr_admission){ .config = *config, .progress = admission->progress };
    trial t = { .memory = memory, .admission = admission, .room = room };
    return admit(&t, calibrations, WHETHER, err);
}

/* Limits of the search for one budget, in layer states (hr_layers) and proxy-model steps (hr_fit).
 * Beyond either limit the best result so far is used. */
enum { BUDGET_STATES_MOST = 24 << 20, BUDGET_STEPS_MOST = 1 << 19 };

/* Arenas that bracket a step time: `low` is too slow, `high` is fast enough. With step seconds. */
typedef struct {
    int64_t low, high;
    double slow, fast;
} span;

/* The next arena to try. Three choices alternate: linear interpolation, the middle, and one page
 * below `high`. Time is a step function of bytes, and the last step often lies far below `high`. */
static int64_t look_at(const span *s, int64_t page, double seconds, int32_t turn)
{
    const double width = (double)(s->high - s->low), fall = s->slow - s->fast;
    double share = 0.5;
    if (turn % 3 == 2) return s->high - page;
    if (turn % 3 == 0 && fall > 0) share = (s->slow - seconds) / fall;
    share = share < 1.0 / 16 ? 1.0 / 16 : share > 15.0 / 16 ? 15.0 / 16 : share;
    return hr_max(s->low + page, hr_min(s->high - page, s->low + (int64_t)(width * share)));
}

hr_status hr_admit_budget(hr_memory *memory, const hr_config *config, const char *calibrations,
                          double seconds, const hr_plan_point *slow, const hr_plan_point *fast,
                          hr_admission_room *room, int64_t *least, int64_t *bytes, hr_error *err)
{
    hr_admission admission = { .config = *config };
    if (room) admission.progress = room->progress;
    trial t = { .memory = memory, .admission = &admission, .room = room };
    hr_status status = prepare(&t, calibrations, LEAST, err);
    const int64_t page = hr_page_bytes();
    hr_fit_found found = { .strategy.recompute_set = t.chosen },
                 best = { .strategy.recompute_set = t.least };
    span s = { slow->arena_bytes, fast->arena_bytes, slow->step_seconds, fast->step_seconds };
    if (status == HR_OK) status = open_search(&t, err);
    t.fit.layers.work_most = HR_LAYERS_WORK_BRIEF;
    int64_t work = 0;
    for (int32_t turn = 0; status == HR_OK && s.high - s.low > page; turn++) {
        if (work > BUDGET_STATES_MOST || t.fit.proxy.steps > BUDGET_STEPS_MOST) break;
        const int64_t middle = look_at(&s, page, seconds, turn);
        tell(&t);
        status = hr_fit_fastest(&t.fit, middle, &found, err);
        work += t.fit.layers.work;
        const double takes = hr_cost_seconds(&admission.rates, found.step_ps);
        const bool within = status == HR_OK && takes <= seconds;
        if (within) {
            s.high = hr_min(found.floor_bytes, middle);
            s.fast = takes;
            copy_found(&t, &found, &best);
        } else s.low = middle;
        if (status == HR_OK && !within) s.slow = takes;
        if (status == HR_NO_FIT) status = HR_OK;
    }
    if (status == HR_OK) *least = account(&t, s.low) + page;
    if (status == HR_OK) *bytes = account(&t, s.high);
    if (status == HR_OK && best.floor_bytes) {
        status = build(&t, &best.strategy, HR_COMPILE_PACK_WORK, err);
        if (status == HR_OK) *bytes = admission.compiled.plan.process_bytes;
    }
    if (!room) hr_memory_region_close(memory, &admission.region);
    return status;
}

hr_status hr_admit_other(hr_memory *memory, const hr_config *config, const char *calibrations,
                         hr_admission *admission, hr_plan_answer *answer, hr_error *err)
{
    hr_admission other = { .region = admission->region,
                           .config = *config,
                           .progress = admission->progress };
    trial t = { .memory = memory, .admission = &other };
    other.region.used = 0;
    const hr_status status = admit(&t, calibrations, FASTEST, err);
    admission->work += other.work;
    if (status == HR_OK) *answer = other.answer;
    return status;
}

hr_region hr_admit_spare(const hr_admission *admission)
{
    const int64_t bytes = SETS_SPARE * set_bytes(&admission->config);
    return hr_region_over(admission->region.base + admission->region.bytes - bytes, bytes);
}

hr_status hr_admit_strategy(hr_memory *memory, const hr_strategy *strategy, int64_t work,
                            hr_admission *admission, double *seconds, hr_error *err)
{
    hr_admission *a = admission;
    trial t = { .memory = memory,
                .admission = a,
                .rung = a->compiled.plan.rung,
                .threads = a->compiled.plan.threads };
    hr_status status = open_regions(&t, true, err);
    if (status == HR_OK && work > 0) status = build(&t, strategy, work, err);
    if (status == HR_OK && work == 0) {
        a->region.used = 0;
        status = hr_compile_floor(&a->config, strategy, t.threads, &a->region, &a->compiled, err);
        a->region.used = t.kept_bytes;
        a->work += a->compiled.program.step_count * (int64_t)WORK_PLAN_STEP / 2;
        if (status == HR_OK) account(&t, a->compiled.plan.floor_bytes);
    }
    if (status == HR_OK)
        *seconds = hr_cost_seconds(&a->rates, hr_cost_program(&a->compiled.program, &a->rates));
    return status;
}
