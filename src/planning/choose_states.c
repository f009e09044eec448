/* SPDX-License-Identifier: Apache-2.0 */
/* planning/choose_states.c - train.state.*=auto: the formats of weights and moments, tried from the
 * one that gives up least. */
#include <stdio.h>
#include <string.h>

#include "admission/admit.h"
#include "admission/format_loss.h"
#include "admission/stages.h"
#include "base/options.h"
#include "base/path.h"
#include "checkpoint/checkpoint_store.h"
#include "checkpoint/recipe.h"
#include "headroom/plan.h"
#include "model/optimizer.h"
#include "planning/target.h"

/* Formats by name, with hundredths of bytes for each weight, or for each moment of it. */
typedef struct {
    const char *name;
    int32_t bytes;
} format;

static const format masters[] = { [HR_MASTERS_FP32] = { "fp32", 400 },
                                  [HR_MASTERS_RESIDUAL16] = { "residual16", 201 },
                                  [HR_MASTERS_RESIDUAL8] = { "residual8", 100 },
                                  [HR_MASTERS_NONE] = { "none", 0 } };
static const format moments[] = { [HR_MOMENTS_FP32] = { "fp32", 400 },
                                  [HR_MOMENTS_BF16] = { "bf16", 200 },
                                  [HR_MOMENTS_INT8] = { "int8", 102 } };
enum { MASTERS = HR_MASTERS_AUTO, MOMENTS = HR_MOMENTS_AUTO, MOST = MASTERS * MOMENTS };

typedef struct {
    int32_t master, moments;
    int32_t bytes;
    bool exact; /* the weights have every bit that they have in fp32 */
} candidate;

static bool is_in(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; *at; at += strspn(at, " ,")) {
        const size_t bytes = strcspn(at, " ,");
        if (bytes == length && !strncmp(at, word, length)) return true;
        at += bytes;
    }
    return false;
}

static hr_status check_allow(const hr_config *config, hr_error *err)
{
    static const char known[] = "fp32 residual16 residual8 none bf16 int8";
    char word[HR_FIELD_BYTES];
    for (const char *at = config->memory.allow; *at; at += strspn(at, " ,")) {
        const size_t bytes = strcspn(at, " ,");
        snprintf(word, sizeof word, "%.*s", (int)bytes, at);
        if (bytes && !is_in(known, word))
            return hr_fail(err, HR_USAGE, "memory.allow takes formats of train.state: %s; got %s",
                           known, word);
        at += bytes;
    }
    return HR_OK;
}

/* Formats that change no result need no permission. */
static bool may_have(const hr_config *config, int32_t master, int32_t moment)
{
    const char *allow = config->memory.allow;
    const bool exact = master == HR_MASTERS_FP32 || master == HR_MASTERS_RESIDUAL16;
    if (config->train.state.master != HR_MASTERS_AUTO) {
        if (master != config->train.state.master) return false;
    } else if (!exact && !is_in(allow, masters[master].name)) return false;
    if (config->train.state.moments != HR_MOMENTS_AUTO)
        return moment == config->train.state.moments;
    return moment == HR_MOMENTS_FP32 || is_in(allow, moments[moment].name);
}

static bool is_before(const candidate *a, const candidate *b)
{
    return a->exact != b->exact ? a->exact : a->bytes > b->bytes;
}

/* Lists what may be chosen, in the order in which it is tried: a recipe takes the formats of its
 * dtype and optimizer alone. */
static int32_t list(const hr_config *config, hr_config *tried, candidate found[MOST])
{
    hr_state states[HR_STATES_MAX];
    int32_t count = 0, each = 0;
    *tried = *config;
    tried->train.state.master = HR_MASTERS_FP32;
    tried->train.state.moments = HR_MOMENTS_FP32;
    for (int32_t s = hr_config_states(tried, states) - 1; s >= 0; s--)
        each += states[s].shape == HR_STATE_ELEMENTS && !states[s].average;
    for (int32_t m = 0; m < MASTERS; m++)
        for (int32_t v = 0; v < MOMENTS; v++) {
            candidate c = { m, v, masters[m].bytes + each * moments[v].bytes, false };
            c.exact = v == HR_MOMENTS_FP32 && (m == HR_MASTERS_FP32 || m == HR_MASTERS_RESIDUAL16);
            if (!may_have(config, m, v)) continue;
            tried->train.state.master = m;
            tried->train.state.moments = v;
            if (hr_config_check(tried, NULL) != HR_OK) continue;
            int32_t at = count++;
            for (; at > 0 && is_before(&c, &found[at - 1]); at--) found[at] = found[at - 1];
            found[at] = c;
        }
    return count;
}

static void take(hr_config *config, int32_t master, int32_t moment)
{
    config->train.state.master = master;
    config->train.state.moments = moment;
}

