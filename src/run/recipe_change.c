/* SPDX-License-Identifier: Apache-2.0 */
/* run/recipe_change.c - compares two recipes key by key, and the models that they describe. */
#include "run/recipe_change.h"

#include <stdio.h>
#include <string.h>

#include "checkpoint/recipe.h"
#include "checkpoint/reformat.h"
#include "checkpoint/weights.h"
#include "config/config_keys.h"
#include "corpus/spec.h"
#include "headroom/stages.h"
#include "ops/backends.h"
#include "plan/compile.h"
#include "sections/assemble.h"

bool hr_recipe_change_allows(const hr_train_options *options, const char *key)
{
    for (int32_t i = 0; i < options->allowed_count; i++) {
        const char *name = hr_config_name(options->allowed[i]);
        if (name && !strcmp(name, key)) return true;
    }
    return false;
}

/* Returns whether two mixtures have the same shares, or neither text is a mixture. */
static bool has_same_shares(const char *key, const char *before, const char *now)
{
    const char *const texts[2] = { before, now };
    int64_t shares[2][HR_SPEC_PARTS_MAX] = { { 0 } }, blocks[2] = { 0 };
    for (int i = 0; i < 2; i++) {
        hr_spec spec;
        if (hr_spec_read(&spec, key, texts[i], NULL) != HR_OK) return false;
        if (spec.weighted && hr_spec_shares(&spec, shares[i], &blocks[i], NULL) != HR_OK)
            return false;
    }
    return blocks[0] == blocks[1] && !memcmp(shares[0], shares[1], sizeof shares[0]);
}

/* Whether data.valid holds out documents of the text of training: then it changes both texts. */
static bool is_share(const char *valid)
{
    hr_spec spec;
    return hr_spec_read(&spec, "data.valid", valid, NULL) == HR_OK && spec.share > 0;
}

static bool changes_split(const hr_recipe_change *change)
{
    return !strcmp(change->key, "data.valid") &&
           (is_share(change->before) || is_share(change->now));
}

/* Returns whether a change may be only a path: then hr_resume_check_texts compares the content.
 * Shard names contain the hashes of the content and the tokenizer. */
static bool is_path(const hr_config *before, const hr_config *now, const hr_recipe_change *change)
{
    const hr_config_data a = hr_config_data_of(before), b = hr_config_data_of(now);
    const bool same_kinds = !*a.train_text == !*b.train_text && !*a.train_rows == !*b.train_rows &&
                            !*a.valid_text == !*b.valid_text && !*a.valid_rows == !*b.valid_rows &&
                            !before->data.fixed_batch[0] == !now->data.fixed_batch[0];
    if (!strcmp(change->key, "model.from")) /* hr_base_files_compare */
        return now->train.adapter.kind != HR_ADAPTER_NONE && *change->before && *change->now;
    if (!strcmp(change->key, "data.tokenizer"))
        return hr_config_tokenizer(before) == HR_TOKENIZER_FILE &&
               hr_config_tokenizer(now) == HR_TOKENIZER_FILE && *b.train_text && !*b.valid_rows;
    if (!strcmp(change->key, "data.train") || !strcmp(change->key, "data.valid"))
        return same_kinds && has_same_shares(change->key, change->before, change->now) &&
               !changes_split(change);
    return !strcmp(change->key, "data.fixed_batch") && same_kinds;
}

/* The length of the run may change, and a resumed run no longer needs its initial weights, unless
 * they are a frozen base. */
static bool is_harmless(const hr_config *now, const hr_recipe_change *change)
{
    return !strcmp(change->key, "train.steps") || !strcmp(change->key, "train.epochs") ||
           !strcmp(change->key, "train.adapter.from") ||
           (!strcmp(change->key, "model.from") && !*change->now &&
            now->train.adapter.kind == HR_ADAPTER_NONE);
}

static bool is_fewer_steps(const hr_resume *resume, const hr_config *now,
                           const hr_recipe_change *change)
{
    return !strcmp(change->key, "train.steps") && now->train.steps > 0 &&
           now->train.steps <= resume->manifest.state.step;
}

