/* SPDX-License-Identifier: Apache-2.0 */
/* admission/refuse.c - plans every lever of a recipe, alone and together, and ranks them. */
#include "admission/refuse.h"

#include <stdio.h>
#include <string.h>

#include "admission/format_loss.h"
#include "admission/levers.h"
#include "admission/savings.h"
#include "admission/stages.h"
#include "base/account.h"
#include "base/checked.h"
#include "base/words.h"
#include "base/writer.h"
#include "search/proxy_cache.h"

/* Limits of the work of all plans (hr_admission) beyond which none begins: for levers alone, for
 * those together, and for their time. Work is counted and not timed, so that equal recipes get
 * equal answers. About 2e9 take a second of one core of a 2-core Intel Xeon (model 207). */
static const int64_t memo_work_most = INT64_C(2000000000); /* for all devices of a list */
static const int64_t singles_work_most = INT64_C(2900000000),
                     together_work_most = INT64_C(3100000000), work_most = INT64_C(3100000000);

enum {
    PICKS_MOST = 10,  /* levers of a combination */
    WORTH_PART = 256, /* a step is worth adding if it saves more than this part of the bytes */
    MEMO_PART = 3,    /* a device of a list may take this part of the work that is left */
    UNKNOWN = -1      /* bytes of a lever that was not planned */
};

/* A lever at a step. */
typedef struct {
    int32_t lever, step;
} pick;

/* The levers of a change, and what sorts it besides its time and bytes. */
typedef struct {
    pick picks[PICKS_MOST];
    int32_t count;
    hr_loss loss;
    double kept; /* share of tokens, vocabulary or width that remains after the change */
} rank;

/* A change that was planned. */
typedef struct {
    hr_plan_change change;
    rank rank;
} offer;

/* Changes, the cheapest first. */
typedef struct {
    hr_plan_change *changes; /* [HR_PLAN_CHANGES_MOST]; null: they are not wanted */
    rank ranks[HR_PLAN_CHANGES_MOST];
    int32_t count;
} ranking;

typedef struct {
    const hr_admission_machine *machine;
    const hr_config *config;
    hr_admission *admission;
    hr_proxy_cache *cache; /* or null */
    const hr_lever *levers;
    const hr_lever_names *names;
    int32_t lever_count;
    int64_t minimum;
    bool has_file;       /* the recipe's program has values in a file */
    double free_seconds; /* step of the fastest plan without a budget; below 0: unknown */
    int64_t work_most;
    int64_t first[HR_LEVERS_MOST]; /* bytes with the first step of each lever, or UNKNOWN */
    bool lacking[HR_LEVERS_MOST];  /* levers that are not enough alone */
    hr_config tried;
    hr_config *changed;   /* the recipe of a run of stages, with what is tried; else null */
    hr_refuse_memo *memo; /* or null */
    bool cut;             /* the limit of work left a change untried, with a memo */
    offer *least;         /* with a memo: of those that do not fit */
    ranking fitting, partial;
    hr_writer untried;
} refusing;

/* ---- one change */

/* Adds to a price what other formats of states, or activations in fp16, cost in loss, where that is
 * known. */
static void put_loss(hr_writer *price, const hr_config *before, const hr_config *after)
{
    const hr_format_loss *loss = hr_format_loss_of(after);
    const bool rounds = after->train.dtype == HR_FORMAT_FP16 &&
                        before->train.dtype != HR_FORMAT_FP16;
    if (before->train.state.master == after->train.state.master &&
        before->train.state.moments == after->train.state.moments && !rounds)
        return;
    char text[HR_FORMAT_LOSS_BYTES];
    if (*hr_format_loss_print(loss, text)) hr_put(price, ", %s", text);
    else if (!loss && after->train.state.master != HR_MASTERS_RESIDUAL16)
        hr_put(price, ", its loss was not measured");
}

/* Applies levers and writes them as command-line settings. Returns false if the recipe is not valid
 * with them. */
