/* SPDX-License-Identifier: Apache-2.0 */
/* report/explain.c - prints a plan. Sizes are exact bytes with MiB or GiB beside them, aligned; the
 * most important lines first, the strategy as YAML last. */
#include "report/explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "model/attention_share.h"
#include "model/family.h"
#include "report/curve.h"
#include "report/labels.h"
#include "report/stages.h"
#include "report/style.h"

static double share(int64_t part, int64_t whole)
{
    return whole ? 100 * (double)part / (double)whole : 0;
}

static void put_line(hr_writer *writer, const char *name, int64_t bytes, const char *why)
{
    hr_put(writer, "  %-26s", name);
    hr_label_put_bytes(writer, bytes);
    hr_put(writer, "%s%s\n", *why ? "  " : "", why);
}

/* Prints a line for each part of the text. */
static void put_initialization(hr_writer *writer, const hr_style *style, const char *text)
{
    hr_put(writer, "\n%sinitial weights%s\n", style->title, style->plain);
    for (const char *end; (end = strstr(text, "; ")); text = end + 2)
        hr_put(writer, "  %.*s\n", (int)(end - text), text);
    hr_put(writer, "  %s\n", text);
}

/* "batch 32 x 128 tokens, micro-batch 8 (4 gradient accumulation steps), loss chunk full (1,024
 * tokens)" */
static void put_batch(hr_writer *writer, const hr_config *config, const hr_plan_answer *answer)
{
    char batch[HR_COUNT_BYTES], length[HR_COUNT_BYTES], micro[HR_COUNT_BYTES],
        chunk[HR_COUNT_BYTES], count[HR_COUNT_BYTES], flops[HR_COUNT_BYTES];
    const double mega = (double)answer->flops_per_token * 1e-6;
    if (mega < 100) snprintf(flops, sizeof flops, "%.3g", mega);
    else hr_count_print((int64_t)(mega + 0.5), flops);
    const bool full = answer->loss_chunk == hr_max(answer->micro_batch, 1) * config->train.seq_len;
    const int64_t turns = config->train.batch / hr_max(answer->micro_batch, 1);
    hr_put(writer, "  batch %s x %s tokens, micro-batch %s",
           hr_count_print(config->train.batch, batch),
           hr_count_print(config->train.seq_len, length),
           hr_count_print(answer->micro_batch, micro));
    if (turns > 1)
        hr_put(writer, " (%s gradient accumulation steps)", hr_count_print(turns, count));
    hr_put(writer, ", loss chunk %s%s tokens%s\n  ", full ? "full (" : "",
           hr_count_print(answer->loss_chunk, chunk), full ? ")" : "");
    if (!answer->device.is_card)
        hr_put(writer, "%d thread%s, CPU instructions %s; ", answer->threads,
               answer->threads == 1 ? "" : "s", answer->rung);
    hr_put(writer, "%s MFLOP per token, forward and backward\n", flops);
}

/* "native sparse attention: 16 of 2,048 blocks of 64 tokens, window 512", and what it does not
 * leave out. */
static void put_nsa(hr_writer *writer, const hr_config *config)
{
    const int64_t T = config->train.seq_len, block = config->model.attention.nsa.select_block,
                  count = config->model.attention.nsa.select_count,
                  window = config->model.attention.nsa.window;
    const bool all = count * block >= T, every = window >= T;
    char text[3][HR_COUNT_BYTES];
    hr_put(writer, "  native sparse attention: %s of %s blocks of %lld tokens, window %s",
           hr_count_print(count, text[0]), hr_count_print((T + block - 1) / block, text[1]),
           (long long)block, hr_count_print(window, text[2]));
    if (strstr(config->model.attention.nsa.branches, "compressed"))
        hr_put(writer, ", %lld tokens compressed every %lld",
               (long long)config->model.attention.nsa.compress_block,
               (long long)config->model.attention.nsa.compress_stride);
    if (all || every)
        hr_put(writer, "; %s%s%s", all ? "the selection keeps every block" : "",
               all && every ? ", " : "",
               !every ? ""
               : all  ? "the window every token"
                      : "the window keeps every token");
    hr_put(writer, "\n");
}