/* Whether any plan of a recipe fits, and the bytes of its smallest. Not inlined, as in plan.c. */
static __attribute__((noinline)) hr_status is_fit(const hr_config *given,
                                                  const hr_plan_outputs *outputs, bool *fits,
                                                  int64_t *least, hr_error *err)
{
    hr_memory memory = { 0 };
    hr_admission admission = { .progress = outputs->progress };
    hr_measured measured;
    hr_stage_set *set;
    const hr_config *config;
    hr_status status = hr_memory_open(&memory, err);
    if (status != HR_OK) return status;
    const hr_admission_machine machine = hr_target(outputs->device, &memory, outputs->calibrations,
                                                   &measured);
    status = hr_target_config(outputs->device, given, &memory, &config, err);
    if (status == HR_OK && hr_config_has_stages(config))
        status = hr_admit_stages(&machine, config, &admission, &set, err);
    else if (status == HR_OK) status = hr_admit_any(&machine, config, NULL, &admission, err);
    *fits = status == HR_OK && admission.answer.fits && !hr_admit_exceeds_file(&admission);
    *least = admission.answer.minimum_bytes ? admission.answer.minimum_bytes : INT64_MAX;
    hr_memory_close(&memory);
    return status == HR_NO_FIT ? HR_OK : status;
}

/* Takes the formats of the newest checkpoint of train.out; false: there is none. */
static __attribute__((noinline)) bool take_from_checkpoint(hr_config *config)
{
    char store[HR_CHECKPOINT_STORE_PATH_BYTES], name[HR_STEP_NAME_BYTES];
    char path[HR_STEP_PATH_BYTES + 32];
    hr_config before;
    int64_t step = -1;
    hr_config_default(&before);
    if (!config->train.out[0] ||
        hr_checkpoint_store_path(config->train.out, store, NULL) != HR_OK ||
        hr_checkpoint_store_newest(store, INT64_MAX, &step, NULL) != HR_OK || step < 0)
        return false;
    snprintf(path, sizeof path, "%s/%s/%s", store, hr_step_name(step, name), hr_recipe_name);
    if (hr_config_read(&before, path, NULL) != HR_OK) return false;
    if (config->train.state.master == HR_MASTERS_AUTO)
        config->train.state.master = before.train.state.master;
    if (config->train.state.moments == HR_MOMENTS_AUTO)
        config->train.state.moments = before.train.state.moments;
    return true;
}

static void say(const hr_config *config, const char *why, char said[HR_ERROR_BYTES])
{
    char cost[HR_FORMAT_LOSS_BYTES];
    hr_format_loss_print(hr_format_loss_of(config), cost);
    snprintf(said, HR_ERROR_BYTES, "train.state.master=%s train.state.moments=%s: %s%s%s",
             masters[config->train.state.master].name, moments[config->train.state.moments].name,
             why, *cost ? "; " : "", cost);
}

hr_status hr_plan_choose_states(hr_config *config, const hr_plan_outputs *given, bool fresh,
                                char said[HR_ERROR_BYTES], hr_error *err)
{
    hr_plan_outputs outputs;
    candidate found[MOST];
    char why[128];
    bool fits = false;
    *said = 0;
    if (!hr_config_chooses_states(config)) return HR_OK;
    hr_status status = hr_options_take(&outputs, sizeof outputs, given, err);
    if (status == HR_OK) status = check_allow(config, err);
    if (status != HR_OK) return status;
    if (!fresh && take_from_checkpoint(config)) {
        say(config, "the formats of the checkpoint", said);
        return HR_OK;
    }
    hr_config tried;
    const int32_t count = list(config, &tried, found);
    int32_t at = 0, smallest = count - 1;
    if (!count) { /* no choice is the reason: say what is */
        if (config->train.state.master == HR_MASTERS_AUTO)
            config->train.state.master = HR_MASTERS_FP32;
        if (config->train.state.moments == HR_MOMENTS_AUTO)
            config->train.state.moments = HR_MOMENTS_FP32;
        return hr_config_check(config, err);
    }
    for (int64_t least = INT64_MAX, bytes; at < count && !fits; at += !fits) {
        take(config, found[at].master, found[at].moments);
        status = is_fit(config, &outputs, &fits, &bytes, err);
        if (status != HR_OK) return status;
        if (bytes < least) smallest = at, least = bytes;
    }
    if (!fits) take(config, found[smallest].master, found[smallest].moments);
    if (!fits)
        snprintf(why, sizeof why,
                 "the smallest of %d allowed, none of which fits; the changes below are for these "
                 "formats",
                 count);
    else
        snprintf(why, sizeof why, "number %d of %d allowed, the first that fits%s", at + 1, count,
                 found[at].exact ? "; it trains as with fp32 states" : "");
    say(config, why, said);
    return HR_OK;
}
