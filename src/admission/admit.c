/* SPDX-License-Identifier: Apache-2.0 */
/* admission/admit.c - searches within the arena limit for what each kind of admission asks for. */
#include "admission/admit.h"

#include <stdio.h>
#include <string.h>

#include "admission/answer.h"
#include "admission/trial.h"
#include "base/checked.h"
#include "plan/strategy_file.h"
#include "plan/timeline.h"
#include "search/proxy_cache.h"

enum {
    TRIES_MOST = 5,
    CHANCE_PART = 8 /* a floor above the limit by over 1/8 of itself counts as hopeless */
};

/* Goals of an admission. */
typedef enum {
    FASTEST,  /* the fastest plan; the smallest if nothing fits */
    THOROUGH, /* as FASTEST, and the bytes of the smallest plan */
    LEAST,    /* only the bytes of the smallest plan */
    WHETHER   /* those of any plan that fits; else of the smallest, or a floor if hopeless */
} aims;

/* Builds the fastest strategy whose packed arena is within a limit. A plan that does not pack at
 * its floor may exceed the limit. The search limit then falls by the excess, times 2 for each
 * earlier try. Only the first try packs with the full work limit; packing a later plan again with
 * that limit gives an arena that is no larger.
 *
 *   over  bytes that the search counts too many
 *
 * Errors   NO_FIT  none was found. */