/* How much a pattern or a window skips: "attention local, window 1: keeps 70.0 % of the causal
 * blocks at 256 tokens". */
static void put_attention(hr_writer *writer, const hr_config *config)
{
    static const char *const patterns[] = { "dense", "local", "global", "mixed" };
    const hr_attention_share kept = hr_attention_share_of(config);
    const int32_t pattern = config->model.attention.pattern;
    char count[HR_COUNT_BYTES];
    if (config->model.attention.kind == HR_ATTENTION_NSA) put_nsa(writer, config);
    if (!kept.layers) return;
    if (kept.blocks) hr_put(writer, "  attention %s", patterns[pattern]);
    else
        hr_put(writer, "  sliding window of %s tokens",
               hr_count_print(config->model.attention.sliding_window, count));
    if (kept.blocks && pattern != HR_ATTENTION_GLOBAL)
        hr_put(writer, ", window %lld", (long long)config->model.attention.window);
    if (kept.blocks && pattern != HR_ATTENTION_LOCAL)
        hr_put(writer, ", stride %lld", (long long)hr_config_attention_stride(config));
    if (kept.layers < config->model.n_layers)
        hr_put(writer, " in %lld of %lld layers", (long long)kept.layers,
               (long long)config->model.n_layers);
    const bool all = kept.kept == kept.causal;
    hr_put(writer, ": keeps %.*f %% of the causal %s at %s tokens%s\n", all ? 0 : 1,
           share(kept.kept, kept.causal), kept.blocks ? "blocks" : "pairs",
           hr_count_print(config->train.seq_len, count), all ? ": no saving" : "");
}

static const char *weights_of(const hr_config *config)
{
    static const char *const masters[] = {
        [HR_MASTERS_FP32] = "bf16 with fp32 master weights",
        [HR_MASTERS_RESIDUAL16] = "bf16 with 16 more bits of each weight",
        [HR_MASTERS_RESIDUAL8] = "bf16 with 8 more bits of each weight",
        [HR_MASTERS_NONE] = "bf16 without master weights",
    };
    if (config->train.dtype == HR_FORMAT_FP16)
        return "fp32, with activations in fp16 and a loss scale from 65,536";
    return config->train.dtype == HR_FORMAT_BF16 ? masters[config->train.state.master] : "fp32";
}

static void put_adapters(hr_writer *writer, const hr_config *config, const hr_plan_answer *answer)
{
    char bytes[64], count[HR_COUNT_BYTES];
    hr_put(writer, "  base: %s, frozen\n", hr_bytes_print(answer->base_bytes, bytes));
    if (answer->away_bytes)
        hr_put(writer,
               "  %s of it stay in its files; memory.weights=resident needs these in memory\n",
               hr_bytes_print(answer->away_bytes, bytes));
    hr_put(writer, "  adapters: %s with masters and states; rank %lld, %s parameters\n",
           hr_bytes_print(answer->adapter_bytes, bytes), (long long)config->train.adapter.rank,
           hr_count_print(answer->trained_parameters, count));
    if (answer->wide_adapters)
        hr_put(writer,
               "  %lld adapter%s a rank above the smaller side of the matrix: more adds nothing\n",
               (long long)answer->wide_adapters, answer->wide_adapters == 1 ? " has" : "s have");
}

static void put_model(hr_writer *writer, const hr_config *config, const hr_plan_answer *answer)
{
    const hr_family_spec *family = hr_family_of(config);
    char count[HR_COUNT_BYTES], words[HR_COUNT_BYTES], width[HR_COUNT_BYTES];
    hr_put(writer, "%s: %s parameters, %lld layer%s, d_model %s, vocabulary %s, %s\n", family->name,
           hr_count_print(answer->parameters, count), (long long)config->model.n_layers,
           config->model.n_layers == 1 ? "" : "s", hr_count_print(config->model.d_model, width),
           hr_count_print(config->model.vocab_size, words), weights_of(config));
    if (answer->adapter_bytes) put_adapters(writer, config, answer);
    else if (answer->trained_parameters != answer->parameters)
        hr_put(writer, "  %s parameters are trained, the others are frozen\n",
               hr_count_print(answer->trained_parameters, count));
    if (config->model.from[0]) hr_put(writer, "  weights from %s\n", config->model.from);
    put_batch(writer, config, answer);
    put_attention(writer, config);
}

