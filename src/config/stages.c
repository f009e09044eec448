/* SPDX-License-Identifier: Apache-2.0 */
/* config/stages.c - reads train.stages: the parts of a run that set keys of their own. */
#include "headroom/stages.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/writer.h"
#include "config/config_keys.h"
#include "headroom/foreign.h"

enum { NAME_BYTES = 64, OTHER_BYTES = HR_PATH_BYTES };

/* What a stage may set, by the name that it has there. The others say where the stage is. */
static const struct {
    const char *name, *key;
} keys[] = {
    { "at_step", NULL },
    { "at_tokens", NULL },
    { "seq_len", "train.seq_len" },
    { "batch", "train.batch" },
    { "micro_batch", "memory.micro_batch" },
    { "lr_scale", NULL },
    { "warmup_steps", NULL },
    { "clip", "train.optimizer.clip" },
    { "dropout", "model.dropout" },
    { "attention", "model.attention.pattern" },
    { "attention.window", "model.attention.window" },
    { "attention.stride", "model.attention.stride" },
    { "attention.block", "model.attention.block" },
    { "attention.sliding_window", "model.attention.sliding_window" },
    { "freeze", "train.freeze" },
    { "data", "data.train" },
};
enum { KEYS = sizeof keys / sizeof *keys };
_Static_assert(KEYS <= 32, "a config has a bit for each");

/* A word "name=value" of a stage. A value with blanks is in quotes. */
typedef struct {
    const char *at; /* text after the word */
    char name[NAME_BYTES], value[OTHER_BYTES];
} word;

static hr_status fail_in(int32_t index, hr_error *err, const hr_error *why)
{
    return hr_fail(err, HR_USAGE, "train.stages, stage %d: %.600s", index + 1, why->message);
}

/* Whether a value is a range: "8..2048 over 140000 steps by doubling". */
static bool is_range(const char *value)
{
    const size_t digits = strspn(value, "0123456789");
    return digits && !strncmp(value + digits, "..", 2);
}

/* The text of a value: quoted, a range up to the end of the stage, or without blanks. */
static bool read_value(word *w)
{
    const bool quoted = *w->at == '"' || *w->at == '\'';
    const char quote[2] = { *w->at, '\0' };
    const bool counts = !strcmp(w->name, "seq_len") || !strcmp(w->name, "batch");
    const char *ends = quoted ? quote : counts && is_range(w->at) ? ";" : " \t;";
    const size_t length = strcspn(w->at + quoted, ends);
    if (quoted && !w->at[1 + length]) return false;
    if (length >= sizeof w->value) return false;
    snprintf(w->value, sizeof w->value, "%.*s", (int)length, w->at + quoted);
    w->at += length + 2 * (size_t)quoted;
    return true;
}

/* Reads the next word of a stage. `more` out: false at its end. */
static hr_status next_word(word *w, bool *more, hr_error *err)
{
    w->at += strspn(w->at, " \t");
    *more = *w->at && *w->at != ';';
    if (!*more) return HR_OK;
    const size_t length = strcspn(w->at, "=: \t;");
    const char *begun = w->at;
    w->at += length + strspn(w->at + length, " \t");
    if (length == 0 || length >= sizeof w->name || (*w->at != '=' && *w->at != ':'))
        return hr_fail(err, HR_USAGE, "\"%.40s\" is not a key with a value, such as seq_len=512",
                       begun);
    snprintf(w->name, sizeof w->name, "%.*s", (int)length, begun);
    w->at += 1 + strspn(w->at + 1, " \t");
    if (read_value(w)) return HR_OK;
    return hr_fail(err, HR_USAGE, "%s has a value without an end, or of more than %d bytes",
                   w->name, OTHER_BYTES - 1);
}