static hr_status build_fastest(hr_trial *t, int64_t limit, int64_t over, hr_fit_found *found,
                               hr_error *err)
{
    int64_t asked = limit + over, bound_ps = 0;
    for (int32_t tries = 0; tries < TRIES_MOST; tries++) {
        hr_status status = hr_trial_open_search(t, err);
        if (status == HR_OK) status = hr_fit_fastest(&t->fit, asked, found, err);
        if (status == HR_OK)
            status = hr_trial_build(t, &found->strategy,
                                    tries ? HR_COMPILE_PACK_WORK_BRIEF : HR_COMPILE_PACK_WORK, err);
        if (status != HR_OK) return status;
        if (tries == 0) {
            bound_ps = found->bound_ps;
            t->admission->answer.cut = bound_ps > 0 && !found->proven;
        }
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
 * is enough; so is the floor of any strategy that is at most `enough`, which is not kept. */
static hr_status find_floor(hr_trial *t, int64_t most, int64_t enough, int64_t *bytes,
                            hr_error *err)
{
    hr_fit_found found = { .strategy.recompute_set = t->lowest.strategy.recompute_set };
    *bytes = t->lowest.floor_bytes;
    if (t->lowest.floor_bytes) return HR_OK;
    hr_status status = hr_trial_open_search(t, err);
    if (status == HR_OK) status = hr_fit_least(&t->fit, most, enough, &found, err);
    if (status != HR_OK) return status;
    *bytes = found.floor_bytes;
    if (*bytes <= enough) return HR_OK;
    t->lowest = found;
    t->admission->least_floor = found.floor_bytes;
    return HR_OK;
}

/* Finds the fastest strategy with the least floor. If it does not pack at its floor, also searches
 * below its arena. Leaves the strategy with the smallest arena in *least, its arena in *best. */
static hr_status build_low(hr_trial *t, hr_fit_found *least, int64_t *best, hr_error *err)
{
    const hr_admission *a = t->admission;
    int64_t limit;
    hr_fit_found found = { .strategy.recompute_set = t->spare };
    hr_status status = find_floor(t, INT64_MAX, 0, &limit, err);
    *best = INT64_MAX;
    for (int32_t tries = 0; tries < TRIES_MOST && status == HR_OK; tries++) {
        status = hr_trial_open_search(t, err);
        if (status == HR_OK) status = hr_fit_fastest(&t->fit, limit, &found, err);
        if (status == HR_OK)
            status = hr_trial_build(t, &found.strategy, HR_COMPILE_PACK_WORK_BRIEF, err);
        if (status != HR_OK) return status;
        const int64_t arena = a->compiled.plan.arena_bytes;
        if (arena >= *best) break;
        *best = arena;
        hr_trial_copy_found(t, &found, least);
        if (arena == found.floor_bytes) break;
        limit = arena - HR_ARENA_ALIGN;
    }
    return status;
}

/* Reorders the steps of the strategy that packs into *best bytes. Packs it if its floor is then
 * lower, and keeps the new order if the arena shrinks. Lowers *best to the arena. */
static hr_status build_reordered(hr_trial *t, hr_fit_found *least, int64_t *best, hr_error *err)
{
    const hr_admission *a = t->admission;
    bool moved = false;
    hr_status status = hr_trial_build(t, &least->strategy, HR_COMPILE_PACK_WORK_BRIEF, err);
    if (status == HR_OK) status = hr_trial_reorder_floor(t, &moved, err);
    if (status != HR_OK || !moved || a->compiled.packing.floor_bytes >= *best) return status;
    status = hr_trial_pack(t, HR_COMPILE_PACK_WORK_BRIEF, err);
    if (status != HR_OK) return status;
    least->strategy.reorder = a->compiled.plan.arena_bytes < *best;
    *best = hr_min(*best, a->compiled.plan.arena_bytes);
    return HR_OK;
}

/* The same for a strategy that packs into *best bytes. The search may count more bytes in every
 * strategy than in the one with the least floor, which then stays. */
static hr_status try_low(hr_trial *t, hr_fit_found *least, int64_t *best, hr_error *err)
{
    int64_t low;
    hr_error why;
    const hr_status status = build_low(t, least, &low, &why);
    if (status == HR_OK) *best = hr_min(*best, low);
    if (status == HR_OK || status == HR_NO_FIT) return HR_OK;
    return hr_fail(err, status, "%s", why.message);
}

/* Finds the bytes of the smallest plan. The built plan may be another one afterwards.
 *
 *   least  out: strategy of the smallest plan
 *   best   out: its arena bytes */
static hr_status measure_least(hr_trial *t, hr_fit_found *least, int64_t *best, hr_error *err)
{
    hr_admission *a = t->admission;
    int64_t floor_bytes;
    hr_status status = find_floor(t, INT64_MAX, 0, &floor_bytes, err);
    if (status != HR_OK) return status;
    hr_trial_copy_found(t, &t->lowest, least);
    status = hr_trial_build(t, &least->strategy, HR_COMPILE_PACK_WORK_BRIEF, err);
    if (status == HR_OK) *best = a->compiled.plan.arena_bytes;
    if (status == HR_OK && *best > floor_bytes) status = try_low(t, least, best, err);
    if (status == HR_OK) status = build_reordered(t, least, best, err);
    if (status == HR_OK) a->answer.minimum_bytes = hr_trial_account(t, *best);
    return status;
}

/* Builds the smallest plan: a strategy with the least floor, packed, and the fastest one of that
 * size. A reordering of its steps may need fewer bytes than any strategy of the search space.
 *
 *   fits  out: whether it is within the limit. If it is not, and the room wants no more, its bytes
 *         are known and it is not built */
static hr_status build_least(hr_trial *t, int64_t limit, hr_fit_found *least, bool *fits,
                             hr_error *err)
{
    hr_admission *a = t->admission;
    int64_t best = 0, low;
    *fits = false;
    hr_status status = measure_least(t, least, &best, err);
    if (status != HR_OK) return status;
    if (best > limit && t->room && t->room->is_brief) return HR_OK;
    if (!least->strategy.reorder && best == t->lowest.floor_bytes)
        status = build_low(t, least, &low, err);
    if (status == HR_OK)
        status = hr_trial_build(t, &least->strategy, HR_COMPILE_PACK_WORK_BRIEF, err);
    if (status == HR_OK && a->compiled.plan.arena_bytes > best)
        status = hr_trial_build(t, &t->lowest.strategy, HR_COMPILE_PACK_WORK_BRIEF, err);
    if (status != HR_OK) return status;
    a->answer.minimum_bytes = a->compiled.plan.process.bytes;
    *fits = a->compiled.plan.arena_bytes <= limit;
    return HR_OK;
}

/* Builds the strategy that the recipe names. */
static hr_status build_named(hr_trial *t, hr_fit_found *found, hr_error *err)
{
    hr_admission *a = t->admission;
    hr_status status = hr_strategy_read(&a->config, a->config.memory.strategy, &found->strategy,
                                        err);
    if (status == HR_OK) status = hr_trial_build(t, &found->strategy, HR_COMPILE_PACK_WORK, err);
    if (status == HR_OK) a->answer.minimum_bytes = a->compiled.plan.process.bytes;
    return status;
}

/* Decides whether any plan fits from the strategy with the least floor alone. That is much faster
 * than finding the fastest strategy with that floor.
 *
 *   decided  out: false if the strategy is too close to the limit to decide
 *
 * Errors   NO_FIT  the floor is far above the limit. */
static hr_status build_any(hr_trial *t, int64_t limit, bool *decided, hr_error *err)
{
    hr_admission *a = t->admission;
    int64_t floor_bytes = 0;
    *decided = true;
    const int64_t hopeless = hr_max(limit, 0) / (CHANCE_PART - 1) * CHANCE_PART + CHANCE_PART;
    hr_status status = find_floor(t, hopeless, 0, &floor_bytes, err);
    if (status != HR_OK) return status;
    a->answer.minimum_bytes = hr_trial_account(t, floor_bytes);
    if (floor_bytes > hopeless)
        return hr_fail(err, HR_NO_FIT, "the smallest floor is far above the limit");
    *decided = floor_bytes <= limit;
    if (!*decided) return HR_OK;
    status = hr_trial_build(t, &t->lowest.strategy, HR_COMPILE_PACK_WORK_BRIEF, err);
    *decided = status != HR_OK || a->compiled.plan.arena_bytes <= limit;
    a->answer.minimum_bytes = a->compiled.plan.process.bytes;
    return status;
}

static double step_seconds(const hr_admission *a)
{
    return hr_cost_seconds(&a->rates, hr_timeline_of(&a->compiled.program, &a->rates).step);
}

/* The search compares operations alone. Transfers overlap with those outside of loops, so a plan
 * without micro-batches may be faster although its operations are not: builds the best of these,
 * too, and keeps the faster of the two.
 *
 *   found  the built strategy */
static hr_status try_whole_batch(hr_trial *t, int64_t limit, hr_fit_found *found, hr_error *err)
{
    hr_admission *a = t->admission;
    hr_fit_found whole = { .strategy.recompute_set = t->spare };
    hr_error ignored;
    const hr_plan_space *spaces = a->compiled.plan.spaces;
    if (!spaces[HR_SPACE_FILE].bytes && !spaces[HR_SPACE_BASE].bytes) return HR_OK;
    if (!found->strategy.micro_batch) return HR_OK;
    if (a->config.memory.micro_batch) return HR_OK;
    const double seconds = step_seconds(a);
    a->config.memory.micro_batch = a->config.train.batch;
    hr_trial_close_search(t);
    hr_status status = hr_trial_open_search(t, &ignored);
    if (status == HR_OK) status = hr_fit_fastest(&t->fit, limit, &whole, &ignored);
    /* No packing makes a plan faster: most are too slow before it. */
    if (status == HR_OK) status = hr_trial_build_floor(t, &whole.strategy, &ignored);
    bool better = status == HR_OK && step_seconds(a) < seconds;
    if (better) status = hr_trial_build(t, &whole.strategy, HR_COMPILE_PACK_WORK, &ignored);
    better = better && status == HR_OK && a->compiled.plan.arena_bytes <= limit &&
             step_seconds(a) < seconds;
    a->config.memory.micro_batch = 0;
    hr_trial_close_search(t);
    if (!better) return hr_trial_build(t, &found->strategy, HR_COMPILE_PACK_WORK, err);
    memcpy(found->strategy.recompute_set, t->spare,
           (size_t)whole.strategy.layer_count * sizeof *t->spare);
    whole.strategy.recompute_set = found->strategy.recompute_set;
    *found = whole;
    return HR_OK;
}

/* The bytes that the search counts too many in the strategy with the least floor: where layers
 * train different parameters, it counts each as if it trained all of them. */
static hr_status find_over(hr_trial *t, int64_t *over, hr_error *err)
{
    hr_status status = hr_trial_open_search(t, err);
    if (status != HR_OK || t->fit.proxy.trained.uniform) return status;
    status = hr_trial_build_floor(t, &t->lowest.strategy, err);
    if (status == HR_OK)
        *over = hr_max(0, t->lowest.floor_bytes - t->admission->compiled.plan.floor_bytes);
    return status;
}

/* Where the search counts too many bytes (find_over), the plan that it found is smaller than it
 * says. Searches again with the difference added to the limit, and keeps a plan that fits and is
 * faster. Without this a plan would not be found within its own bytes.
 *
 *   found  the built strategy */
static hr_status try_beyond(hr_trial *t, int64_t limit, hr_fit_found *found, hr_error *err)
{
    hr_admission *a = t->admission;
    hr_fit_found next = { .strategy.recompute_set = t->spare };
    hr_error ignored;
    bool is_built = true;
    int64_t over = found->floor_bytes - a->compiled.plan.floor_bytes, asked = limit + over;
    for (int32_t tries = 0; tries < TRIES_MOST && over > 0 && asked > limit; tries++) {
        const double seconds = hr_cost_seconds(&a->rates, found->step_ps);
        hr_status status = hr_trial_open_search(t, err);
        if (status == HR_OK) status = hr_fit_fastest(&t->fit, asked, &next, &ignored);
        if (status != HR_OK || hr_cost_seconds(&a->rates, next.step_ps) >= seconds) break;
        status = hr_trial_build(t, &next.strategy, HR_COMPILE_PACK_WORK, &ignored);
        if (status != HR_OK) return hr_trial_build(t, &found->strategy, HR_COMPILE_PACK_WORK, err);
        const int64_t excess = a->compiled.plan.arena_bytes - limit;
        is_built = excess <= 0;
        if (is_built) hr_trial_copy_found(t, &next, found);
        over = next.floor_bytes - a->compiled.plan.floor_bytes;
        asked = is_built ? limit + over : next.floor_bytes - excess;
        if (is_built && next.floor_bytes > asked) break; /* the search has been asked for more */
    }
    return is_built ? HR_OK : hr_trial_build(t, &found->strategy, HR_COMPILE_PACK_WORK, err);
}

static bool is_brief(const hr_trial *t, aims aim)
{
    return aim == FASTEST && t->room && t->room->is_brief;
}

/* Builds the plan that the goal asks for. */
static hr_status search(hr_trial *t, aims aim, hr_error *err)
{
    hr_admission *a = t->admission;
    hr_plan_answer *answer = &a->answer;
    const int64_t limit = hr_trial_arena_limit(t);
    hr_fit_found found = { .strategy.recompute_set = t->chosen },
                 least = { .strategy.recompute_set = t->least };
    hr_status status;
    answer->bound_seconds = -1;
    if (*a->config.memory.strategy) {
        status = build_named(t, &found, err);
        answer->fits = status == HR_OK && a->compiled.plan.arena_bytes <= limit;
        return status;
    }
    int64_t floor_bytes = 0, arena = 0, over = 0;
    bool decided = false;
    if (aim == WHETHER) {
        status = build_any(t, limit, &decided, err);
        answer->fits = decided && status == HR_OK;
        if (decided) return status;
    }
    if (aim == LEAST || aim == WHETHER) {
        status = measure_least(t, &least, &arena, err);
        answer->fits = status == HR_OK && arena <= limit;
        return status;
    }
    /* The least floor shows that nothing fits much sooner than a search of all strategies. */
    status = find_floor(t, INT64_MAX, is_brief(t, aim) ? limit : 0, &floor_bytes, err);
    if (status == HR_OK && floor_bytes > limit) status = find_over(t, &over, err);
    if (status == HR_OK && floor_bytes - over > limit)
        status = hr_fail(err, HR_NO_FIT, "no strategy fits an arena of %lld bytes",
                         (long long)limit);
    if (status == HR_OK && aim == THOROUGH) status = measure_least(t, &least, &arena, err);
    if (status == HR_OK) status = build_fastest(t, limit, over, &found, err);
    if (status == HR_OK) status = try_beyond(t, limit, &found, err);
    if (status == HR_OK) status = try_whole_batch(t, limit, &found, err);
    answer->fits = status == HR_OK;
    const bool as_packed = aim == FASTEST && !(t->room && t->room->packs_fully);
    if (status == HR_OK && (as_packed || a->pack_work == HR_COMPILE_PACK_WORK)) return HR_OK;
    if (status == HR_OK) return hr_trial_build(t, &found.strategy, HR_COMPILE_PACK_WORK, err);
    if (status != HR_NO_FIT) return status;
    /* The smallest plan may pack within the limit although the strategies above do not. */
    return build_least(t, limit, &least, &answer->fits, err);
}

bool hr_admit_exceeds_file(const hr_admission *admission)
{
    const int64_t budget = admission->config.memory.file_budget;
    return budget && admission->answer.file_bytes > budget;
}

static hr_status admit_placed(hr_trial *t, aims aim, hr_error *err)
{
    hr_admission *a = t->admission;
    hr_plan_answer *answer = &a->answer;
    const hr_config *config = &a->config;
    hr_status status = hr_trial_prepare(t, aim == FASTEST, err);
    if (status == HR_OK) status = search(t, aim, err);
    hr_trial_close_search(t);
    answer->file_bytes = hr_space_file_size(a->compiled.plan.spaces[HR_SPACE_FILE].bytes);
    if (t->machine->device) hr_answer_describe_device(t->machine->device, &answer->device);
    if (hr_admit_exceeds_file(a)) answer->fits = false;
    if (status != HR_OK || aim == LEAST || aim == WHETHER) return status;
    const hr_strategy *strategy = &a->compiled.strategy;
    a->config.memory.micro_batch = strategy->micro_batch ? strategy->micro_batch
                                                         : config->train.batch;
    hr_answer_describe(a);
    /* Free memory changes from moment to moment. Reports it only if the plan takes most of it;
     * otherwise reports the memory of the machine. */
    if (answer->machine_bytes && answer->process_bytes <= answer->available_bytes / 8 * 7)
        answer->available_bytes = answer->machine_bytes;
    return HR_OK;
}

/* In place: an admission is large, and the stack size is planned. */
static void begin(hr_admission *admission, const hr_config *config)
{
    const hr_plan_progress progress = admission->progress;
    const int64_t budget = admission->budget;
    const hr_admission_share *share = admission->share;
    memset(admission, 0, sizeof *admission);
    admission->config = *config;
    admission->share = share;
    if (budget) admission->config.memory.budget = budget;
    admission->progress = progress;
}

static hr_status admit_known(hr_trial *t, aims aim, hr_error *err);

/* Admits another recipe in place of the one that was begun; not of memory.weights=auto. */
static hr_status admit_again(hr_trial *t, const hr_trial *begun, const hr_config *config,
                             hr_place weights, aims aim, hr_error *err)
{
    hr_admission *a = begun->admission;
    const hr_region region = a->region;
    const int64_t work = a->work;
    begin(a, config);
    a->region = region;
    a->region.used = 0;
    a->work = work;
    a->config.memory.weights = weights;
    *t = *begun;
    if (t->room) t->room->region.used = 0;
    return admit_known(t, aim, err);
}

/* Whether an answer is better than another one: it fits, and is faster, or both do not fit. */
static bool is_better(const hr_plan_answer *answer, hr_status status, aims aim, bool fits,
                      double seconds, int64_t least)
{
    const bool has_fit = status == HR_OK && answer->fits;
    if (status != HR_OK && status != HR_NO_FIT) return false;
    if (has_fit != fits) return has_fit;
    return fits && aim != LEAST ? answer->step_seconds < seconds : answer->minimum_bytes < least;
}

/* With memory.weights=auto, weights are in memory unless that does not fit, or is slower. Not
 * inlined: the others need no second recipe on the stack, whose size is planned. */
static __attribute__((noinline)) hr_status admit_either(hr_trial *t, aims aim, hr_error *err)
{
    hr_trial begun = *t;
    hr_config config = t->admission->config;
    const hr_plan_answer *answer = &t->admission->answer;
    const bool adapts = config.train.adapter.kind != HR_ADAPTER_NONE;
    hr_status status = admit_again(t, &begun, &config, HR_PLACE_HOST, aim, err);
    const bool fits = status == HR_OK && answer->fits;
    const double seconds = answer->step_seconds;
    const int64_t least = answer->minimum_bytes;
    const bool is_best = fits && (aim == WHETHER || (aim != LEAST && answer->bound_seconds > 0 &&
                                                     seconds <= answer->bound_seconds * 1.001));
    if (!adapts || is_best || (status != HR_OK && status != HR_NO_FIT)) return status;
    config.memory.weights = HR_PLACE_FILE;
    const int64_t planning = hr_trial_planning_bytes(&config, hr_compile_kept_bytes(&config));
    if (fits && !hr_trial_fits_planning(t, planning)) return status; /* not tried */
    hr_error other;
    const hr_status second = admit_again(t, &begun, &config, HR_PLACE_FILE, aim, &other);
    if (is_better(answer, second, aim, fits, seconds, least)) {
        if (second != HR_OK && err) *err = other;
        return second;
    }
    begun.tried_bytes = t->planning_bytes;
    return admit_again(t, &begun, &config, HR_PLACE_HOST, aim, err);
}

/* With memory.spill=auto, a file above memory.file_budget is left out. */
static __attribute__((noinline)) hr_status admit_within_file(hr_trial *t, aims aim, hr_error *err)
{
    const hr_trial begun = *t;
    hr_config config = t->admission->config;
    const hr_status status = admit_placed(t, aim, err);
    if ((status != HR_OK && status != HR_NO_FIT) || !hr_admit_exceeds_file(t->admission))
        return status;
    config.memory.spill = HR_SPILL_NO;
    return admit_again(t, &begun, &config, config.memory.weights, aim, err);
}

static hr_status admit_known(hr_trial *t, aims aim, hr_error *err)
{
    const hr_config *config = &t->admission->config;
    const bool limited = config->memory.spill == HR_SPILL_AUTO && config->memory.file_budget &&
                         !*config->memory.strategy && !t->admission->share;
    return limited ? admit_within_file(t, aim, err) : admit_placed(t, aim, err);
}

static hr_status admit(hr_trial *t, aims aim, hr_error *err)
{
    const bool automatic = t->admission->config.memory.weights == HR_PLACE_AUTO;
    return automatic ? admit_either(t, aim, err) : admit_known(t, aim, err);
}

hr_status hr_admit_refuse_file(const hr_admission *admission, hr_error *err)
{
    char needed[2][64], there[2][64], besides[192] = "";
    const hr_plan_answer *answer = &admission->answer;
    const int64_t budget = admission->config.memory.file_budget;
    const bool disk = budget == answer->device.disk_bytes; /* of --device */
    if (answer->minimum_bytes > answer->available_bytes)
        snprintf(besides, sizeof besides,
                 "; the process needs at least %s, too, and %s are available",
                 hr_bytes_print(answer->minimum_bytes, needed[1]),
                 hr_bytes_print(answer->available_bytes, there[1]));
    else
        snprintf(besides, sizeof besides, ", or keep them in memory, which takes more, with %s",
                 admission->config.memory.spill == HR_SPILL_NO ? "memory.moments=host"
                                                               : "memory.spill=no");
    return hr_fail(
        err, HR_NO_FIT, "the %s need a file of %s, %s is %s; type %s=%lld%s",
        hr_config_file_holds(&admission->config), hr_bytes_print(answer->file_bytes, needed[0]),
        disk ? "disk= of the device" : "memory.file_budget", hr_bytes_print(budget, there[0]),
        disk ? "disk" : "memory.file_budget", (long long)answer->file_bytes, besides);
}

hr_status hr_admit(const hr_admission_machine *machine, const hr_config *config, bool thorough,
                   hr_admission_room *room, hr_admission *admission, hr_error *err)
{
    begin(admission, config);
    config = &admission->config;
    hr_trial t = { .machine = machine, .admission = admission, .room = room };
    const hr_status status = admit(&t, thorough ? THOROUGH : FASTEST, err);
    const hr_plan_answer *answer = &admission->answer;
    if (status == HR_OK && hr_admit_exceeds_file(admission))
        return hr_admit_refuse_file(admission, err);
    if (status != HR_OK || answer->fits) return status;
    char needed[64], there[64];
    hr_bytes_print(answer->available_bytes, there);
    if (machine->device && config->memory.budget == hr_device_budget(machine->device))
        return hr_fail(err, HR_NO_FIT, "the run needs at least %s, %s has %s after its reserve",
                       hr_bytes_print(answer->minimum_bytes, needed), machine->device->device->name,
                       there);
    if (config->memory.budget)
        return hr_fail(
            err, HR_NO_FIT, "the run needs at least %s, the budget is %s; use --budget %lld",
            hr_bytes_print(answer->minimum_bytes, needed), there, (long long)answer->minimum_bytes);
    /* Without a budget the machine must also hold what the kernel allocates for the process. */
    const int64_t bytes = answer->minimum_bytes + answer->kernel_bytes;
    return hr_fail(err, HR_NO_FIT,
                   "the run needs at least %s with page tables, this machine has %s available%s",
                   hr_bytes_print(bytes, needed), there,
                   bytes > answer->machine_bytes ? "; use a smaller model" : "; free some memory");
}

int64_t hr_admit_minimum(const hr_admission_machine *machine, const hr_config *config, bool exact,
                         struct hr_proxy_cache *cache, hr_admission *admission)
{
    hr_error ignored;
    hr_admission_room room = { .region = admission->region, .cache = cache };
    hr_admission other = { .region = admission->region,
                           .config = *config,
                           .progress = admission->progress,
                           .share = admission->share };
    hr_trial t = {
        .machine = machine, .admission = &other, .room = cache ? &room : NULL, .estimates = true
    };
    other.region.used = room.region.used = 0;
    const hr_status status = admit(&t, exact ? LEAST : WHETHER, &ignored);
    admission->region = other.region; /* larger if it was too small */
    admission->work += other.work;
    const bool known = status == HR_OK || (status == HR_NO_FIT && other.answer.minimum_bytes > 0);
    return known && !hr_admit_exceeds_file(&other) ? other.answer.minimum_bytes : INT64_MAX;
}

hr_status hr_admit_least(const hr_admission_machine *machine, const hr_config *config,
                         hr_admission_room *room, hr_admission *admission, hr_error *err)
{
    begin(admission, config);
    hr_trial t = { .machine = machine, .admission = admission, .room = room };
    return admit(&t, LEAST, err);
}

hr_status hr_admit_any(const hr_admission_machine *machine, const hr_config *config,
                       hr_admission_room *room, hr_admission *admission, hr_error *err)
{
    begin(admission, config);
    hr_trial t = { .machine = machine, .admission = admission, .room = room };
    return admit(&t, WHETHER, err);
}

hr_status hr_admit_other(const hr_admission_machine *machine, const hr_config *config,
                         hr_admission *admission, double *step_seconds, hr_error *err)
{
    hr_admission other = { .region = admission->region,
                           .config = *config,
                           .progress = admission->progress,
                           .share = admission->share };
    hr_trial t = { .machine = machine, .admission = &other };
    other.region.used = 0;
    const hr_status status = admit(&t, FASTEST, err);
    admission->region = other.region;
    admission->work += other.work;
    if (status == HR_OK) *step_seconds = other.answer.step_seconds;
    return status;
}

hr_region hr_admit_spare(const hr_admission *admission)
{
    const int64_t bytes = HR_TRIAL_SETS_SPARE * hr_trial_set_bytes(&admission->config);
    return hr_region_over(admission->region.base + admission->region.bytes - bytes, bytes);
}

hr_status hr_admit_strategy(const hr_admission_machine *machine, const hr_strategy *strategy,
                            int64_t work, hr_admission *admission, double *seconds, hr_error *err)
{
    hr_admission *a = admission;
    hr_trial t = { .machine = machine,
                   .admission = a,
                   .rung = a->compiled.plan.process.rung,
                   .threads = a->compiled.plan.process.threads };
    hr_status status = hr_trial_open_regions(&t, true, err);
    if (status == HR_OK && work > 0) status = hr_trial_build(&t, strategy, work, err);
    if (status == HR_OK && work == 0) {
        status = hr_trial_build_floor(&t, strategy, err);
        a->region.used = t.kept_bytes;
        if (status == HR_OK) hr_trial_account(&t, a->compiled.plan.floor_bytes);
    }
    if (status == HR_OK)
        *seconds = hr_cost_seconds(&a->rates, hr_timeline_of(&a->compiled.program, &a->rates).step);
    return status;
}