/* What is proven about the step time: "proven fastest within the budget". */
static void put_certificate(hr_writer *writer, const hr_config *config,
                            const hr_plan_answer *answer)
{
    char time[HR_COUNT_BYTES];
    const bool proven = answer->step_seconds <= answer->bound_seconds * (1 + 1e-6);
    hr_put(writer, "  strategy: ");
    if (answer->bound_seconds < 0) hr_put(writer, "given, not compared with others\n");
    else if (answer->bound_seconds == 0)
        hr_put(writer, "fastest found, not proven: layers train different parameters\n");
    else
        hr_put(writer, "%s within %s", proven ? "proven fastest" : "fastest found",
               *answer->device.name    ? "this memory"
               : config->memory.budget ? "the budget"
                                       : "the available memory");
    if (answer->bound_seconds <= 0) return;
    if (answer->cut && !proven) hr_put(writer, " and the limit of the search");
    if (!proven)
        hr_put(writer, "; no strategy takes less than %s per step",
               hr_duration_print(answer->bound_seconds, time));
    hr_put(writer, "\n");
}

static void put_time(hr_writer *writer, const hr_style *style, const hr_config *config,
                     const hr_plan_answer *answer)
{
    char tokens[HR_COUNT_BYTES], step[HR_COUNT_BYTES], stop[HR_COUNT_BYTES];
    const double rate = (double)(config->train.batch * config->train.seq_len) /
                        answer->step_seconds;
    hr_put(writer, "\n%sspeed%s\n  %s per step, %s tokens/s, %s\n", style->title, style->plain,
           hr_duration_print(answer->step_seconds, step),
           hr_count_print((int64_t)(rate + 0.5), tokens), answer->times);
    if (answer->file_seconds > 0) {
        hr_put(writer, "  operations take %s and transfers %s",
               hr_duration_print(answer->compute_seconds, step),
               hr_duration_print(answer->file_seconds, tokens));
        hr_put(writer, "; operations wait %s for transfers\n",
               hr_duration_print(answer->step_seconds - answer->compute_seconds, step));
    }
    if (answer->read_bytes) {
        const bool disk = answer->file_seconds > answer->compute_seconds;
        hr_put(writer, "  a step reads %s of weights at %s/s, %s: %s the bound\n",
               hr_size_print(answer->read_bytes, step), hr_size_print(answer->read_rate, tokens),
               answer->read_rate_measured ? "as measured" : "a guess",
               disk ? "the disk is" : "compute is");
    }
    if (config->memory.product_norm && hr_config_needs_norm(config))
        hr_put(writer, "  clipping takes the gradient norm from activations and their gradients, "
                       "where tokens are few\n");
    if (answer->norm_pass &&
        config->train.batch * config->train.seq_len <= config->model.d_model / 2)
        hr_put(writer, "  clipping takes a second backward pass; memory.product_norm=true avoids "
                       "it\n");
    if (!*answer->device.name && !strncmp(answer->times, "estimated", 9))
        hr_put(writer, "  headroom calibrate measures this machine for better estimates\n");
    const double digits = answer->stop_seconds < 10 ? 10 : 1; /* 8.5 s, 12 s: an upper limit */
    hr_duration_print(ceil(answer->stop_seconds * digits) / digits, stop);
    if (!*answer->device.name)
        hr_put(writer, "  SIGTERM saves and exits within %s, with a disk that writes %.0f MB/s\n",
               stop, 1e-6 * answer->disk_rate);
    put_certificate(writer, config, answer);
}