static hr_status fail_name(const char *name, hr_error *err)
{
    char all[512] = "", advice[HR_ADVICE_BYTES];
    const char *nearest = NULL, *known = hr_config_name(name);
    int32_t least = INT32_MAX;
    hr_writer writer = { all, sizeof all };
    if (!strcmp(name, "step") || !strcmp(name, "steps") || !strcmp(name, "start"))
        return hr_fail(err, HR_USAGE,
                       "\"%s\" is not a key of a stage; use at_step: a stage lasts until the next "
                       "one begins",
                       name);
    for (int32_t i = 0; i < KEYS; i++) {
        const int32_t cost = hr_word_cost(name, keys[i].name);
        const bool same = known && keys[i].key && !strcmp(known, keys[i].key);
        if (same || cost < least) nearest = keys[i].name;
        if (same || cost < least) least = same ? -1 : cost;
        hr_put(&writer, "%s%s", i ? ", " : "", keys[i].name);
    }
    if (nearest)
        return hr_fail(err, HR_USAGE, "\"%.60s\" is not a key of a stage; use %s", name, nearest);
    if (hr_config_advise(name, NULL, advice))
        return hr_fail(err, HR_USAGE, "\"%.60s\" is not a key of a stage; %.*s", name,
                       (int)strcspn(advice, ":"), advice);
    return hr_fail(err, HR_USAGE, "\"%.60s\" is not a key of a stage; it may set %s", name, all);
}

static int32_t find_key(const char *name)
{
    for (int32_t i = 0; i < KEYS; i++)
        if (!strcmp(keys[i].name, name)) return i;
    return -1;
}

/* ---- the short form: "seq_len: 8..2048 over 140000 steps by doubling" */

#define MOST (INT64_C(1) << 40)

typedef struct {
    int64_t first, last, over, step; /* step 0: doubling */
    bool in_tokens, keeps_tokens;
} range;

static bool read_range(const char *text, range *r)
{
    char unit[8], by[16], keeps[16] = "", tokens[16] = "";
    long long first, last, over;
    int64_t step = 0;
    int end = 0;
    if (sscanf(text, "%lld..%lld over %lld %7s by %15s%n", &first, &last, &over, unit, by, &end) <
        5)
        return false;
    const char *rest = text + end + strspn(text + end, " ");
    int read = 0;
    if (*rest && (sscanf(rest, "%15s %15s %n", keeps, tokens, &read) != 2 || rest[read] ||
                  strcmp(keeps, "keeping") || strcmp(tokens, "tokens")))
        return false;
    const bool doubles = !strcmp(by, "doubling");
    if (!doubles && (!hr_integer_parse(by, &step) || step < 1)) return false;
    *r = (range){ first, last, over, step, !strcmp(unit, "tokens"), *keeps != 0 };
    return first > 0 && last > first && last < MOST && step < MOST && over > 0 &&
           (r->in_tokens || !strcmp(unit, "steps"));
}

static int64_t next_of(const range *r, int64_t value)
{
    return hr_min(r->step ? value + r->step : 2 * value, r->last);
}

/* Of the recipe, also in one of its stages. */
static int64_t batch_of(const hr_config *config)
{
    return config->stage.count ? config->stage.batch : config->train.batch;
}

static int64_t seq_len_of(const hr_config *config)
{
    return config->stage.count ? config->stage.seq_len : config->train.seq_len;
}

/* Writes the stages that a range stands for: each of its values but the last has an equal share of
 * what it is over. */
static hr_status expand(const hr_config *config, const word *w, hr_writer *to, hr_error *err)
{
    range r;
    int32_t count = 0, index = 0;
    const bool length = !strcmp(w->name, "seq_len");
    if (!read_range(w->value, &r) || (!length && strcmp(w->name, "batch") != 0))
        return hr_fail(err, HR_USAGE,
                       "train.stages: \"%.80s\" is not a range, such as seq_len=\"8..2048 over "
                       "140000 steps by doubling\"",
                       w->value);
    if (r.keeps_tokens && !length)
        return hr_fail(err, HR_USAGE, "train.stages: keeping tokens is for a range of seq_len");
    for (int64_t value = r.first; value < r.last && count <= HR_STAGES_MAX;
         value = next_of(&r, value))
        count++;
    if (count >= HR_STAGES_MAX)
        return hr_fail(err, HR_USAGE, "train.stages: \"%.80s\" has more than %d values", w->value,
                       HR_STAGES_MAX);
    for (int64_t value = r.first;; value = next_of(&r, value), index++) {
        const long long share = (long long)(r.over / count * index +
                                            r.over % count * index / count);
        hr_put(to, "%sat_%s=%lld %s=%lld", index ? "; " : "", r.in_tokens ? "tokens" : "step",
               share, w->name, (long long)value);
        int64_t batch = 0;
        if (r.keeps_tokens && !hr_checked_mul(batch_of(config), r.last / value, &batch))
            return hr_fail(err, HR_USAGE, "train.stages: \"%.80s\": 2^63 tokens a step or more",
                           w->value);
        if (r.keeps_tokens) hr_put(to, " batch=%lld", (long long)hr_max(batch, 1));
        if (value == r.last) break;
    }
    if (!to->cut) return HR_OK;
    return hr_fail(err, HR_USAGE, "train.stages: \"%.80s\" stands for a list that is too long",
                   w->value);
}

