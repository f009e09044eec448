/* SPDX-License-Identifier: Apache-2.0 */
/* admission/refuse.c - plans every lever of a recipe, alone and together, and ranks them. */
#include "admission/refuse.h"

#include <stdio.h>
#include <string.h>

#include "admission/changes.h"
#include "admission/format_loss.h"
#include "admission/levers.h"
#include "admission/savings.h"
#include "base/checked.h"
#include "base/words.h"
#include "base/writer.h"

/* Limits of the work of all plans (hr_admission) beyond which none begins: for levers alone; then
 * also for those together and for their time; for all devices of a list. About 2e9 take a second
 * of one core of a 2-core Intel Xeon (model 207). */
static const int64_t singles_work_most = INT64_C(2900000000), work_most = INT64_C(6000000000),
                     memo_work_most = INT64_C(2000000000);

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
    hr_changes changes;
    const hr_config *config;
    const hr_lever *levers;
    const hr_lever_names *names;
    int32_t lever_count;
    int64_t minimum;
    double free_seconds;           /* step of the fastest plan without a budget; below 0: unknown */
    int64_t first[HR_LEVERS_MOST]; /* bytes with it, or UNKNOWN */
    bool lacking[HR_LEVERS_MOST];  /* levers that are not enough alone */
    offer *least;                  /* or null: of those that do not fit */
    ranking fitting, partial;
    hr_writer untried;
} refusing;

/* ---- one change */

/* Adds to a price what other formats of states, or activations in fp16, cost in loss, where that is
 * known. */
static void put_loss(hr_writer *price, const hr_config *before, const hr_config *after)
{
    const hr_format_loss *loss = hr_format_loss_of(after), *now = hr_format_loss_of(before);
    const bool is_same = after->train.state.master == HR_MASTERS_RESIDUAL16 &&
                         before->train.state.master == HR_MASTERS_FP32; /* in two places */
    const bool rounds = after->train.dtype == HR_FORMAT_FP16 &&
                        before->train.dtype != HR_FORMAT_FP16;
    if ((is_same || before->train.state.master == after->train.state.master) &&
        before->train.state.moments == after->train.state.moments && !rounds)
        return;
    char text[HR_FORMAT_LOSS_BYTES];
    if (*hr_format_loss_print(loss, text))
        hr_put(price, ", %s%s", text, now ? " against fp32 states" : "");
    else if (!loss && after->train.state.master != HR_MASTERS_RESIDUAL16)
        hr_put(price, ", its loss was not measured");
}

/* Applies levers and writes them as command-line settings. Returns false if the recipe is not valid
 * with them. */
static bool apply_all(refusing *r, const pick *picks, int32_t count, offer *made)
{
    hr_writer writer = { made->change.what, sizeof made->change.what };
    hr_writer price = { made->change.price, sizeof made->change.price };
    r->changes.tried = *r->config;
    *made = (offer){ .change.untimed = true,
                     .rank = { .count = count, .loss = HR_LOSS_NOTHING, .kept = 1 } };
    memcpy(made->rank.picks, picks, (size_t)count * sizeof *picks);
    for (int32_t i = 0; i < count; i++) {
        char value[HR_LEVER_VALUE_BYTES];
        const hr_lever *lever = &r->levers[picks[i].lever];
        const double kept = hr_lever_apply(lever, r->names, picks[i].step, &r->changes.tried,
                                           value);
        if (kept == 0) return false;
        hr_put(&writer, "%s%s=%s", i ? " " : "", lever->key, value);
        if (*lever->price && !strstr(made->change.price, lever->price))
            hr_put(&price, "%s%s", price.used ? ", " : "", lever->price);
        made->rank.loss = (hr_loss)hr_max(made->rank.loss, lever->loss);
        made->rank.kept *= kept;
    }
    put_loss(&price, r->config, &r->changes.tried);
    return !writer.cut;
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
    made->change.bytes = hr_changes_minimum(&r->changes, made->change.what, exact);
    made->change.gained_bytes = r->minimum - made->change.bytes;
    made->change.changes_mathematics = made->rank.loss > HR_LOSS_NOTHING;
    if (made->change.bytes <= hr_changes_available(&r->changes, &r->changes.tried)) return true;
    note_least(r, made);
    return false;
}

/* Bytes below which no plan with these levers is, found with much less work; INT64_MAX: there
 * is none. */