/* A plan for another machine is useful, so this is only a note; `train` refuses the plan here. */
static void put_machine(hr_writer *writer, const hr_config *config, const hr_plan_answer *answer)
{
    if (!config->memory.budget || !answer->memory_bytes) return;
    if (answer->available_bytes <= answer->memory_bytes) return;
    put_line(writer, "memory of this machine", answer->memory_bytes, "less than the budget");
    if (answer->process_bytes + answer->kernel_bytes > answer->memory_bytes)
        hr_put(writer, "  note: the plan needs more memory than this machine has: headroom train "
                       "refuses it here\n");
}

/* The memory of a device that is not here, and what else the question says about it. */
static void put_device(hr_writer *writer, const hr_config *config, const hr_plan_answer *answer)
{
    const hr_plan_device *device = &answer->device;
    char name[64], title[HR_PLAN_NAME_BYTES];
    snprintf(name, sizeof name, "usable on %.40s", device->name);
    put_line(writer, device->is_card ? "memory of the card" : "process memory",
             answer->process_bytes, device->is_card ? "the arena; host memory holds the rest" : "");
    snprintf(title, sizeof title, "%s%s", device->title, device->own ? ", of the device file" : "");
    put_line(writer, name, device->usable_bytes, title);
    put_line(writer, "reserve", device->reserve_bytes, "kept free for context, display, system");
    if (config->memory.budget < device->usable_bytes - device->reserve_bytes)
        put_line(writer, "budget", config->memory.budget, "");
    put_line(writer, "margin", answer->available_bytes - answer->process_bytes, "");
}

/* What the plan for a device does not do. */
static void put_limits(hr_writer *writer, const hr_plan_device *device)
{
    char why[HR_PLAN_NAME_BYTES], size[HR_COUNT_BYTES];
    if (device->host_bytes && device->is_card) {
        snprintf(why, sizeof why, "%s needed outside the arena; no tensor is kept there",
                 hr_size_print(device->host_needed_bytes, size));
        put_line(writer, "host memory", device->host_bytes, why);
    }
    if (device->disk_bytes) {
        snprintf(why, sizeof why, "%s of it needed",
                 hr_size_print(device->disk_needed_bytes, size));
        put_line(writer, "disk", device->disk_bytes,
                 device->disk_needed_bytes
                     ? why
                     : "nothing is kept there: moments are in memory, train.out is not set");
    }
    if (device->is_card)
        hr_put(writer, "  headroom trains on CPUs; this is the plan of the same program for the "
                       "memory of the card\n");
}

static void put_answer(hr_writer *writer, const hr_style *style, const hr_config *config,
                       const hr_plan_answer *answer)
{
    const char *room = answer->available_bytes == answer->machine_bytes
                           ? "memory of this machine"
                           : "available on this machine";
    hr_put(writer, "\n%sfits%s\n", style->good, style->plain);
    if (*answer->device.name) put_device(writer, config, answer);
    else {
        put_line(writer, "process memory", answer->process_bytes, "peak RSS");
        put_line(writer, config->memory.budget ? "budget" : room, answer->available_bytes, "");
        put_line(writer, "margin", answer->available_bytes - answer->process_bytes, "");
        put_machine(writer, config, answer);
    }
    char smallest[64];
    snprintf(smallest, sizeof smallest, "slower, use --budget %lld",
             (long long)answer->minimum_bytes);
    if (answer->minimum_bytes)
        put_line(writer, "smallest plan", answer->minimum_bytes,
                 answer->minimum_bytes == answer->process_bytes ? "this one" : smallest);
    if (answer->kernel_bytes)
        put_line(writer, "page tables and cache", answer->kernel_bytes,
                 "kernel memory, not part of RSS");
    put_limits(writer, &answer->device);
    put_time(writer, style, config, answer);
}