static bool apply_all(refusing *r, const pick *picks, int32_t count, offer *made)
{
    hr_writer writer = { made->change.what, sizeof made->change.what };
    hr_writer price = { made->change.price, sizeof made->change.price };
    r->tried = *r->config;
    *made = (offer){ .change.untimed = true,
                     .rank = { .count = count, .loss = HR_LOSS_NOTHING, .kept = 1 } };
    memcpy(made->rank.picks, picks, (size_t)count * sizeof *picks);
    for (int32_t i = 0; i < count; i++) {
        char value[HR_LEVER_VALUE_BYTES];
        const hr_lever *lever = &r->levers[picks[i].lever];
        const double kept = hr_lever_apply(lever, r->names, picks[i].step, &r->tried, value);
        if (kept == 0) return false;
        hr_put(&writer, "%s%s=%s", i ? " " : "", lever->key, value);
        if (*lever->price && !strstr(made->change.price, lever->price))
            hr_put(&price, "%s%s", price.used ? ", " : "", lever->price);
        made->rank.loss = (hr_loss)hr_max(made->rank.loss, lever->loss);
        made->rank.kept *= kept;
    }
    put_loss(&price, r->config, &r->tried);
    return !writer.cut;
}

/* Bytes that the process of a recipe may use. A change makes no state larger: a recipe whose states
 * all stay in memory has no file after it. */
static int64_t available_to(const refusing *r, const hr_config *config)
{
    const bool files = config->memory.moments == HR_PLACE_FILE;
    const bool has_file = (files && (r->has_file || r->config->memory.moments != HR_PLACE_FILE)) ||
                          config->memory.weights == HR_PLACE_FILE ||
                          config->memory.spill == HR_SPILL_AUTO;
    return hr_account_process(config->memory.budget, r->machine->process.page_bytes,
                              r->admission->answer.available_bytes,
                              r->admission->compiled.plan.process.threads, has_file);
}

/* ---- what is known of other devices */

/* Machines whose plans have the same bytes: all cards, where the recipe has the same format. */
static const void *tag_of(const hr_admission_machine *machine, const hr_config *config)
{
    static const char cards[2] = "";
    if (!machine->device) return NULL;
    if (!hr_admission_is_card(machine)) return machine->device->device;
    return &cards[config->train.dtype == HR_FORMAT_BF16];
}

static bool lacks_format(const refusing *r)
{
    const bool bf16 = r->tried.train.dtype == HR_FORMAT_BF16;
    const hr_device_choice *device = r->machine->device;
    return device && !hr_device_has(device->device, bf16 ? HR_DEVICE_BF16 : HR_DEVICE_FP32);
}

/* The entry of a change; -1 if there is no room for it. */
static int32_t entry_of(refusing *r, const char *what)
{
    hr_refuse_memo *memo = r->memo;
    const void *tag = tag_of(r->machine, r->config);
    const int64_t file_budget = r->config->memory.file_budget;
    for (int32_t i = 0; i < memo->count; i++)
        if (memo->known[i].tag == tag && memo->known[i].file_budget == file_budget &&
            !strcmp(memo->known[i].what, what))
            return i;
    if (memo->count == HR_REFUSE_KNOWN_MOST) return -1;
    memo->known[memo->count].tag = tag;
    memo->known[memo->count].file_budget = file_budget;
    memo->known[memo->count].low = 0;
    memo->known[memo->count].high = INT64_MAX;
    memo->known[memo->count].exact = 0;
    snprintf(memo->known[memo->count].what, HR_PLAN_CHANGE_BYTES, "%s", what);
    return memo->count++;
}

/* ---- what is tried, in a run of stages */

/* The recipe to change, in a region: another config on the stack would exceed what is planned. Null
 * without stages. */
static hr_config *open_changed(const hr_admission_machine *machine, const hr_admission *admission)
{
    hr_error ignored;
    hr_region region = { 0 };
    if (!admission->share) return NULL;
    const hr_status status = machine->open(machine->context, "a changed recipe", sizeof(hr_config),
                                           false, &region, &ignored);
    return status == HR_OK ? hr_region_take(&region, 1, sizeof(hr_config)) : NULL;
}

/* Takes r->tried as a change of the whole run: *r->changed is its recipe, and `own` what its stages
 * have in common. Returns whether it is one. */
static bool change_run(refusing *r, hr_admission_share *own)
{
    hr_error ignored;
    *r->changed = *r->admission->share->recipe;
    hr_config_copy_changes(r->changed, r->config, &r->tried);
    return hr_stages_share(r->machine, r->changed, &r->tried, own, &ignored) == HR_OK;
}

