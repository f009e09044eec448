/* SPDX-License-Identifier: Apache-2.0 */
/* planning/disk.c - sizes of files, and the largest number of them at a time. */
#include "planning/disk.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/path.h"
#include "checkpoint/checkpoint_store.h"
#include "checkpoint/recipe.h"
#include "checkpoint/weights.h"
#include "corpus/kind.h"
#include "corpus/spec.h"
#include "corpus/synthetic.h"
#include "model/optimizer.h"
#include "telemetry/metrics.h"
#include "telemetry/tensorboard.h"
#include "text/blocks.h"

enum {
    FILE_BLOCK = 4096,
    CONFIG_BYTES = 4096,   /* config.json without its list of layers */
    LAYER_TYPE_BYTES = 24, /* "sliding_attention" and a comma in that list */
    SAMPLE_BYTES = HR_METRICS_BYTES
};

/* ---- checkpoints */

static int64_t blocks(int64_t bytes)
{
    return hr_round_up(bytes, FILE_BLOCK);
}

static void size_checkpoint(const hr_config *config, const hr_program *program, hr_plan_disk *disk)
{
    const int64_t listed = *config->model.attention.layer_types ? config->model.n_layers : 0;
    disk->tensor_bytes = disk->checkpoint_bytes = 0;
    for (hr_kept kept = 0; kept < hr_kept_count(program); kept++) {
        const int64_t bytes = hr_kept_file_bytes(program, kept);
        disk->tensor_bytes += bytes;
        disk->checkpoint_bytes += blocks(bytes);
    }
    disk->checkpoint_bytes += CONFIG_BYTES + blocks(listed * LAYER_TYPE_BYTES) +
                              blocks(hr_recipe_bytes(config)) + blocks(HR_STRATEGY_TEXT_BYTES) +
                              blocks(HR_MANIFEST_BYTES) + FILE_BLOCK; /* the directory itself */
}

/* Number of events that happen every `every` steps and after the last; every 0: only after the
 * last. */
static int64_t event_count(int64_t steps, int64_t every)
{
    return every > 0 ? (steps + every - 1) / every : 1;
}

/* The kept checkpoints and the one being written, but no more than the run makes. */
static int64_t count_checkpoints(const hr_config *config, int64_t keep_last, int64_t steps)
{
    const int64_t every = config->train.keep_every;
    const bool best = config->train.keep_best && config->data.valid[0];
    const bool rewinds = config->train.bad_steps == HR_BAD_STEPS_REWIND;
    const int64_t kept = keep_last + best + rewinds + (every > 0 ? steps / every : 0);
    const int64_t made = event_count(steps, config->train.checkpoint_every) +
                         (best ? event_count(steps, config->train.eval_every) : 0);
    return steps ? hr_min(kept + 1, made) : kept + 1;
}

/* The states in a file. */
static int64_t moments_bytes(const hr_program *program)
{
    int64_t sum = 0;
    for (int32_t p = 0; p < program->param_count; p++)
        for (int32_t i = 0; i < program->state_count; i++) {
            const int32_t state = program->params[p].states[i];
            if (state == HR_NONE || program->tensors[state].space != HR_SPACE_FILE) continue;
            sum += blocks(hr_tensor_bytes(&program->tensors[state]));
        }
    return sum;
}

/* ---- logs */

static int64_t log_bytes(const hr_config *config, int64_t steps)
{
    const int64_t stage = config->train.stages[0] ? HR_METRICS_STAGE_BYTES : 0;
    const int64_t scale = config->train.dtype == HR_FORMAT_FP16 ? HR_METRICS_SCALE_BYTES : 0;
    const int64_t step = HR_METRICS_STEP_BYTES + stage + scale + HR_TENSORBOARD_RECORD_BYTES;
    const int64_t event = HR_METRICS_EVENT_BYTES + HR_TENSORBOARD_RECORD_BYTES;
    if (!steps) return step;
    int64_t bytes = steps * step + event_count(steps, config->train.checkpoint_every) * event +
                    event;
    if (config->data.valid[0]) bytes += 2 * event_count(steps, config->train.eval_every) * event;
    if (config->train.sample_tokens)
        bytes += event_count(steps, config->train.sample_every) * SAMPLE_BYTES;
    return bytes + 2 * FILE_BLOCK;
}

