/* SPDX-License-Identifier: Apache-2.0 */
/* admission/remove.c - changes each setting of a strategy by one step towards fewer bytes.
 *
 * All changes are compared by their floors, which is fast. Only the best few are packed. */
#include "admission/remove.h"

#include <string.h>

#include "base/checked.h"
#include "base/writer.h"
#include "model/layer_schema.h"
#include "report/labels.h"

enum {
    PACKED_MOST = 6,
    WORK_MOST = 400000000, /* of the whole admission; no change is tried beyond it */
    WAY_MICRO = HR_INTERMEDIATES,
    WAY_CHUNK,
    WAY_MLP,
    WAY_ATTENTION,
    WAY_ORDER,
    WAY_CONSUME,
    WAYS /* a way below WAY_MICRO is an index into the parts of the layer schema */
};

typedef struct {
    const hr_admission_machine *machine;
    hr_admission *admission;
    hr_strategy chosen; /* strategy of the admitted plan */
    hr_layer_schema form;
    hr_intermediates *changed; /* [layers] recompute sets of the strategy to try */
    int64_t bytes;             /* process bytes of the plan */
    double seconds;            /* of a step of the plan */
} removing;

/* Half of a tile or chunk, rounded down to a valid number of tokens; 0 if it cannot be smaller. */
static int64_t half(int64_t tokens, int64_t unit)
{
    return tokens / 2 / unit * unit;
}

/* Half of a tile of attention: whole sequences if there are more, then parts of one. */
static int64_t half_attention(const hr_config *config, int64_t tile, int64_t sequences)
{
    const int64_t T = config->train.seq_len, part = hr_strategy_part(config, sequences);
    const int64_t tokens = tile ? tile : sequences * T, whole = half(tokens, T);
    return whole || !part ? whole : half(tokens, part);
}

/* The largest divisor below the number; 1 for 1. */
static int64_t next_divisor(int64_t number)
{
    for (int64_t d = 2; d <= number / d; d++)
        if (number % d == 0) return number / d;
    return 1;
}

/* Adds the intermediates of one buffer to the recompute set of every layer. Returns false if they
 * are in all sets already. */
static bool drop(hr_intermediates part, hr_strategy *strategy)
{
    bool changes = false;
    for (int32_t l = 0; l < strategy->layer_count; l++) {
        changes |= (strategy->recompute_set[l] & part) != part;
        strategy->recompute_set[l] |= part;
    }
    return changes;
}

/* For example "recompute queries, keys, values in every layer". */
static void name_part(hr_writer *writer, hr_intermediates part)
{
    const bool spills = part >> HR_INTERMEDIATE_INPUT & 1;
    const char *before = spills ? "in a file: " : "recompute ";
    for (int32_t i = 1; i < HR_INTERMEDIATES; i++) {
        if (!(part >> i & 1)) continue;
        hr_put(writer, "%s%s", before, hr_label_intermediate((hr_intermediate)i));
        before = ", ";
    }
    hr_put(writer, " in every layer");
}

/* Applies one change to the plan's strategy and describes it. Returns false if nothing changes. */
static bool change(const removing *r, int32_t way, hr_strategy *strategy, char *what)
{
    const hr_config *config = &r->admission->config;
    const int64_t T = config->train.seq_len;
    hr_writer writer = { what, HR_PLAN_NAME_BYTES };
    char digits[HR_COUNT_BYTES];
    *strategy = r->chosen;
    strategy->recompute_set = r->changed;
    memcpy(r->changed, r->chosen.recompute_set, (size_t)r->chosen.layer_count * sizeof *r->changed);
    const int64_t sequences = strategy->micro_batch ? strategy->micro_batch : config->train.batch;
    const int64_t rows = sequences * T, unit = hr_strategy_unit(T, sequences);
    switch (way) {
    case WAY_MICRO:
        strategy->micro_batch = next_divisor(sequences);
        hr_put(&writer, "micro-batch %lld instead of %lld", (long long)strategy->micro_batch,
               (long long)sequences);
        return sequences > 1;
    case WAY_CHUNK:
        strategy->loss_chunk = half(strategy->loss_chunk ? strategy->loss_chunk : rows, unit);
        hr_put(&writer, "loss chunk of %s tokens", hr_count_print(strategy->loss_chunk, digits));
        return strategy->loss_chunk > 0;
    case WAY_MLP:
        strategy->mlp_tile = half(strategy->mlp_tile ? strategy->mlp_tile : rows, unit);
        hr_put(&writer, "MLP tile of %s tokens", hr_count_print(strategy->mlp_tile, digits));
        return strategy->mlp_tile > 0;
    case WAY_ATTENTION:
        strategy->attention_tile = half_attention(config, strategy->attention_tile, sequences);
        hr_put(&writer, "attention tile of %s tokens",
               hr_count_print(strategy->attention_tile, digits));
        return strategy->attention_tile > 0;
    case WAY_ORDER:
        strategy->dw_first = !strategy->dw_first;
        hr_put(&writer, "%s gradients first in backward", strategy->dw_first ? "weight" : "input");
        return true;
    case WAY_CONSUME:
        hr_put(&writer, "gradient release (update during backward)");
        strategy->consume = true;
        return !r->chosen.consume;
    default: name_part(&writer, r->form.parts[way]); return drop(r->form.parts[way], strategy);
    }
}