/* Sets r->tried to a stage of *r->changed. */
static bool take_stage(refusing *r, int32_t index)
{
    hr_error ignored;
    return hr_config_at_stage(r->changed, index, &r->tried, &ignored) == HR_OK;
}

static int64_t plan_stage(refusing *r, int32_t index, bool exact)
{
    if (!take_stage(r, index)) return INT64_MAX;
    return hr_admit_minimum(r->machine, &r->tried, exact, r->cache, r->admission);
}

/* Bytes of the stage that needs most in the run as it is, in *r->changed. If they are enough, of
 * any stage: after a change another one may need most. */
static int64_t plan_run(refusing *r, bool exact)
{
    const int32_t worst = r->config->stage.index, count = r->config->stage.count;
    int64_t most = plan_stage(r, worst, exact);
    for (int32_t i = 0; i < count && exact && most <= available_to(r, &r->tried); i++)
        if (i != worst && plan_stage(r, i, false) > most)
            most = hr_max(most, plan_stage(r, i, true));
    return most;
}

/* Bytes of r->tried, as hr_admit_minimum. */
static int64_t plan_tried(refusing *r, bool exact)
{
    hr_admission_share own;
    const hr_admission_share *share = r->admission->share;
    if (!r->changed) return hr_admit_minimum(r->machine, &r->tried, exact, r->cache, r->admission);
    if (!change_run(r, &own)) return INT64_MAX;
    r->admission->share = &own;
    const int64_t bytes = plan_run(r, exact);
    r->admission->share = share;
    return take_stage(r, r->config->stage.index) ? bytes : INT64_MAX;
}

/* Step seconds of the fastest plan of r->tried; below 0: there is none. */
static double fastest_of(refusing *r)
{
    hr_error ignored;
    hr_admission_share own;
    double seconds = -1;
    const hr_admission_share *share = r->admission->share;
    const bool is_run = r->changed != NULL;
    if (is_run && !(change_run(r, &own) && take_stage(r, r->config->stage.index))) return -1;
    if (is_run) r->admission->share = &own;
    const hr_status status = hr_admit_other(r->machine, &r->tried, r->admission, &seconds,
                                            &ignored);
    r->admission->share = share;
    return status == HR_OK ? seconds : -1;
}

/* ---- planning what is tried */

/* Bytes of r->tried, as hr_admit_minimum. What a device has shown is not planned for the next. */
static int64_t minimum_of(refusing *r, const char *what, bool exact)
{
    const int64_t available = available_to(r, &r->tried);
    if (!r->memo) return plan_tried(r, exact);
    if (lacks_format(r)) return INT64_MAX;
    const int32_t i = entry_of(r, what);
    const int64_t low = i < 0 ? 0 : r->memo->known[i].low;
    const int64_t high = i < 0 ? INT64_MAX : r->memo->known[i].high;
    if (high <= available) return high;
    if (low > available) return low;
    if (r->memo->work >= r->work_most) {
        r->cut = true;
        return INT64_MAX;
    }
    const int64_t before = r->admission->work;
    const int64_t bytes = plan_tried(r, false);
    r->memo->work += r->admission->work - before;
    if (i >= 0 && bytes <= available) r->memo->known[i].high = bytes;
    if (i >= 0 && bytes > available) r->memo->known[i].low = hr_max(low, bytes);
    return bytes;
}

/* Keeps the change that needs the least of those that do not fit. */
static void note_least(refusing *r, const offer *made)
{
    if (!r->least || made->change.bytes == INT64_MAX) return;
    const int64_t before = r->least->change.bytes;
    if (!before || made->change.bytes < before) *r->least = *made;
}

/* Plans levers together. Returns whether the recipe fits with them; made->change.bytes are those of
 * the smallest plan, or without `exact` close to them, and INT64_MAX if there is none. */
static bool fits(refusing *r, const pick *picks, int32_t count, bool exact, offer *made)
{
    if (!apply_all(r, picks, count, made)) {
        made->change.bytes = INT64_MAX;
        return false;
    }
    made->change.bytes = minimum_of(r, made->change.what, exact);
    made->change.gained_bytes = r->minimum - made->change.bytes;
    made->change.changes_mathematics = made->rank.loss > HR_LOSS_NOTHING;
    if (made->change.bytes <= available_to(r, &r->tried)) return true;
    note_least(r, made);
    return false;
}