/* The disk space of a run with --out. Upper bounds are marked "at most". */
static void put_disk(hr_writer *writer, const hr_style *style, const hr_config *config,
                     const hr_plan_disk *disk)
{
    char what[HR_PLAN_NAME_BYTES], why[HR_PLAN_NAME_BYTES];
    hr_put(writer, "\n%sdisk, with --out%s\n", style->title, style->plain);
    const int64_t all = disk->checkpoints * disk->checkpoint_bytes;
    put_line(writer, "one checkpoint", disk->checkpoint_bytes, "weights, optimizer states");
    if (disk->checkpoints > config->train.keep_last)
        snprintf(why, sizeof why, "train.keep_last=%lld%s%s%s and one being written",
                 (long long)config->train.keep_last,
                 config->train.keep_best && config->data.valid[0] ? ", keep_best" : "",
                 config->train.bad_steps == HR_BAD_STEPS_REWIND ? ", rewind" : "",
                 config->train.keep_every && disk->steps ? ", keep_every" : "");
    else snprintf(why, sizeof why, "all that the run writes");
    if (disk->every_steps)
        snprintf(why, sizeof why, "and one more every %lld steps (train.keep_every)",
                 (long long)disk->every_steps);
    snprintf(what, sizeof what, "%lld checkpoints", (long long)disk->checkpoints);
    if (disk->checkpoints > 1 || disk->every_steps) put_line(writer, what, all, why);
    snprintf(why, sizeof why, "at most, for %lld steps", (long long)disk->steps);
    put_line(writer, "logs", disk->log_bytes, disk->steps ? why : "at most, for each step");
    if (disk->shard_bytes > 0) put_line(writer, "token shards", disk->shard_bytes, "at most");
    if (disk->base_bytes)
        put_line(writer, "weights in files", disk->base_bytes, "memory.weights, in model.from");
    if (disk->moments_bytes)
        put_line(writer, "moments", disk->moments_bytes, "memory.moments=file, until the run ends");
    else if (config->memory.moments == HR_PLACE_FILE)
        put_line(writer, "moments", 0, "all in memory: no state has 64 KiB");
    if (disk->spilled_bytes)
        put_line(writer, "layer inputs", disk->spilled_bytes, "memory.spill, until the run ends");
}

static void put_curve(hr_writer *writer, const hr_style *style, const hr_plan_details *details,
                      bool blocks)
{
    if (!details->curve_count) return;
    int64_t most = 0;
    char peak[HR_PLAN_NAME_BYTES + 64], step[HR_COUNT_BYTES];
    for (int32_t i = 0; i < details->phase_count; i++)
        most = hr_max(most, details->phases[i].bytes);
    if (details->curve[details->curve_peak] == most)
        snprintf(peak, sizeof peak, "operation %s: %s", hr_count_print(details->peak_step, step),
                 details->peak);
    else snprintf(peak, sizeof peak, "the peak of the run is in another phase");
    hr_put(writer, "\n%slive bytes during a training step%s\n", style->title, style->plain);
    hr_curve_put(writer, details, peak, blocks);
}

/* Prints the arena size, its distance from the floor, and the proven bound. */
static void put_packing(hr_writer *writer, const hr_plan_answer *answer)
{
    const int64_t open = answer->arena_bytes - answer->bound_bytes;
    char gap[HR_PLAN_NAME_BYTES], digits[HR_COUNT_BYTES];
    hr_count_print(answer->arena_bytes - answer->floor_bytes, digits);
    put_line(writer, "floor", answer->floor_bytes, "sum of the above: no arena is smaller");
    if (!strcmp(answer->packing, "at floor")) snprintf(gap, sizeof gap, "equals the floor");
    else
        snprintf(gap, sizeof gap, "%s bytes above the floor; %s", digits,
                 !strcmp(answer->packing, "proven") ? "proven smallest" : "not proven smallest");
    put_line(writer, "arena", answer->arena_bytes, gap);
    if (strcmp(answer->packing, "open") != 0) return;
    snprintf(gap, sizeof gap, "proven lower bound; gap %s bytes, %.3f %%",
             hr_count_print(open, digits), share(open, answer->bound_bytes));
    put_line(writer, "arena, lower bound", answer->bound_bytes, gap);
}