/* ---- shards */

/* Returns the total size of the text files; -1 if a part is a folder, a pattern, a compressed file
 * or missing. */
static int64_t text_bytes(const char *key, const char *text, int64_t *files)
{
    hr_spec spec;
    int64_t sum = 0;
    if (hr_spec_read(&spec, key, text, NULL) != HR_OK) return -1;
    for (int32_t i = 0; i < spec.count; i++) {
        const hr_spec_part *part = &spec.parts[i];
        char path[HR_PATH_BYTES];
        int file = -1;
        int64_t bytes;
        if (part->synthetic) {
            const bool train = !strcmp(key, "data.train");
            const int64_t most = train ? HR_SYNTHETIC_TRAIN_TOKENS : HR_SYNTHETIC_VALID_TOKENS;
            sum += part->tokens ? part->tokens : most;
            continue;
        }
        snprintf(path, sizeof path, "%.*s", (int)part->path_bytes, part->path);
        if (hr_spec_is_folder(part) || hr_spec_is_pattern(part) ||
            hr_file_sort_of(part->path, part->path_bytes).packing != HR_FILE_PLAIN ||
            hr_file_open(path, &file, &bytes, NULL) != HR_OK)
            return -1;
        hr_file_close(&file);
        sum += bytes;
    }
    *files += spec.count;
    return sum;
}

/* A token covers at least one byte of text, and takes up to 4 bytes and two bits of maps. */
static int64_t shard_bytes(const hr_config *config)
{
    const hr_config_data data = hr_config_data_of(config);
    const int64_t V = config->model.vocab_size, width = V <= 256 ? 1 : V <= 65536 ? 2 : 4;
    int64_t payload, files = 0;
    const int64_t train = text_bytes("data.train", data.train_text, &files);
    const int64_t valid = text_bytes("data.valid", data.valid_text, &files);
    if (train < 0 || valid < 0 || !hr_checked_mul(train + valid, 4 * width + 1, &payload))
        return -1;
    if (train + valid == 0) return 0;
    /* At most one shard per file, with a header and a partial last block. */
    return ((payload + 3) / 4 / HR_BLOCK_PAYLOAD + 2 * files) * HR_BLOCK_BYTES;
}

/* Not inlined: specs and paths are large, and the stack size is planned. */
/* The weights that stay in files. */
static int64_t base_bytes(const hr_program *program)
{
    int64_t sum = 0;
    for (int32_t p = 0; p < program->param_count; p++) {
        const int32_t weight = program->params[p].weight;
        if (hr_tensor_is_away(program, weight)) sum += hr_tensor_bytes(&program->tensors[weight]);
    }
    return sum;
}

__attribute__((noinline)) void hr_disk_of(const hr_config *config, const hr_program *program,
                                          int64_t file_bytes, int64_t steps, hr_plan_disk *disk)
{
    disk->steps = steps ? steps : config->train.steps;
    size_checkpoint(config, program, disk);
    disk->checkpoints = count_checkpoints(config, config->train.keep_last, disk->steps);
    disk->every_steps = disk->steps ? 0 : config->train.keep_every;
    disk->log_bytes = log_bytes(config, disk->steps);
    disk->shard_bytes = shard_bytes(config);
    disk->moments_bytes = moments_bytes(program);
    disk->spilled_bytes = file_bytes - disk->moments_bytes;
    if (hr_space_file_size(disk->moments_bytes) == file_bytes) {
        disk->moments_bytes = file_bytes;
        disk->spilled_bytes = 0;
    }
    disk->base_bytes = base_bytes(program);
    int64_t all;
    if (!hr_checked_mul(disk->checkpoints, disk->checkpoint_bytes, &all)) all = INT64_MAX / 2;
    disk->bytes = all + (disk->steps ? disk->log_bytes : 0);
}