static bool tired(const refusing *r)
{
    return !r->memo && r->admission->work >= r->work_most; /* with a memo, minimum_of limits it */
}

/* ---- the rankings */

static bool cheaper(const offer *a, const hr_plan_change *change, const rank *b)
{
    if (a->rank.loss != b->loss) return a->rank.loss < b->loss;
    if (a->change.seconds_lost != change->seconds_lost)
        return a->change.seconds_lost < change->seconds_lost;
    if (a->rank.kept != b->kept) return a->rank.kept > b->kept;
    return a->change.gained_bytes > change->gained_bytes;
}

static void insert(ranking *list, const offer *made)
{
    int32_t i = list->count;
    if (i == HR_PLAN_CHANGES_MOST) i--;
    if (i < list->count && !cheaper(made, &list->changes[i], &list->ranks[i])) return;
    for (; i > 0 && cheaper(made, &list->changes[i - 1], &list->ranks[i - 1]); i--) {
        list->changes[i] = list->changes[i - 1];
        list->ranks[i] = list->ranks[i - 1];
    }
    list->changes[i] = made->change;
    list->ranks[i] = made->rank;
    list->count = (int32_t)hr_min(list->count + 1, HR_PLAN_CHANGES_MOST);
}

/* Enters a change that fits. Its bytes are found exactly. Returns false if another stage then does
 * not fit. */
static bool offer_fitting(refusing *r, const pick *picks, int32_t count)
{
    offer made;
    const bool enough = fits(r, picks, count, true, &made);
    if (enough) insert(&r->fitting, &made);
    return enough;
}

/* Enters a change that is not enough alone. One that saves nothing is entered only if people expect
 * it to, with the reason. */
static void offer_partial(refusing *r, const hr_lever *lever, offer *made)
{
    if (made->change.bytes == INT64_MAX) return;
    if (made->change.gained_bytes <= 0) {
        if (!lever->why_none) return;
        snprintf(made->change.price, sizeof made->change.price, "%s", lever->why_none);
    }
    insert(&r->partial, made);
}

/* ---- levers alone */

/* Notes a lever whose bytes the limit of work leaves unknown: its key once. */
static void say_untried(refusing *r, int32_t index)
{
    const char *key = r->levers[index].key;
    for (hr_words said = { r->untried.text }; hr_words_next(&said);)
        if (!strcmp(said.text, key)) return;
    hr_put(&r->untried, "%s%s", r->untried.used ? ", " : "", key);
}

/* Tries a lever: offers the gentlest step with which the recipe fits. If the last step is not
 * enough, the lever is `lacking`. That something does not fit is known long before its bytes. */
static void try_lever(refusing *r, int32_t index)
{
    offer made;
    const int32_t steps = hr_lever_steps(&r->levers[index], r->config, r->names);
    r->first[index] = UNKNOWN;
    r->lacking[index] = false;
    if (steps == 0) return;
    if (tired(r)) {
        say_untried(r, index);
        return;
    }
    pick chosen = { index, 1 };
    const bool enough = fits(r, &chosen, 1, false, &made);
    r->first[index] = made.change.bytes;
    if (enough) {
        r->lacking[index] = !offer_fitting(r, &chosen, 1);
        return;
    }
    int32_t low = 2, high = steps;
    chosen.step = steps;
    const bool in_vain = steps == 1 || made.change.gained_bytes <= 0;
    if (in_vain || tired(r) || !fits(r, &chosen, 1, false, &made)) {
        r->lacking[index] = true;
        return;
    }
    while (low < high && !tired(r)) {
        chosen.step = low + (high - low) / 2;
        if (fits(r, &chosen, 1, false, &made)) high = chosen.step;
        else low = chosen.step + 1;
    }
    chosen.step = high;
    r->lacking[index] = !offer_fitting(r, &chosen, 1);
}

/* Plans the first step of a lever that is not enough alone, if it saves as much as is worth a place
 * in a combination, or less. */
static void try_exactly(refusing *r, int32_t index, bool much)
{
    offer made;
    const bool saves_much = r->first[index] < r->minimum - r->minimum / WORTH_PART;
    if (!r->lacking[index] || saves_much != much) return;
    r->lacking[index] = false;
    if (tired(r)) {
        say_untried(r, index);
        return;
    }
    fits(r, &(pick){ index, 1 }, 1, true, &made);
    r->first[index] = made.change.bytes;
    offer_partial(r, &r->levers[index], &made);
}