/* The programs of the recipe of a checkpoint and of the run. */
typedef struct {
    hr_region region;
    hr_program was, now;
} two_models;

static hr_status open_models(two_models *models, hr_memory *memory, const hr_config *before,
                             const hr_config *now, hr_error *err)
{
    const hr_backend *backend = hr_backend_find(HR_BACKEND_DEFAULT);
    hr_status status = hr_config_check(before, err);
    if (status == HR_OK) status = hr_config_check(now, err);
    if (status == HR_OK)
        status = hr_memory_region_open(memory, "comparing the models",
                                       hr_compile_unpacked_bytes(before) +
                                           hr_compile_unpacked_bytes(now),
                                       &models->region, err);
    if (status != HR_OK) return status;
    status = hr_model_assemble(before, backend, 1, &models->region, &models->was, err);
    if (status == HR_OK)
        status = hr_model_assemble(now, backend, 1, &models->region, &models->now, err);
    if (status != HR_OK) hr_memory_region_close(memory, &models->region);
    return status;
}

/* The next parameter from `param` on that has a tensor in a file; param_count: none. */
static int32_t next_param(const hr_program *program, hr_kept kept, int32_t param)
{
    while (param < program->param_count && hr_kept_tensor(program, param, kept) == HR_NONE) param++;
    return param;
}

/* Whether a file has the same parameters in both models; `same_places` if they have the same
 * numbers in the programs, too. */
static bool has_same_params(const two_models *m, hr_kept was, hr_kept now, bool *same_places)
{
    int32_t a = next_param(&m->was, was, 0), b = next_param(&m->now, now, 0);
    for (*same_places = true; a < m->was.param_count && b < m->now.param_count;
         a = next_param(&m->was, was, a + 1), b = next_param(&m->now, now, b + 1)) {
        const hr_param *before = &m->was.params[a], *after = &m->now.params[b];
        *same_places &= a == b;
        if (strcmp(before->external_name, after->external_name) ||
            memcmp(before->dims, after->dims, sizeof before->dims))
            return false;
    }
    return a == m->was.param_count && b == m->now.param_count;
}

/* Returns why no --allow-change makes a checkpoint of one recipe readable for another; null if
 * nothing is known against it. States that the checkpoint does not have start anew.
 *   differs  out; files have other formats, in which they can be written again */
static const char *find_obstacle(hr_memory *memory, const hr_config *before, const hr_config *now,
                                 bool *differs)
{
    two_models models;
    const char *obstacle = NULL;
    *differs = false;
    if (open_models(&models, memory, before, now, NULL) != HR_OK) return NULL;
    for (hr_kept kept = 0; kept < hr_kept_count(&models.now) && !obstacle; kept++) {
        const hr_kept source = hr_reformat_source(&models.was, &models.now, kept);
        bool same_places, other = false;
        if (source == HR_NONE || !hr_kept_any(&models.was, source) ||
            !hr_kept_any(&models.now, kept))
            continue;
        const bool same = has_same_params(&models, source, kept, &same_places);
        const bool can = same && hr_reformat_can(&models.was, &models.now, source, kept, &other);
        *differs |= other;
        if (same && (!other || (can && same_places))) continue;
        obstacle = kept == HR_KEPT_WEIGHTS ? "its weights have another shape or format"
                   : same                  ? "its optimizer states are in another format"
                                           : "its optimizer states are of other parameters";
    }
    hr_memory_region_close(memory, &models.region);
    return obstacle;
}

static void report_line(void *context, const char *line)
{
    const hr_train_options *options = context;
    if (options->events.trouble) options->events.trouble(options->events.context, line);
}

hr_status hr_recipe_change_reformat(hr_memory *memory, const hr_config *before,
                                    const hr_config *now, const hr_train_options *options,
                                    const hr_resume *resume, hr_error *err)
{
    two_models models;
    hr_region region = { 0 };
    hr_status status = open_models(&models, memory, before, now, err);
    if (status != HR_OK) return status;
    const hr_reformat reformat = { .was = &models.was,
                                   .now = &models.now,
                                   .from = resume->place,
                                   .to = resume->reformatted,
                                   .interrupts = options->interrupts,
                                   .report = report_line,
                                   .context = (void *)options };
    status = hr_memory_region_open(memory, "writing states in another format",
                                   hr_reformat_bytes(&models.was, &models.now), &region, err);
    if (status == HR_OK) status = hr_reformat_write(&reformat, &region, err);
    hr_memory_region_close(memory, &region);
    hr_memory_region_close(memory, &models.region);
    return status;
}