/* The stages one by one: as they are given, or those of a range, written to `text`. */
static hr_status explicit_text(const hr_config *config, char text[HR_STAGES_BYTES],
                               const char **stages, hr_error *err)
{
    word w = { .at = config->train.stages };
    hr_writer writer = { text, HR_STAGES_BYTES };
    bool more = true, ranges = false;
    int32_t words = 0;
    *stages = config->train.stages;
    for (; more && !ranges && next_word(&w, &more, NULL) == HR_OK; words++)
        ranges = more && is_range(w.value) &&
                 (!strcmp(w.name, "seq_len") || !strcmp(w.name, "batch"));
    if (!ranges) return HR_OK;
    if (words > 1 || w.at[strspn(w.at, " \t")])
        return hr_fail(err, HR_USAGE,
                       "train.stages: a range stands alone, and \"%.80s\" is beside other words",
                       w.value);
    *stages = text;
    return expand(config, &w, &writer, err);
}

/* ---- the stages */

typedef struct {
    int64_t at_step, at_tokens; /* -1: not given */
} place;

static hr_status read_number(const word *w, int64_t least, int64_t *value, hr_error *err)
{
    if (hr_integer_parse(w->value, value) && *value >= least && *value <= INT64_C(1) << 52)
        return HR_OK;
    return hr_fail(err, HR_USAGE, "%s takes an integer from %lld on; got \"%.40s\"", w->name,
                   (long long)least, w->value);
}

static hr_status read_scale(const word *w, double *value, hr_error *err)
{
    if (hr_real_parse(w->value, value) && *value >= 0 && *value <= 1000) return HR_OK;
    return hr_fail(err, HR_USAGE, "lr_scale takes a number from 0 to 1000; got \"%.40s\"",
                   w->value);
}

/* Takes a word into the numbers of its stage. Other keys are checked by hr_config_at_stage. */
static hr_status take_word(const word *w, hr_stage *stage, place *at, hr_error *err)
{
    if (find_key(w->name) < 0) return fail_name(w->name, err);
    if (!strcmp(w->name, "at_step")) return read_number(w, 0, &at->at_step, err);
    if (!strcmp(w->name, "at_tokens")) return read_number(w, 0, &at->at_tokens, err);
    if (!strcmp(w->name, "warmup_steps")) return read_number(w, 0, &stage->warmup_steps, err);
    if (!strcmp(w->name, "lr_scale")) return read_scale(w, &stage->lr_scale, err);
    if (!strcmp(w->name, "seq_len")) return read_number(w, 1, &stage->seq_len, err);
    if (!strcmp(w->name, "batch")) return read_number(w, 1, &stage->batch, err);
    return HR_OK;
}

static hr_status read_stage(const char **text, hr_stage *stage, place *at, hr_error *err)
{
    word w = { .at = *text };
    uint32_t seen = 0;
    bool more = true;
    for (;;) {
        hr_status status = next_word(&w, &more, err);
        if (status == HR_OK && more) status = take_word(&w, stage, at, err);
        if (status != HR_OK) return status;
        if (!more) break;
        const uint32_t bit = 1u << find_key(w.name);
        if (seen & bit) return hr_fail(err, HR_USAGE, "%s is given twice; remove one", w.name);
        seen |= bit;
    }
    *text = *w.at ? w.at + 1 : w.at;
    if (!seen) return hr_fail(err, HR_USAGE, "is empty; remove it");
    return HR_OK;
}