/* ---- levers together */

/* The pick with the key of a lever; `count`: there is none. */
static int32_t find_key(const refusing *r, const pick *picks, int32_t count, int32_t lever)
{
    int32_t i = 0;
    while (i < count && strcmp(r->levers[picks[i].lever].key, r->levers[lever].key) != 0) i++;
    return i;
}

/* Leaves out what the others make unnecessary, the dearest first. */
static int32_t thin(refusing *r, pick *picks, int32_t count)
{
    offer made;
    for (int32_t i = count - 1; i >= 0 && count > 1 && !tired(r); i--) {
        pick fewer[PICKS_MOST];
        memcpy(fewer, picks, sizeof fewer);
        memmove(&fewer[i], &fewer[i + 1], (size_t)(count - 1 - i) * sizeof *fewer);
        if (!fits(r, fewer, count - 1, false, &made)) continue;
        memcpy(picks, fewer, sizeof fewer);
        count--;
    }
    return count;
}

/* Levers that are combined. */
typedef struct {
    pick picks[PICKS_MOST];
    int32_t count;
    int64_t bytes;   /* with the picks */
    hr_loss dearest; /* only levers that give up less */
    bool rounds;     /* also levers that round, and apply without others */
} combination;

/* Adds a lever, step by step while that saves enough. Returns whether the recipe fits. */
static bool add_lever(refusing *r, combination *c, int32_t lever, int32_t steps)
{
    bool useful = false;
    for (int32_t step = 1; step <= steps && !tired(r); step++) {
        offer made;
        c->picks[c->count] = (pick){ lever, step };
        /* the first lever alone is known, and does not fit */
        const bool known = c->count == 0 && step == 1 && r->first[lever] != UNKNOWN;
        const bool enough = !known && fits(r, c->picks, c->count + 1, true, &made);
        if (known) made.change.bytes = r->first[lever];
        if (enough) {
            c->count++;
            return true;
        }
        if (made.change.bytes >= c->bytes - c->bytes / WORTH_PART) {
            c->picks[c->count].step = step - 1;
            break;
        }
        c->bytes = made.change.bytes;
        useful = true;
    }
    c->count += useful;
    return false;
}

/* Adds levers before `end` that apply only with what was picked, such as the format of frozen
 * weights. Returns whether the recipe fits. */
static bool add_enabled(refusing *r, combination *c, int32_t end)
{
    offer made;
    for (int32_t i = 0; i < end && c->count < PICKS_MOST && !tired(r); i++) {
        if (r->first[i] != UNKNOWN || find_key(r, c->picks, c->count, i) < c->count) continue;
        if (hr_lever_steps(&r->levers[i], r->config, r->names)) continue;
        if (!apply_all(r, c->picks, c->count, &made)) continue;
        if (add_lever(r, c, i, hr_lever_steps(&r->levers[i], &r->tried, r->names))) return true;
    }
    return false;
}

/* Takes a lever in place of a pick with the same key, if that saves enough. Returns whether the
 * recipe fits. */
static bool replace(refusing *r, combination *c, int32_t index, int32_t lever)
{
    const pick before = c->picks[index];
    offer made;
    c->picks[index] = (pick){ lever, 1 };
    if (fits(r, c->picks, c->count, true, &made)) return true;
    if (made.change.bytes < c->bytes - c->bytes / WORTH_PART) c->bytes = made.change.bytes;
    else c->picks[index] = before;
    return false;
}

/* Takes the cheapest levers that save something, step by step, until the recipe fits. The table of
 * levers is in this order. */
static void combine(refusing *r, hr_loss dearest, bool rounds)
{
    combination c = { .bytes = r->minimum, .dearest = dearest, .rounds = rounds };
    for (int32_t i = 0; i < r->lever_count && c.count < PICKS_MOST; i++) {
        const hr_lever *lever = &r->levers[i];
        if (lever->loss >= c.dearest || (lever->loss == HR_LOSS_ROUNDING && !c.rounds)) continue;
        if (r->first[i] == UNKNOWN || r->first[i] >= r->minimum) continue;
        const int32_t before = c.count, same = find_key(r, c.picks, c.count, i);
        bool enough = same < before
                          ? !tired(r) && replace(r, &c, same, i)
                          : add_lever(r, &c, i, hr_lever_steps(lever, r->config, r->names));
        if (!enough && c.count > before) enough = add_enabled(r, &c, i);
        if (!enough) continue;
        c.count = thin(r, c.picks, c.count);
        (void)offer_fitting(r, c.picks, c.count);
        return;
    }
}

