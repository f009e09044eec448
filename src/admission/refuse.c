/* SPDX-License-Identifier: Apache-2.0 */
/* admission/refuse.c - tries changes of one key, then of two, and keeps the cheapest that fit. */
#include "admission/refuse.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/writer.h"
#include "plan/account.h"

enum { HALVINGS_MOST = 30, PAIRS_MOST = 3 };

/* Limits: plans for changes of one key, all plans, and the work of all plans (hr_admission). Work
 * is counted and not timed, so that equal recipes get equal answers. */
enum { SINGLES_MOST = 30, PLANS_MOST = 42, WORK_MOST = 1000000000 };

/* What a change costs besides time, cheapest first. */
typedef enum { NOTHING, ROUNDING, UPDATES, WINDOWS, WORDS, MODEL } loss;

/* One change: a key is set to a value, or halved as often as needed, down to `least`. */
typedef struct {
    const char *key;
    const char *value; /* null: halve */
    int64_t least;
    loss loss;
    const char *price;
} way;

static const way ways[] = {
    { "memory.strategy", "", 0, NOTHING, "" },
    { "memory.micro_batch", "auto", 0, NOTHING, "" },
    { "memory.loss_chunk", "auto", 0, NOTHING, "" },
    { "memory.recompute", "auto", 0, NOTHING, "" },
    { "train.threads", "1", 0, NOTHING, "" },
    { "memory.moments", "file", 0, NOTHING, "optimizer moments in a file" },
    { "train.sample_tokens", "none", 0, NOTHING, "no generated samples" },
    { "data.words_max", NULL, 65536, NOTHING, "texts with more distinct words are refused" },
    { "train.dtype", "bf16", 0, ROUNDING, "weights and activations in bf16" },
    { "train.optimizer.kind", "sgd", 0, UPDATES, "another optimizer" },
    { "train.batch", NULL, 1, UPDATES, "smaller global batch" },
    { "train.seq_len", NULL, 16, WINDOWS, "shorter sequences" },
    { "model.vocab_size", NULL, 256, WORDS, "smaller vocabulary" },
    { "model.n_layers", NULL, 1, MODEL, "smaller model" },
    { "model.d_ff", NULL, 16, MODEL, "smaller model" },
    { "model.d_model", NULL, 16, MODEL, "smaller model" },
};
enum { WAYS = sizeof ways / sizeof *ways };

/* A change that fits, with its sort keys. */
typedef struct {
    hr_plan_change change;
    loss loss;
    double kept; /* share of tokens, vocabulary or width that remains after the change */
} offer;

typedef struct {
    const hr_admission_machine *machine;
    const hr_config *config;
    hr_admission *admission;
    int64_t available, minimum;
    double free_seconds; /* step of the fastest plan without a budget; below 0: unknown */
    int32_t plans, plans_most;
    int64_t reached[WAYS]; /* least bytes with each change alone; INT64_MAX: no such change */
    hr_config tried;
    offer offers[HR_PLAN_CHANGES_MOST];
    int32_t count;
} refusing;

/* ---- one change */

/* The value of a key after a number of halvings, or down to its least value. Returns false if the
 * key has that value already. */
static bool value_of(const hr_config *config, const way *w, int32_t halvings, char value[64],
                     double *kept)
{
    hr_error ignored;
    char before[HR_PATH_BYTES];
    long long number = 0;
    if (hr_config_get(config, w->key, before, sizeof before, &ignored) != HR_OK) return false;
    *kept = 1;
    if (w->value) {
        snprintf(value, 64, "%s", w->value);
        return strcmp(before, value) != 0;
    }
    if (sscanf(before, "%lld", &number) != 1) return false;
    while (halvings > 0 && number >> halvings < w->least) halvings--;
    const long long smaller = number >> halvings;
    *kept = (double)smaller / (double)number;
    snprintf(value, 64, "%lld", smaller);
    return smaller < number;
}

static bool apply(const way *w, int32_t halvings, hr_config *config, double *kept)
{
    hr_error ignored;
    char value[64];
    return value_of(config, w, halvings, value, kept) &&
           hr_config_set(config, w->key, value, &ignored) == HR_OK;
}

/* Applies one or two changes, each with the same number of halvings. Writes them as command-line
 * settings. */