/* Builds the plan with a change and records its bytes and time. Returns false if there is no such
 * plan or it saves no bytes. */
static bool look(const removing *r, int32_t way, int64_t work, hr_plan_change *found)
{
    hr_strategy strategy;
    hr_error ignored;
    double seconds;
    *found = (hr_plan_change){ .bytes = 0 };
    if (!change(r, way, &strategy, found->what)) return false;
    if (hr_strategy_check(&r->admission->config, &strategy, &ignored) != HR_OK) return false;
    if (hr_admit_strategy(r->machine, &strategy, work, r->admission, &seconds, &ignored) != HR_OK)
        return false;
    found->bytes = r->admission->compiled.plan.process.bytes;
    found->gained_bytes = r->bytes - found->bytes;
    found->seconds_lost = seconds - r->seconds;
    return found->gained_bytes > 0;
}

/* Returns whether the first change costs less time per saved byte. */
static bool cheaper(const hr_plan_change *a, const hr_plan_change *b)
{
    return a->seconds_lost * (double)b->gained_bytes < b->seconds_lost * (double)a->gained_bytes;
}

/* Inserts a change into the sorted list [count], and its way into `ways`. */
static void insert(const hr_plan_change *found, int32_t way, hr_plan_change *list, int32_t *ways,
                   int32_t count)
{
    int32_t i = count;
    for (; i > 0 && cheaper(found, &list[i - 1]); i--) {
        list[i] = list[i - 1];
        ways[i] = ways[i - 1];
    }
    list[i] = *found;
    ways[i] = way;
}

/* Tries all changes. Returns whether it overwrote the admitted plan. */
static bool look_at_all(const removing *r, hr_plan_details *details)
{
    hr_plan_change list[WAYS], found;
    int32_t ways[WAYS], order[WAYS], count = 0;
    if (r->admission->work >= WORK_MOST) return false;
    for (int32_t way = 0; way < WAYS && r->admission->work < WORK_MOST; way++)
        if ((way >= WAY_MICRO || way < r->form.part_count) && look(r, way, 0, &found))
            insert(&found, way, list, ways, count++);
    for (int32_t i = 0;
         i < count && details->removal_count < PACKED_MOST && r->admission->work < WORK_MOST; i++)
        if (look(r, ways[i], HR_COMPILE_PACK_WORK, &found))
            insert(&found, ways[i], details->removals, order, details->removal_count++);
    return true;
}

hr_status hr_remove(const hr_admission_machine *machine, hr_admission *admission,
                    hr_plan_details *details, hr_error *err)
{
    hr_region spare = hr_admit_spare(admission);
    const int32_t layers = admission->compiled.strategy.layer_count;
    const int64_t work = admission->pack_work; /* to rebuild the same plan at the end */
    removing r = { .machine = machine,
                   .admission = admission,
                   .chosen = admission->compiled.strategy,
                   .form = hr_layer_schema_of(&admission->config),
                   .changed = hr_region_take(&spare, layers, sizeof *r.changed),
                   .bytes = admission->compiled.plan.process.bytes,
                   .seconds = admission->answer.step_seconds };
    r.chosen.recompute_set = hr_region_take(&spare, layers, sizeof *r.chosen.recompute_set);
    details->removal_count = 0;
    if (!r.changed || !r.chosen.recompute_set)
        return hr_fail(err, HR_FAILURE, "no memory to try other strategies for %d layers", layers);
    memcpy(r.chosen.recompute_set, admission->compiled.strategy.recompute_set,
           (size_t)layers * sizeof *r.chosen.recompute_set);
    if (!look_at_all(&r, details)) return HR_OK;
    double seconds;
    return hr_admit_strategy(machine, &r.chosen, work, admission, &seconds, err);
}