/* Combines levers that give up less than any single one that fits. What rounds is taken early and
 * may stand in the way of more: fp32 weights are frozen in fp32. It is then left out. */
static void combine_levers(refusing *r)
{
    for (int32_t rounds = 1; rounds >= 0; rounds--) {
        const hr_loss dearest = r->fitting.count ? r->fitting.ranks[0].loss : HR_LOSS_MODEL + 1;
        if (dearest > (rounds ? HR_LOSS_ROUNDING : HR_LOSS_NOTHING)) combine(r, dearest, rounds);
    }
}

/* ---- time */

/* Sets the time lost by a change that preserves the mathematics, compared with the fastest plan
 * without a budget. A change that is not enough alone is timed without a budget, too. */
static void price(refusing *r, bool enough, offer *made)
{
    const int64_t unlimited = INT64_C(1) << 53;
    made->change.untimed = true;
    if (tired(r)) return;
    if (r->free_seconds < 0) {
        r->tried = *r->config;
        r->tried.memory.budget = unlimited;
        r->free_seconds = fastest_of(r);
    }
    offer same;
    if (r->free_seconds < 0 || !apply_all(r, made->rank.picks, made->rank.count, &same)) return;
    if (!enough) r->tried.memory.budget = unlimited;
    const double seconds = fastest_of(r);
    made->change.untimed = seconds < 0;
    if (seconds >= 0) made->change.seconds_lost = seconds - r->free_seconds;
}

/* Times the changes that preserve the mathematics, which come first, and sorts them by it. */
static void price_all(refusing *r, ranking *list, bool enough)
{
    const int32_t count = list->count;
    offer made;
    for (int32_t i = 0; i < count && list->ranks[i].loss == HR_LOSS_NOTHING; i++) {
        made = (offer){ list->changes[i], list->ranks[i] };
        if (made.change.gained_bytes > 0) price(r, enough, &made);
        list->count = i;
        insert(list, &made);
        list->count = count;
    }
}

/* ---- parts that no strategy reduces */

static void say_alone(int64_t available, hr_plan_part *alone, const char *name, int64_t bytes)
{
    if (bytes <= available || alone->bytes) return;
    hr_writer writer = { alone->name, sizeof alone->name };
    hr_put(&writer, "%s", name);
    writer = (hr_writer){ alone->why, sizeof alone->why };
    hr_put(&writer, "more than available, whatever the strategy");
    alone->bytes = bytes;
}

/* Finds a part that exceeds the available bytes with any strategy: process memory outside the
 * arena, weights, optimizer states. */
static void find_alone(int64_t available, hr_plan_details *details)
{
    static const char *const states[] = { "weights", "master weights (fp32)", "optimizer states" };
    hr_plan_part *alone = &details->alone;
    int64_t lines = 0, state = 0;
    alone->bytes = 0;
    for (int32_t i = 0; i < details->line_count; i++) {
        if (!strcmp(details->lines[i].name, "arena")) continue;
        lines += details->lines[i].bytes;
        say_alone(available, alone, details->lines[i].name, details->lines[i].bytes);
    }
    for (int32_t i = 0; i < details->part_count; i++)
        for (size_t k = 0; k < sizeof states / sizeof *states; k++) {
            if (strcmp(details->parts[i].name, states[k])) continue;
            state += details->parts[i].bytes;
            say_alone(available, alone, states[k], details->parts[i].bytes);
        }
    say_alone(available, alone, "the process without its arena", lines);
    say_alone(available, alone, "weights and optimizer states", state);
    say_alone(available, alone, "weights, optimizer states and the process without its arena",
              lines + state);
}

/* Opens a cache of search results. Without it plans take longer. */
static hr_proxy_cache *open_cache(const hr_admission_machine *machine)
{
    hr_error ignored;
    hr_region region = { 0 };
    hr_proxy_cache *cache = NULL;
    hr_status status = machine->open(machine->context, "search results", hr_proxy_cache_bytes(),
                                     false, &region, &ignored);
    if (status == HR_OK) status = hr_proxy_cache_place(&region, &cache, &ignored);
    return status == HR_OK ? cache : NULL;
}