void hr_recipe_change_refuse(const hr_train_options *options, const char *key)
{
    if (options->events.refused) options->events.refused(options->events.context, key);
}

/* The first stage in which two lists differ. */
static void report_stages(const hr_train_options *options, const hr_recipe_change *change,
                          const char *note)
{
    char line[512];
    const char *before, *now;
    int32_t index = 0, a, b;
    for (;; index++) {
        before = hr_stages_text(change->before, index, &a);
        now = hr_stages_text(change->now, index, &b);
        if (a != b || memcmp(before, now, (size_t)a) || !a) break;
    }
    snprintf(line, sizeof line, "train.stages: stage %d was \"%.*s\" and is \"%.*s\"%s", index + 1,
             a, before, b, now, note);
    if (options->events.trouble) options->events.trouble(options->events.context, line);
}

static void report_change(const hr_train_options *options, const hr_recipe_change *change,
                          const char *note)
{
    char line[512];
    if (!strcmp(change->key, "train.stages")) {
        report_stages(options, change, note);
        return;
    }
    snprintf(line, sizeof line, "%s was \"%.160s\" and is \"%.160s\"%s", change->key,
             change->before, change->now, note);
    if (options->events.trouble) options->events.trouble(options->events.context, line);
}

/* With a refusal, other paths are reported too: if their content differs, the next run is refused
 * for it. */
static void report_paths(const hr_config *before, const hr_config *now,
                         const hr_train_options *options)
{
    hr_recipe_change change;
    for (int32_t index = 0; hr_recipe_differs(before, now, &index, &change);)
        if (is_path(before, now, &change))
            report_change(options, &change, " (compared by content)");
}

hr_status hr_recipe_change_check(hr_memory *memory, const hr_config *before, const hr_config *now,
                                 const hr_train_options *options, hr_resume *resume, hr_error *err)
{
    hr_recipe_change change;
    int32_t refused = 0;
    const char *obstacle = NULL;
    for (int32_t index = 0; hr_recipe_differs(before, now, &index, &change);) {
        if (!resume->changed) obstacle = find_obstacle(memory, before, now, &resume->reformats);
        const bool fewer_steps = is_fewer_steps(resume, now, &change);
        resume->only_fewer_steps = fewer_steps && (resume->only_fewer_steps || !resume->changed);
        resume->changed = true;
        if (is_path(before, now, &change)) continue;
        const bool allowed = hr_recipe_change_allows(options, change.key) ||
                             is_harmless(now, &change);
        report_change(options, &change, allowed ? " (allowed)" : "");
        if (allowed || obstacle) continue;
        hr_recipe_change_refuse(options, change.key);
        refused++;
        if (!changes_split(&change) || hr_recipe_change_allows(options, "data.train")) continue;
        if (options->events.trouble)
            options->events.trouble(options->events.context,
                                    "data.train: its text changes with what data.valid holds out");
        hr_recipe_change_refuse(options, "data.train");
        refused++;
    }
    if (obstacle || refused) report_paths(before, now, options);
    if (obstacle)
        return hr_fail(
            err, HR_USAGE,
            "%.200s has a run, at step %lld, that cannot go on with this recipe: %s; use "
            "--fresh to start over, or give another --out",
            now->train.out, (long long)resume->manifest.state.step, obstacle);
    if (!refused) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "the run in %.200s has another recipe, at step %lld: %d change%s not allowed; "
                   "allow %s with --allow-change, use --fresh to start over, or give another --out",
                   now->train.out, (long long)resume->manifest.state.step, refused,
                   refused == 1 ? " is" : "s are", refused == 1 ? "it" : "each");
}