/* ---- free space */

/* Returns the bytes of the existing checkpoints in train.out. */
static int64_t existing_bytes(const hr_config *config)
{
    char store[HR_CHECKPOINT_STORE_PATH_BYTES], path[HR_STEP_PATH_BYTES + HR_MANIFEST_NAME_BYTES];
    char name[HR_STEP_NAME_BYTES], place[HR_STEP_PATH_BYTES];
    int64_t step = INT64_MAX, sum = 0;
    if (hr_checkpoint_store_path(config->train.out, store, NULL) != HR_OK) return 0;
    hr_state states[HR_STATES_MAX];
    const int32_t count = hr_config_states(config, states);
    while (hr_checkpoint_store_newest(store, step, &step, NULL) == HR_OK && step >= 0)
        for (int32_t i = -1; i < count; i++) {
            const char *file_name = i < 0 ? hr_weights_name(config) : states[i].file;
            int file = -1;
            int64_t bytes;
            if (!file_name) continue;
            if (hr_path_join(store, hr_step_name(step, name), place, sizeof place, NULL) != HR_OK ||
                hr_path_join(place, file_name, path, sizeof path, NULL) != HR_OK ||
                hr_file_open(path, &file, &bytes, NULL) != HR_OK)
                continue;
            hr_file_close(&file);
            sum += blocks(bytes);
        }
    return sum;
}

/* Returns the additional bytes that the run needs: at least one checkpoint beside the existing
 * ones. */
static int64_t needed_bytes(const hr_plan_disk *disk, int64_t existing)
{
    return hr_max(disk->bytes - disk->log_bytes - existing, disk->checkpoint_bytes);
}

__attribute__((noinline)) hr_status hr_disk_check_run(const hr_config *config,
                                                      const hr_plan_disk *disk, int64_t done,
                                                      int64_t moments_bytes, int64_t *free_bytes,
                                                      hr_error *err)
{
    *free_bytes = -1;
    if (!config->train.out[0] || done >= disk->steps) return HR_OK;
    const int64_t available = hr_file_free_bytes(config->train.out),
                  existing = existing_bytes(config);
    const int64_t needed = moments_bytes + needed_bytes(disk, existing);
    if (available < 0) return HR_OK;
    *free_bytes = available - needed;
    if (needed <= available) return HR_OK;
    hr_plan_disk fewer = *disk;
    fewer.checkpoints = count_checkpoints(config, 1, disk->steps);
    fewer.bytes -= (disk->checkpoints - fewer.checkpoints) * disk->checkpoint_bytes;
    const bool helps = fewer.checkpoints < disk->checkpoints &&
                       moments_bytes + needed_bytes(&fewer, existing) <= available;
    char count[4][HR_COUNT_BYTES], moments[HR_COUNT_BYTES], beside[HR_COUNT_BYTES + 48] = "";
    if (moments_bytes)
        snprintf(beside, sizeof beside, " and %s for the %s",
                 hr_count_print(moments_bytes, moments), hr_config_file_holds(config));
    return hr_fail(
        err, HR_NO_FIT,
        "%.200s: the run needs %s bytes of disk for up to %lld checkpoint%s of %s%s, "
        "and %s are free; free %s bytes, %sor give --out on another disk",
        config->train.out, hr_count_print(needed, count[0]), (long long)disk->checkpoints,
        disk->checkpoints == 1 ? "" : "s", hr_count_print(disk->checkpoint_bytes, count[1]), beside,
        hr_count_print(available, count[2]), hr_count_print(needed - available, count[3]),
        helps ? "type train.keep_last=1, " : "");
}