void hr_refuse(const hr_admission_machine *machine, const hr_config *config,
               hr_admission *admission, hr_plan_details *details)
{
    hr_lever_names names;
    hr_lever_names_of(&admission->compiled.program, &names);
    refusing r = { .machine = machine,
                   .config = config,
                   .admission = admission,
                   .cache = open_cache(machine),
                   .changed = open_changed(machine, admission),
                   .names = &names,
                   .minimum = admission->answer.minimum_bytes,
                   .has_file = admission->has_file,
                   .free_seconds = -1,
                   .work_most = singles_work_most,
                   .fitting.changes = details->changes,
                   .partial.changes = details->partial,
                   .untried = { details->untried, sizeof details->untried } };
    r.levers = hr_levers(&r.lever_count);
    details->untried[0] = 0;
    find_alone(available_to(&r, config), details);
    hr_savings_find(machine, config, admission, details);
    for (int32_t i = 0; i < r.lever_count; i++) try_lever(&r, i);
    for (int32_t i = 0; i < 2 * r.lever_count; i++)
        try_exactly(&r, i % r.lever_count, i < r.lever_count);
    r.work_most = together_work_most;
    combine_levers(&r);
    r.work_most = work_most;
    price_all(&r, &r.fitting, true);
    price_all(&r, &r.partial, false);
    details->change_count = r.fitting.count;
    details->partial_count = r.partial.count;
}

/* ---- one change for each of several devices */

/* Opens the search results of a memo, or forgets those of other machines. */
static void use_cache(const hr_admission_machine *machine, const hr_config *config,
                      hr_refuse_memo *memo)
{
    if (!memo->cache) memo->cache = open_cache(machine);
    else if (memo->cache_tag != tag_of(machine, config)) hr_proxy_cache_clear(memo->cache);
    memo->cache_tag = tag_of(machine, config);
}

/* Plans a change, whose bytes may be a lower bound, if no other is offered. */
static void find_exact(refusing *r, offer *least)
{
    offer same;
    if (r->fitting.count || !least->change.bytes) return;
    if (!apply_all(r, least->rank.picks, least->rank.count, &same)) return;
    const int32_t i = entry_of(r, same.change.what);
    int64_t bytes = i < 0 ? 0 : r->memo->known[i].exact;
    if (!bytes) bytes = plan_tried(r, true);
    if (i >= 0) r->memo->known[i].exact = bytes;
    least->change.bytes = bytes;
}

bool hr_refuse_cheapest(const hr_admission_machine *machine, hr_config *config,
                        hr_admission *admission, hr_refuse_memo *memo, hr_plan_change *change,
                        bool *complete)
{
    hr_lever_names names;
    hr_plan_change fitting[HR_PLAN_CHANGES_MOST];
    offer least = { .change.bytes = 0 };
    hr_lever_names_of(&admission->compiled.program, &names);
    use_cache(machine, config, memo);
    refusing r = { .machine = machine,
                   .config = config,
                   .admission = admission,
                   .cache = memo->cache,
                   .changed = open_changed(machine, admission),
                   .names = &names,
                   .minimum = admission->answer.minimum_bytes,
                   .has_file = admission->has_file,
                   .free_seconds = -1,
                   .work_most = memo->work + (memo_work_most - memo->work) / MEMO_PART,
                   .memo = memo,
                   .least = &least,
                   .fitting.changes = fitting };
    r.levers = hr_levers(&r.lever_count);
    /* Levers are in the order of what they give up: none after the first that fits is cheaper. */
    for (int32_t i = 0; i < r.lever_count; i++) {
        if (r.fitting.count && r.levers[i].loss > r.fitting.ranks[0].loss) break;
        try_lever(&r, i);
    }
    combine_levers(&r);
    if (r.fitting.count > 1 && r.fitting.ranks[1].loss == HR_LOSS_NOTHING)
        price_all(&r, &r.fitting, true);
    *complete = !r.cut;
    find_exact(&r, &least);
    *change = least.change;
    if (!r.fitting.count) return false;
    offer same;
    const rank *first = &r.fitting.ranks[0];
    if (!apply_all(&r, first->picks, first->count, &same)) return false;
    *change = fitting[0];
    *config = r.tried;
    return true;
}