static bool apply_all(const way *const *chosen, int32_t count, int32_t halvings, hr_config *config,
                      offer *made)
{
    hr_writer writer = { made->change.what, sizeof made->change.what };
    hr_writer price = { made->change.price, sizeof made->change.price };
    hr_error ignored;
    made->kept = 1;
    for (int32_t i = 0; i < count; i++) {
        char value[64];
        double kept;
        if (config->model.from[0] && !strncmp(chosen[i]->key, "model.", 6)) return false;
        if (!value_of(config, chosen[i], halvings, value, &kept)) return false;
        if (!apply(chosen[i], halvings, config, &kept)) return false;
        hr_put(&writer, "%s%s=%s", i ? " " : "", chosen[i]->key, *value ? value : "\"\"");
        if (*chosen[i]->price && !strstr(made->change.price, chosen[i]->price))
            hr_put(&price, "%s%s", price.used ? ", " : "", chosen[i]->price);
        made->loss = (loss)hr_max(made->loss, chosen[i]->loss);
        made->kept *= kept;
    }
    return hr_config_check(config, &ignored) == HR_OK;
}

/* Bytes that the process of a recipe may use. */
static int64_t available_to(const refusing *r, const hr_config *config)
{
    return hr_account_process(
        config->memory.budget, r->machine->process.page_bytes, r->admission->answer.available_bytes,
        r->admission->compiled.plan.threads, config->memory.moments == HR_PLACE_FILE);
}

/* Returns whether the recipe fits with these changes. */
static bool fits(refusing *r, const way *const *chosen, int32_t count, int32_t halvings,
                 offer *made)
{
    r->tried = *r->config;
    *made = (offer){ .loss = NOTHING };
    made->change.bytes = INT64_MAX;
    if (!apply_all(chosen, count, halvings, &r->tried, made)) return false;
    r->plans++;
    made->change.bytes = hr_admit_minimum(r->machine, &r->tried, false, r->admission);
    made->change.gained_bytes = r->minimum - made->change.bytes;
    made->change.changes_mathematics = made->loss > NOTHING;
    return made->change.bytes <= available_to(r, &r->tried);
}

static bool tired(const refusing *r)
{
    return r->plans >= r->plans_most || r->admission->work >= WORK_MOST;
}

/* ---- the offers */

static bool cheaper(const offer *a, const offer *b)
{
    if (a->loss != b->loss) return a->loss < b->loss;
    if (a->change.seconds_lost != b->change.seconds_lost)
        return a->change.seconds_lost < b->change.seconds_lost;
    if (a->kept != b->kept) return a->kept > b->kept;
    return a->change.gained_bytes > b->change.gained_bytes;
}

static void insert(refusing *r, const offer *made)
{
    int32_t i = r->count;
    if (i == HR_PLAN_CHANGES_MOST && !cheaper(made, &r->offers[i - 1])) return;
    i = (int32_t)hr_min(i, HR_PLAN_CHANGES_MOST - 1);
    for (; i > 0 && cheaper(made, &r->offers[i - 1]); i--) r->offers[i] = r->offers[i - 1];
    r->offers[i] = *made;
    r->count = (int32_t)hr_min(r->count + 1, HR_PLAN_CHANGES_MOST);
}

/* Sets the time lost by a change that preserves the mathematics, compared with the fastest plan
 * without a budget. */
static void price(refusing *r, offer *made)
{
    hr_error ignored;
    hr_plan_answer answer;
    if (made->change.changes_mathematics) return;
    if (hr_admit_other(r->machine, &r->tried, r->admission, &answer, &ignored) != HR_OK) return;
    made->change.seconds_lost = answer.step_seconds;
    if (r->free_seconds < 0) {
        r->tried = *r->config;
        r->tried.memory.budget = INT64_C(1) << 53;
        if (hr_admit_other(r->machine, &r->tried, r->admission, &answer, &ignored) == HR_OK)
            r->free_seconds = answer.step_seconds;
    }
    made->change.seconds_lost -= r->free_seconds;
}

/* The largest number of halvings that still changes a value and leaves a valid recipe; 0 if none
 * does. At most 1 if no change halves a value. */
static int32_t halvings_most(refusing *r, const way *const *chosen, int32_t count)
{
    bool halves = false;
    for (int32_t i = 0; i < count; i++) halves |= !chosen[i]->value;
    for (int32_t most = halves ? HALVINGS_MOST : 1; most > 0; most--) {
        offer ignored = { .loss = NOTHING };
        r->tried = *r->config;
        if (!apply_all(chosen, count, most, &r->tried, &ignored)) continue;
        /* Removes halvings that change nothing because every value is at its least. */
        for (const double kept = ignored.kept; halves && most > 1; most--) {
            r->tried = *r->config;
            ignored = (offer){ .loss = NOTHING };
            if (!apply_all(chosen, count, most - 1, &r->tried, &ignored)) break;
            if (ignored.kept > kept) break;
        }
        return most;
    }
    return 0;
}

