/* SPDX-License-Identifier: Apache-2.0 */
/* admission/savings.c - takes one choice at a time back from a strategy, then all of them. */
#include "admission/savings.h"

#include <string.h>

#include "base/checked.h"
#include "base/writer.h"
#include "plan/strips.h"
#include "report/shape.h"

enum { MICRO_BATCH, LOSS_CHUNK, MLP_TILE, ATTENTION_TILE, RECOMPUTE, RELEASE, CHOICES };
_Static_assert((int)CHOICES <= (int)HR_PLAN_USED_MOST, "each choice has its line");

typedef struct {
    const hr_admission_machine *machine;
    const hr_config *recipe; /* as written: what it leaves open is the planner's choice */
    hr_admission *admission;
    hr_strategy chosen;
    int64_t strip_bytes;       /* the largest strip of a gradient */
    hr_intermediates *changed; /* [layers] of the strategy to build */
} taking;

static bool recomputes(const hr_strategy *strategy)
{
    for (int32_t l = 0; l < strategy->layer_count; l++)
        if (strategy->recompute_set[l]) return true;
    return false;
}

/* Writes what a strategy does. Returns false if it does not. */
static bool describe(const taking *t, int32_t choice, hr_writer *writer)
{
    const hr_strategy *s = &t->chosen;
    const hr_config *config = &t->admission->config;
    const int64_t sequences = s->micro_batch ? s->micro_batch : config->train.batch;
    const int64_t tokens = sequences * config->train.seq_len;
    char part[HR_COUNT_BYTES], all[HR_COUNT_BYTES];
    const struct {
        const char *name, *unit;
        int64_t value, whole;
    } cuts[] = { [MICRO_BATCH] = { "micro-batch", "sequences", s->micro_batch,
                                   config->train.batch },
                 [LOSS_CHUNK] = { "loss chunk", "tokens", s->loss_chunk, tokens },
                 [MLP_TILE] = { "MLP tile", "tokens", s->mlp_tile, tokens },
                 [ATTENTION_TILE] = { "attention tile", "tokens", s->attention_tile, tokens } };
    if (choice == RECOMPUTE) hr_put(writer, "recompute");
    if (choice == RECOMPUTE) return recomputes(s);
    if (choice == RELEASE) hr_put(writer, "gradient release");
    if (choice == RELEASE && t->strip_bytes)
        hr_put(writer, ", strips of up to %s", hr_size_print(t->strip_bytes, part));
    if (choice == RELEASE) return s->consume;
    hr_put(writer, "%s: %s of %s %s", cuts[choice].name, hr_count_print(cuts[choice].value, part),
           hr_count_print(cuts[choice].whole, all), cuts[choice].unit);
    return cuts[choice].value > 0;
}

/* Whether the recipe makes a choice: it is then not taken back. */
static bool is_pinned(const taking *t, int32_t choice)
{
    const hr_config *config = t->recipe;
    if (choice == MICRO_BATCH) return config->memory.micro_batch > 0;
    if (choice == LOSS_CHUNK) return config->memory.loss_chunk > 0;
    return choice == RECOMPUTE && config->memory.recompute != HR_RECOMPUTE_AUTO;
}

static void take_back(const taking *t, int32_t choice, hr_strategy *strategy)
{
    if (is_pinned(t, choice)) return;
    int64_t *const cuts[] = { [MICRO_BATCH] = &strategy->micro_batch,
                              [LOSS_CHUNK] = &strategy->loss_chunk,
                              [MLP_TILE] = &strategy->mlp_tile,
                              [ATTENTION_TILE] = &strategy->attention_tile };
    if (choice < RECOMPUTE) *cuts[choice] = 0;
    else if (choice == RELEASE) strategy->consume = false;
    else memset(t->changed, 0, (size_t)t->chosen.layer_count * sizeof *t->changed);
}

/* A copy of the strategy that may be changed. */
static hr_strategy copy_of(const taking *t)
{
    hr_strategy strategy = t->chosen;
    strategy.recompute_set = t->changed;
    strategy.reorder = false;
    memcpy(t->changed, t->chosen.recompute_set, (size_t)t->chosen.layer_count * sizeof *t->changed);
    return strategy;
}

/* Beyond this work of the admission (some hundred layers) no single choice is taken back. */
enum { WORK_MOST = 500000000 };

/* Process bytes with another strategy; 0: it is not legal for the recipe. */
static int64_t bytes_with(const taking *t, hr_strategy *strategy)
{
    hr_error ignored;
    double seconds;
    hr_admission *a = t->admission;
    hr_strategy_canonical(&a->config, strategy);
    if (hr_strategy_check(&a->config, strategy, &ignored) != HR_OK) return 0;
    if (hr_admit_strategy(t->machine, strategy, 0, a, &seconds, &ignored) != HR_OK) return 0;
    return a->compiled.plan.process.bytes;
}

void hr_savings_find(const hr_admission_machine *machine, const hr_config *recipe,
                     hr_admission *admission, hr_plan_details *details)
{
    hr_region spare = hr_admit_spare(admission);
    const int64_t layers = admission->compiled.strategy.layer_count,
                  minimum = admission->answer.minimum_bytes;
    taking t = { .machine = machine,
                 .recipe = recipe,
                 .admission = admission,
                 .chosen = admission->compiled.strategy,
                 .strip_bytes = hr_strips_largest(&admission->compiled.program),
                 .changed = hr_region_take(&spare, layers, sizeof *t.changed) };
    hr_intermediates *kept = hr_region_take(&spare, layers, sizeof *kept);
    details->used_count = 0;
    details->whole_bytes = details->whole_largest.bytes = 0;
    if (!t.changed || !kept) return;
    memcpy(kept, t.chosen.recompute_set, (size_t)layers * sizeof *kept);
    t.chosen.recompute_set = kept;
    for (int32_t choice = 0; choice < CHOICES && admission->work < WORK_MOST; choice++) {
        hr_plan_part part = { .bytes = 0 };
        hr_writer writer = { part.name, sizeof part.name };
        if (!describe(&t, choice, &writer)) continue;
        hr_strategy strategy = copy_of(&t);
        take_back(&t, choice, &strategy);
        part.bytes = bytes_with(&t, &strategy) - minimum;
        if (part.bytes > 0) details->used[details->used_count++] = part;
    }
    hr_strategy whole = copy_of(&t);
    for (int32_t choice = 0; choice < CHOICES; choice++) take_back(&t, choice, &whole);
    details->whole_bytes = bytes_with(&t, &whole);
    if (details->whole_bytes)
        hr_shape_largest(&admission->config, &admission->compiled, &details->whole_largest);
}
