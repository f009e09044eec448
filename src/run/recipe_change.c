/* SPDX-License-Identifier: Apache-2.0 */
/* run/recipe_change.c - compares two recipes key by key, and the models that they describe. */
#include "run/recipe_change.h"

#include <stdio.h>
#include <string.h>

#include "checkpoint/recipe.h"
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
    hr_spec a, b;
    if (hr_spec_read(&a, key, before, NULL) != HR_OK || hr_spec_read(&b, key, now, NULL) != HR_OK ||
        a.weighted != b.weighted)
        return false;
    if (a.weighted && a.count != b.count) return false;
    for (int32_t i = 0; a.weighted && i < a.count; i++)
        if (a.parts[i].weight != b.parts[i].weight) return false;
    return true;
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
        return same_kinds && has_same_shares(change->key, change->before, change->now);
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

/* Hashes of the names, sizes and formats of the parameters in each file of a checkpoint. */
typedef struct {
    int32_t count;
    const char *names[HR_KEPT_MAX];
    char hashes[HR_KEPT_MAX][HR_HASH_BYTES];
} file_hashes;

static bool is_codes(const hr_program *program, int32_t param, hr_kept kept)
{
    return hr_kept_format(program, param, kept)->dtype == HR_U8;
}

/* Adds the elements in memory, on which the blocks of codes depend. A block is 16 inputs of 16
 * outputs in both orders of panels, which differ in the padding of odd numbers of inputs. */
static void add_blocks(hr_hash *hash, const hr_program *program, int32_t param, hr_kept kept)
{
    const hr_tensor *state =
        &program->tensors[program->params[param].states[kept - HR_KEPT_STATES]];
    const bool in_rows = state->layout == HR_ROWS;
    hr_hash_add(hash, &in_rows, sizeof in_rows);
    hr_hash_add(hash, &state->fixed_bytes, sizeof state->fixed_bytes);
}

static void hash_file(const hr_program *program, hr_kept kept, file_hashes *files)
{
    hr_hash hash;
    if (!hr_kept_any(program, kept)) return;
    hr_hash_begin(&hash);
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        if (hr_kept_tensor(program, p, kept) == HR_NONE) continue;
        hr_hash_add(&hash, param->external_name, (int64_t)strlen(param->external_name) + 1);
        hr_hash_add(&hash, param->dims, (int64_t)sizeof param->dims);
        const char *format = hr_kept_format(program, p, kept)->name;
        hr_hash_add(&hash, format, (int64_t)strlen(format) + 1);
        if (is_codes(program, p, kept)) add_blocks(&hash, program, p, kept);
    }
    files->names[files->count] = hr_kept_name(program, kept);
    hr_hash_print(&hash, files->hashes[files->count++]);
}

static hr_status hash_files(hr_memory *memory, const hr_config *config, file_hashes *files)
{
    hr_region region;
    hr_program program;
    files->count = 0;
    hr_status status = hr_config_check(config, NULL);
    if (status == HR_OK)
        status = hr_memory_region_open(memory, "comparing the models",
                                       hr_compile_unpacked_bytes(config), &region, NULL);
    if (status != HR_OK) return status;
    status = hr_model_assemble(config, hr_backend_find(HR_BACKEND_DEFAULT), 1, &region, &program,
                               NULL);
    for (hr_kept kept = 0; status == HR_OK && kept < hr_kept_count(&program); kept++)
        hash_file(&program, kept, files);
    hr_memory_region_close(memory, &region);
    return status;
}

/* Returns why no --allow-change makes a checkpoint of one recipe readable for another; null if
 * nothing is known against it. States that the checkpoint does not have start anew. */
static const char *find_obstacle(hr_memory *memory, const hr_config *before, const hr_config *now)
{
    file_hashes has, needs;
    if (hash_files(memory, before, &has) != HR_OK || hash_files(memory, now, &needs) != HR_OK)
        return NULL;
    for (int32_t n = 0; n < needs.count; n++)
        for (int32_t h = 0; h < has.count; h++)
            if (!strcmp(needs.names[n], has.names[h]) && strcmp(needs.hashes[n], has.hashes[h]))
                return strcmp(needs.names[n], hr_weights_name(now))
                           ? "its optimizer states are of other parameters, or in another format"
                           : "its weights have another shape or format";
    return NULL;
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
        if (!resume->changed) obstacle = find_obstacle(memory, before, now);
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