/* Offers the fewest halvings with which the recipe fits, if any number is enough. Returns the bytes
 * with the most halvings tried; INT64_MAX if there is no such change. */
static int64_t find(refusing *r, const way *const *chosen, int32_t count)
{
    offer made, best;
    int32_t most = halvings_most(r, chosen, count);
    if (most == 0 || tired(r)) return INT64_MAX;
    /* One halving is often enough. If the largest number is not enough, none is. */
    int32_t low = 1;
    if (most > 1 && fits(r, chosen, count, 1, &best)) most = 1;
    else if (tired(r) || !fits(r, chosen, count, most, &best)) return best.change.bytes;
    else low = (int32_t)hr_min(2, most);
    const int64_t least = best.change.bytes;
    while (low < most && !tired(r)) {
        const int32_t middle = (low + most) / 2;
        if (fits(r, chosen, count, middle, &made)) {
            best = made;
            most = middle;
        } else low = middle + 1;
    }
    r->tried = *r->config;
    made = (offer){ .loss = NOTHING };
    if (!apply_all(chosen, count, most, &r->tried, &made)) return least;
    best.change.bytes = hr_admit_minimum(r->machine, &r->tried, true, r->admission);
    best.change.gained_bytes = r->minimum - best.change.bytes;
    price(r, &best);
    insert(r, &best);
    return least;
}

static bool promises(const refusing *r, int32_t i, int32_t j)
{
    if (r->reached[i] == INT64_MAX || r->reached[j] == INT64_MAX) return false;
    const int64_t gained = 2 * r->minimum - r->reached[i] - r->reached[j];
    return r->reached[i] < r->minimum && r->reached[j] < r->minimum &&
           r->minimum - gained <= r->available;
}

static void find_pairs(refusing *r)
{
    for (int32_t sum = 1; sum < 2 * WAYS && r->count < PAIRS_MOST; sum++)
        for (int32_t j = sum / 2 + 1; j <= sum && j < WAYS && r->count < PAIRS_MOST; j++) {
            const way *const pair[] = { &ways[sum - j], &ways[j] };
            if (promises(r, sum - j, j) && !tired(r)) (void)find(r, pair, 2);
        }
}

/* ---- parts that no strategy reduces */

static void say_alone(refusing *r, hr_plan_part *alone, const char *name, int64_t bytes)
{
    if (bytes <= r->available || alone->bytes) return;
    hr_writer writer = { alone->name, sizeof alone->name };
    hr_put(&writer, "%s", name);
    writer = (hr_writer){ alone->why, sizeof alone->why };
    hr_put(&writer, "more than available, whatever the strategy");
    alone->bytes = bytes;
}

/* Finds a part that exceeds the available bytes with any strategy: process memory outside the
 * arena, weights, optimizer states. */
static void find_alone(refusing *r, hr_plan_details *details)
{
    static const char *const states[] = { "weights", "master weights (fp32)", "optimizer states" };
    int64_t lines = 0, state = 0;
    details->alone = (hr_plan_part){ .bytes = 0 };
    for (int32_t i = 0; i < details->line_count; i++) {
        if (!strcmp(details->lines[i].name, "arena")) continue;
        lines += details->lines[i].bytes;
        say_alone(r, &details->alone, details->lines[i].name, details->lines[i].bytes);
    }
    for (int32_t i = 0; i < details->part_count; i++)
        for (size_t k = 0; k < sizeof states / sizeof *states; k++) {
            if (strcmp(details->parts[i].name, states[k])) continue;
            state += details->parts[i].bytes;
            say_alone(r, &details->alone, states[k], details->parts[i].bytes);
        }
    say_alone(r, &details->alone, "the process without its arena", lines);
    say_alone(r, &details->alone, "weights and optimizer states", state);
    say_alone(r, &details->alone, "weights, optimizer states and the process without its arena",
              lines + state);
}

void hr_refuse(const hr_admission_machine *machine, const hr_config *config,
               hr_admission *admission, hr_plan_details *details)
{
    const hr_plan_answer *answer = &admission->answer;
    refusing r = { .machine = machine,
                   .config = config,
                   .admission = admission,
                   .minimum = answer->minimum_bytes,
                   .free_seconds = -1,
                   .plans_most = SINGLES_MOST };
    r.available = available_to(&r, config);
    find_alone(&r, details);
    for (int32_t i = 0; i < WAYS; i++) {
        const way *const one[] = { &ways[i] };
        r.reached[i] = find(&r, one, 1);
    }
    r.plans_most = PLANS_MOST;
    if (!r.count) find_pairs(&r);
    for (int32_t i = 0; i < r.count; i++) details->changes[i] = r.offers[i].change;
    details->change_count = r.count;
}