/* Computes where a stage begins, in steps and in tokens. */
static hr_status find_place(const hr_stage *before, const place *at, hr_stage *stage, hr_error *err)
{
    int64_t a_step, tokens;
    if (at->at_step >= 0 && at->at_tokens >= 0)
        return hr_fail(err, HR_USAGE, "at_step and at_tokens exclude each other; give one");
    if (!before) {
        if (at->at_step <= 0 && at->at_tokens <= 0) return HR_OK;
        return hr_fail(err, HR_USAGE, "the first stage begins at step 0, not at %s %lld",
                       at->at_step > 0 ? "step" : "token",
                       (long long)hr_max(at->at_step, at->at_tokens));
    }
    if (at->at_step < 0 && at->at_tokens < 0)
        return hr_fail(err, HR_USAGE, "gives neither at_step nor at_tokens");
    if (!hr_checked_mul(before->batch, before->seq_len, &a_step) || a_step <= 0)
        return hr_fail(err, HR_USAGE, "the stage before has %lld x %lld tokens a step",
                       (long long)before->batch, (long long)before->seq_len);
    const int64_t missing = hr_max(at->at_tokens - before->first_token, 0);
    stage->first_step = at->at_step;
    if (at->at_tokens >= 0)
        stage->first_step = before->first_step + missing / a_step + (missing % a_step != 0);
    if (stage->first_step <= before->first_step)
        return hr_fail(err, HR_USAGE,
                       "begins at step %lld, and the stage before at step %lld: stages must rise, "
                       "and each needs a step",
                       (long long)stage->first_step, (long long)before->first_step);
    if (!hr_checked_mul(stage->first_step - before->first_step, a_step, &tokens) ||
        !hr_checked_add(before->first_token, tokens, &stage->first_token))
        return hr_fail(err, HR_USAGE, "the stages before have 2^63 tokens or more");
    return HR_OK;
}

bool hr_config_has_stages(const hr_config *config)
{
    return config->train.stages[strspn(config->train.stages, " \t")] && !config->stage.count;
}

hr_status hr_config_stages(const hr_config *config, hr_stages *stages, hr_error *err)
{
    char text[HR_STAGES_BYTES];
    const char *at = NULL;
    hr_error why;
    *stages = (hr_stages){ .longest = config->train.seq_len };
    if (!config->train.stages[strspn(config->train.stages, " \t")]) return HR_OK;
    hr_status status = explicit_text(config, text, &at, err);
    if (status == HR_OK) stages->longest = 0;
    while (status == HR_OK && at[strspn(at, " \t")]) {
        const int32_t index = stages->count;
        if (index == HR_STAGES_MAX)
            return hr_fail(err, HR_USAGE, "train.stages: more than %d stages", HR_STAGES_MAX);
        hr_stage *stage = &stages->at[index];
        place where = { -1, -1 };
        *stage = (hr_stage){ .seq_len = seq_len_of(config),
                             .batch = batch_of(config),
                             .lr_scale = 1 };
        status = read_stage(&at, stage, &where, &why);
        if (status == HR_OK) status = find_place(index ? stage - 1 : NULL, &where, stage, &why);
        if (status != HR_OK) return fail_in(index, err, &why);
        stages->longest = hr_max(stages->longest, stage->seq_len);
        stages->count++;
    }
    return status;
}

static void skip_item(word *w)
{
    for (bool more = true; more && next_word(w, &more, NULL) == HR_OK;) continue;
}

/* The text of a stage in a list that was read before. */
static const char *item_of(const char *stages, int32_t index)
{
    word w = { .at = stages };
    for (int32_t i = 0; i < index; i++) {
        skip_item(&w);
        w.at += *w.at == ';';
    }
    return w.at + strspn(w.at, " \t");
}

const char *hr_stages_text(const char *stages, int32_t index, int32_t *length)
{
    const char *text = item_of(stages, index);
    word w = { .at = text };
    skip_item(&w);
    *length = (int32_t)(w.at - text);
    return text;
}

/* The keys of all stages in a list that was read before. */
static uint32_t keys_of(const char *stages)
{
    word w = { .at = stages };
    uint32_t found = 0;
    bool more = true;
    while (next_word(&w, &more, NULL) == HR_OK && (more || *w.at))
        if (more) found |= UINT32_C(1) << find_key(w.name);
        else w.at++;
    return found;
}

bool hr_config_stage_sets(const hr_config *config, const char *key)
{
    for (int32_t i = 0; i < KEYS; i++)
        if (keys[i].key && !strcmp(keys[i].key, key)) return config->stage.sets >> i & 1;
    return false;
}