static int64_t floor_of(refusing *r, const pick *picks, int32_t count)
{
    offer made;
    if (!apply_all(r, picks, count, &made)) return INT64_MAX;
    r->changes.tried.memory.budget = 1; /* far below: no plan is looked for */
    return hr_changes_minimum(&r->changes, made.change.what, false);
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
    if (hr_changes_are_over(&r->changes)) {
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
    if (in_vain || hr_changes_are_over(&r->changes) || !fits(r, &chosen, 1, false, &made)) {
        r->lacking[index] = true;
        return;
    }
    while (low < high && !hr_changes_are_over(&r->changes)) {
        chosen.step = low + (high - low) / 2;
        if (fits(r, &chosen, 1, false, &made)) high = chosen.step;
        else low = chosen.step + 1;
    }
    chosen.step = high;
    r->lacking[index] = !offer_fitting(r, &chosen, 1);
}

/* Plans the first step of a lever that is not enough alone, if it saves much, or less. Where it
 * saves nothing the last one may: a batch of one sequence has no sum of gradients. */
static void try_exactly(refusing *r, int32_t index, bool much)
{
    offer made;
    const hr_lever *lever = &r->levers[index];
    const bool saves_much = r->first[index] < r->minimum - r->minimum / WORTH_PART;
    if (!r->lacking[index] || saves_much != much) return;
    r->lacking[index] = false;
    if (hr_changes_are_over(&r->changes)) {
        say_untried(r, index);
        return;
    }
    fits(r, &(pick){ index, 1 }, 1, true, &made);
    const int32_t last = hr_lever_steps(lever, r->config, r->names);
    if (made.change.gained_bytes <= 0 && last > 1 && !lever->why_none)
        fits(r, &(pick){ index, last }, 1, true, &made);
    r->first[index] = made.change.bytes;
    offer_partial(r, lever, &made);
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
    for (int32_t i = count - 1; i >= 0 && count > 1 && !hr_changes_are_over(&r->changes); i--) {
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
    int64_t floor;   /* with the picks */
    hr_loss dearest; /* only levers that give up less */
    bool rounds;     /* also levers that round, and apply without others */
} combination;

/* Whether the recipe fits with the first picks, whose floor is written. */
static bool fits_combined(refusing *r, const combination *c, int32_t count, int64_t *floor)
{
    offer made;
    *floor = floor_of(r, c->picks, count);
    return *floor <= hr_changes_available(&r->changes, r->config) &&
           !hr_changes_are_over(&r->changes) && fits(r, c->picks, count, false, &made);
}

/* Adds a lever, step by step while that saves enough; where the first step does not, the last one
 * may. Returns whether the recipe fits. */
static bool add_lever(refusing *r, combination *c, int32_t lever, int32_t steps)
{
    const int32_t before = c->count;
    int32_t step = 1;
    while (step <= steps && !hr_changes_are_over(&r->changes)) {
        const pick last = c->picks[before];
        int64_t floor;
        c->picks[before] = (pick){ lever, step };
        if (fits_combined(r, c, before + 1, &floor)) {
            c->count = before + 1;
            return true;
        }
        if (floor < c->floor - c->floor / WORTH_PART) {
            c->floor = floor;
            c->count = before + 1;
            step++;
        } else if (step == 1 && steps > 1) {
            step = steps;
        } else {
            c->picks[before] = last;
            break;
        }
    }
    return false;
}

/* Adds levers before `end` that apply only with what was picked, such as the format of frozen
 * weights. Returns whether the recipe fits. */
static bool add_enabled(refusing *r, combination *c, int32_t end)
{
    offer made;
    for (int32_t i = 0; i < end && c->count < PICKS_MOST && !hr_changes_are_over(&r->changes);
         i++) {
        if (r->first[i] != UNKNOWN || find_key(r, c->picks, c->count, i) < c->count) continue;
        if (hr_lever_steps(&r->levers[i], r->config, r->names)) continue;
        if (!apply_all(r, c->picks, c->count, &made)) continue;
        if (add_lever(r, c, i, hr_lever_steps(&r->levers[i], &r->changes.tried, r->names)))
            return true;
    }
    return false;
}

/* Takes a lever in place of a pick with the same key, if that saves enough. Returns whether the
 * recipe fits. */
static bool replace(refusing *r, combination *c, int32_t index, int32_t lever)
{
    const pick before = c->picks[index];
    int64_t floor;
    c->picks[index] = (pick){ lever, 1 };
    if (fits_combined(r, c, c->count, &floor)) return true;
    if (floor < c->floor - c->floor / WORTH_PART) c->floor = floor;
    else c->picks[index] = before;
    return false;
}

/* Takes the cheapest levers that lower the floor, step by step, until the recipe fits. The table of
 * levers is in this order. */
static void combine(refusing *r, hr_loss dearest, bool rounds)
{
    combination c = { .floor = floor_of(r, NULL, 0), .dearest = dearest, .rounds = rounds };
    for (int32_t i = 0; i < r->lever_count && c.count < PICKS_MOST; i++) {
        const hr_lever *lever = &r->levers[i];
        if (lever->loss >= c.dearest || (lever->loss == HR_LOSS_ROUNDING && !c.rounds)) continue;
        const int32_t before = c.count, same = find_key(r, c.picks, c.count, i);
        const int32_t steps = hr_lever_steps(lever, r->config, r->names);
        if (steps == 0) continue;
        bool enough = same < before ? !hr_changes_are_over(&r->changes) && replace(r, &c, same, i)
                                    : add_lever(r, &c, i, steps);
        if (!enough && c.count > before) enough = add_enabled(r, &c, i);
        if (!enough) continue;
        c.count = thin(r, c.picks, c.count);
        (void)offer_fitting(r, c.picks, c.count);
        return;
    }
}

/* Combines levers that give up less than any single one that fits: first without what rounds, which
 * may stand in the way of more (fp32 weights are frozen in fp32), then also with it. */
static void combine_levers(refusing *r)
{
    for (int32_t rounds = 0; rounds <= 1; rounds++) {
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
    if (hr_changes_are_over(&r->changes)) return;
    if (r->free_seconds < 0) {
        r->changes.tried = *r->config;
        r->changes.tried.memory.budget = unlimited;
        r->free_seconds = hr_changes_seconds(&r->changes);
    }
    offer same;
    if (r->free_seconds < 0 || !apply_all(r, made->rank.picks, made->rank.count, &same)) return;
    if (!enough) r->changes.tried.memory.budget = unlimited;
    const double seconds = hr_changes_seconds(&r->changes);
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

/* A refusal whose changes that fit go to a list. */
static void open_refusing(const hr_admission_machine *machine, const hr_config *config,
                          hr_admission *admission, hr_change_memo *memo, hr_lever_names *names,
                          hr_plan_change *fitting, refusing *r)
{
    hr_lever_names_of(&admission->compiled.program, names);
    *r = (refusing){ .config = config,
                     .names = names,
                     .minimum = admission->answer.minimum_bytes,
                     .free_seconds = -1,
                     .fitting.changes = fitting };
    hr_changes_open(machine, config, admission, memo, &r->changes);
    r->levers = hr_levers(&r->lever_count);
}

void hr_refuse(const hr_admission_machine *machine, const hr_config *config,
               hr_admission *admission, hr_plan_details *details)
{
    refusing r;
    hr_lever_names names;
    open_refusing(machine, config, admission, NULL, &names, details->changes, &r);
    r.partial.changes = details->partial;
    r.untried = (hr_writer){ details->untried, sizeof details->untried };
    details->untried[0] = 0;
    find_alone(hr_changes_available(&r.changes, config), details);
    hr_savings_find(machine, config, admission, details);
    r.changes.work_most = singles_work_most;
    for (int32_t i = 0; i < r.lever_count; i++) try_lever(&r, i);
    for (int32_t i = 0; i < 2 * r.lever_count; i++)
        try_exactly(&r, i % r.lever_count, i < r.lever_count);
    r.changes.work_most = work_most;
    combine_levers(&r);
    price_all(&r, &r.fitting, true);
    price_all(&r, &r.partial, false);
    details->change_count = r.fitting.count;
    details->partial_count = r.partial.count;
}

/* ---- one change for each of several devices */

/* Plans a change, whose bytes may be a lower bound, if no other is offered. */
static void find_exact(refusing *r, offer *least)
{
    offer same;
    if (r->fitting.count || !least->change.bytes) return;
    if (!apply_all(r, least->rank.picks, least->rank.count, &same)) return;
    least->change.bytes = hr_changes_exact(&r->changes, same.change.what);
}

bool hr_refuse_cheapest(const hr_admission_machine *machine, hr_config *config,
                        hr_admission *admission, hr_change_memo *memo, hr_plan_change *change,
                        bool *complete)
{
    refusing r;
    hr_lever_names names;
    hr_plan_change fitting[HR_PLAN_CHANGES_MOST];
    offer least = { .change.bytes = 0 };
    open_refusing(machine, config, admission, memo, &names, fitting, &r);
    r.least = &least;
    r.changes.work_most = memo->work + (memo_work_most - memo->work) / MEMO_PART;
    /* Levers are in the order of what they give up: none after the first that fits is cheaper. */
    for (int32_t i = 0; i < r.lever_count; i++) {
        if (r.fitting.count && r.levers[i].loss > r.fitting.ranks[0].loss) break;
        try_lever(&r, i);
    }
    combine_levers(&r);
    if (r.fitting.count > 1 && r.fitting.ranks[1].loss == HR_LOSS_NOTHING)
        price_all(&r, &r.fitting, true);
    *complete = !r.changes.cut;
    find_exact(&r, &least);
    *change = least.change;
    if (!r.fitting.count) return false;
    offer same;
    const rank *first = &r.fitting.ranks[0];
    if (!apply_all(&r, first->picks, first->count, &same)) return false;
    *change = fitting[0];
    *config = r.changes.tried;
    return true;
}