static void put_peak(hr_writer *writer, const hr_style *style, const hr_plan_answer *answer,
                     const hr_plan_details *details)
{
    char step[HR_COUNT_BYTES], steps[HR_COUNT_BYTES];
    hr_put(writer, "\n%smemory at the peak%s (operation %s of %s: %s%s%s)\n", style->title,
           style->plain, hr_count_print(details->peak_step, step),
           hr_count_print(details->step_count, steps), style->strong, details->peak, style->plain);
    for (int32_t i = 0; i < details->part_count; i++) {
        const hr_plan_part *part = &details->parts[i];
        hr_put(writer, "  %-26s", part->name);
        hr_label_put_bytes(writer, part->bytes);
        hr_put(writer, "  %4.1f %%  %s\n", share(part->bytes, answer->floor_bytes), part->why);
    }
    put_packing(writer, answer);
}

static void put_parts(hr_writer *writer, const hr_style *style, const char *title,
                      const hr_plan_part *parts, int32_t count)
{
    int64_t columns = 26; /* full names, aligned */
    for (int32_t i = 0; i < count; i++) columns = hr_max(columns, (int64_t)strlen(parts[i].name));
    if (count) hr_put(writer, "\n%s%s%s\n", style->title, title, style->plain);
    for (int32_t i = 0; i < count; i++) {
        hr_put(writer, "  %-*s", (int)columns, parts[i].name);
        hr_label_put_bytes(writer, parts[i].bytes);
        hr_put(writer, "%s%s\n", *parts[i].why ? "  " : "", parts[i].why);
    }
}

static void put_removals(hr_writer *writer, const hr_style *style, const hr_plan_answer *answer,
                         const hr_plan_details *details)
{
    if (!details->removal_count) return;
    hr_put(
        writer,
        "\n%show to reduce memory, and what it costs%s (each change alone; --budget chooses among "
        "them)\n",
        style->title, style->plain);
    for (int32_t i = 0; i < details->removal_count; i++) {
        const hr_plan_change *change = &details->removals[i];
        char digits[HR_COUNT_BYTES];
        hr_put(writer, "  %-47s%*s bytes  %+6.1f %% time per step\n", change->what,
               HR_WORDS_BYTES_COLUMNS, hr_count_print(-change->gained_bytes, digits),
               100 * change->seconds_lost / answer->step_seconds);
    }
}

static void put_indented(hr_writer *writer, const char *lines)
{
    while (*lines) {
        const char *end = strchr(lines, '\n');
        const int length = end ? (int)(end - lines) : (int)strlen(lines);
        hr_put(writer, "  %.*s\n", length, lines);
        lines += length + (end != NULL);
    }
}

void hr_explain_plan(const hr_config *config, const hr_plan_answer *answer,
                     const hr_plan_details *details, bool colour, bool blocks, hr_writer *writer)
{
    const hr_style style = hr_style_of(colour);
    put_model(writer, config, answer);
    hr_stages_put(answer, &style, writer);
    put_answer(writer, &style, config, answer);
    if (answer->disk.checkpoints) put_disk(writer, &style, config, &answer->disk);
    put_curve(writer, &style, details, blocks);
    put_peak(writer, &style, answer, details);
    put_parts(writer, &style, "largest tensors at the peak", details->largest,
              details->largest_count);
    put_removals(writer, &style, answer, details);
    put_parts(writer, &style, "peak of live tensors by phase", details->phases,
              details->phase_count);
    if (!answer->device.is_card) {
        put_parts(writer, &style, "process memory", details->lines, details->line_count);
        put_line(writer, "total", answer->process_bytes, "");
    }
    if (!config->model.from[0])
        put_initialization(writer, &style, hr_family_of(config)->initialization);
    hr_put(writer, "\n%sstrategy%s (to reuse it, save it as a YAML file: memory.strategy=FILE)\n",
           style.title, style.plain);
    put_indented(writer, answer->strategy);
}