hr_status hr_config_at_stage(const hr_config *config, int32_t index, hr_config *stage,
                             hr_error *err)
{
    char text[HR_STAGES_BYTES];
    const char *at;
    hr_stages stages;
    hr_error why;
    bool more = true;
    hr_status status = hr_config_stages(config, &stages, err);
    if (status == HR_OK) status = explicit_text(config, text, &at, err);
    if (status != HR_OK) return status;
    *stage = *config;
    stage->stage.count = stages.count;
    stage->stage.index = index;
    stage->stage.longest = stages.longest;
    stage->stage.batch = config->train.batch;
    stage->stage.seq_len = config->train.seq_len;
    stage->stage.freeze_bytes = (int32_t)strlen(config->train.freeze);
    stage->stage.sets = keys_of(config->train.stages);
    word w = { .at = item_of(at, index) };
    while (status == HR_OK) {
        status = next_word(&w, &more, &why);
        if (status != HR_OK || !more) break;
        const char *key = keys[find_key(w.name)].key;
        if (key && !strcmp(key, "train.freeze"))
            snprintf(text, sizeof text, "%s %s", config->train.freeze, w.value);
        const bool adds = key && !strcmp(key, "train.freeze") && *config->train.freeze;
        if (key) status = hr_config_set(stage, key, adds ? text : w.value, &why);
    }
    return status == HR_OK ? HR_OK : fail_in(index, err, &why);
}

void hr_config_stage_word(const hr_config *config, int32_t index, const char *name,
                          char value[HR_PATH_BYTES])
{
    word w = { .at = item_of(config->train.stages, index) };
    bool more = true;
    *value = 0;
    while (next_word(&w, &more, NULL) == HR_OK && more)
        if (!strcmp(w.name, name)) snprintf(value, HR_PATH_BYTES, "%s", w.value);
}

hr_status hr_config_stage_alone(const hr_config *config, int32_t index, hr_config *stage,
                                hr_error *err)
{
    hr_stages stages;
    hr_status status = hr_config_stages(config, &stages, err);
    if (status == HR_OK && (index < 0 || index >= stages.count))
        return stages.count ? hr_fail(err, HR_USAGE, "there is no stage %d; train.stages has %d",
                                      index + 1, stages.count)
                            : hr_fail(err, HR_USAGE, "the recipe has no train.stages");
    if (status == HR_OK) status = hr_config_at_stage(config, index, stage, err);
    if (status != HR_OK) return status;
    const hr_stage *at = &stages.at[index];
    const int64_t last = config->train.steps;
    const int64_t next = index + 1 < stages.count ? at[1].first_step : last;
    const int64_t end = last ? hr_min(last, next) : next;
    if (last && last <= at->first_step)
        return hr_fail(err, HR_USAGE,
                       "train.stages, stage %d: begins at step %lld, and the run ends after "
                       "train.steps=%lld",
                       index + 1, (long long)at->first_step, (long long)last);
    memset(&stage->stage, 0, sizeof stage->stage);
    stage->train.stages[0] = 0;
    stage->train.optimizer.lr *= at->lr_scale;
    stage->model.positions = hr_max(stage->model.positions, stages.longest);
    char steps[32];
    snprintf(steps, sizeof steps, "%lld", (long long)(end ? hr_max(end - at->first_step, 1) : 0));
    return hr_config_set(stage, "train.steps", steps, err);
}

int64_t hr_config_valid_tokens(const hr_config *config)
{
    const bool staged = config->stage.count > 0;
    int64_t tokens = 0;
    const bool counted = hr_checked_mul(staged ? config->stage.batch : config->train.batch,
                                        staged ? config->stage.seq_len : config->train.seq_len,
                                        &tokens) &&
                         hr_checked_mul(config->train.eval_batches, tokens, &tokens);
    return counted ? tokens : 0;
}

int32_t hr_stages_find(const hr_stages *stages, int64_t step)
{
    int32_t index = 0;
    while (index + 1 < stages->count && stages->at[index + 1].first_step <= step) index++;
    return index;
}

int64_t hr_stages_tokens(const hr_stages *stages, int64_t step)
{
    const hr_stage *stage = &stages->at[hr_stages_find(stages, step)];
    return stage->first_token + (step - stage->first_step) * stage->batch * stage->seq_len;
}

int64_t hr_config_longest(const hr_config *config)
{
    hr_stages stages;
    if (config->stage.count) return config->stage.longest;
    if (!config->train.stages[0] || hr_config_stages(config, &stages, NULL) != HR_OK)
        return config->train.seq_len;
    return stages.longest;
}

int64_t hr_config_positions(const hr_config *config)
{
    return hr_max(config->model.positions, hr_config_longest(config));
}
