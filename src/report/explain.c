/* SPDX-License-Identifier: Apache-2.0 */
/* report/explain.c - prints a plan. Sizes in exact bytes with GiB beside them, columns aligned;
 * what is most important first, the strategy as YAML last. */
#include "report/explain.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "model/family.h"
#include "report/curve.h"
#include "report/style.h"
#include "report/words.h"

static double share(int64_t part, int64_t whole)
{
    return whole ? 100 * (double)part / (double)whole : 0;
}

static void put_line(hr_writer *writer, const char *name, int64_t bytes, const char *why)
{
    hr_put(writer, "  %-26s", name);
    hr_words_put_bytes(writer, bytes);
    hr_put(writer, "%s%s\n", *why ? "  " : "", why);
}

/* A line, or one for each part of a long one. */
static void put_initialisation(hr_writer *writer, const char *text)
{
    enum { LINE_MOST = 84 };
    const bool parts = strlen(text) > LINE_MOST;
    hr_put(writer, "  initialised: ");
    for (const char *end; parts && (end = strstr(text, "; ")); text = end + 2)
        hr_put(writer, "%.*s\n%15s", (int)(end - text), text, "");
    hr_put(writer, "%s\n", text);
}

static void put_model(hr_writer *writer, const hr_config *config, const hr_plan_answer *answer)
{
    const hr_family_spec *family = hr_family_of(config);
    hr_put(writer, "%s  %lld parameters, %lld layers of %lld, vocabulary %lld, %s\n", family->name,
           (long long)answer->parameters, (long long)config->model.n_layers,
           (long long)config->model.d_model, (long long)config->model.vocab_size,
           config->train.format == HR_FORMAT_BF16 ? "bf16 with fp32 masters" : "fp32");
    if (answer->trained_parameters != answer->parameters)
        hr_put(writer, "  %lld parameters train, the others are frozen\n",
               (long long)answer->trained_parameters);
    if (config->model.from[0]) hr_put(writer, "  weights of %s\n", config->model.from);
    else put_initialisation(writer, family->initialisation);
    hr_put(writer,
           "  batch %lld x %lld tokens, micro-batch %lld, loss chunk %lld tokens, %d thread%s, "
           "%s\n",
           (long long)config->train.batch, (long long)config->train.seq_len,
           (long long)answer->micro_batch, (long long)answer->loss_chunk, answer->threads,
           answer->threads == 1 ? "" : "s", answer->rung);
    hr_put(writer, "  %.3f MFLOP a token (forward and backward)\n",
           (double)answer->flops_per_token * 1e-6);
}

const char *hr_explain_certificate(const hr_plan_answer *answer)
{
    if (answer->bound_seconds < 0) return "not compared with others";
    if (answer->bound_seconds == 0) return "the fastest found, not proven";
    return answer->step_seconds <= answer->bound_seconds * (1 + 1e-6)
               ? "the fastest there is in these bytes, proven"
               : "the fastest found that packs in these bytes";
}

/* A plan for another machine is worth making: it is a note, and `train` refuses the plan here. */
static void put_machine(hr_writer *writer, const hr_config *config, const hr_plan_answer *answer)
{
    if (!config->memory.budget || !answer->memory_bytes) return;
    if (answer->available_bytes <= answer->memory_bytes) return;
    put_line(writer, "this machine has", answer->memory_bytes, "less than the budget");
    if (answer->process_bytes + answer->kernel_bytes > answer->memory_bytes)
        hr_put(writer, "  note: the plan needs more memory than this machine has: headroom train "
                       "refuses it here\n");
}

static void put_answer(hr_writer *writer, const hr_style *style, const hr_config *config,
                       const hr_plan_answer *answer)
{
    const int64_t margin = answer->available_bytes - answer->process_bytes;
    const char *room = answer->available_bytes == answer->machine_bytes ? "this machine has"
                                                                        : "this machine has left";
    hr_put(writer, "\n%sfits%s\n", style->good, style->plain);
    put_line(writer, "the process", answer->process_bytes, "");
    put_line(writer, config->memory.budget ? "budget" : room, answer->available_bytes, "");
    put_line(writer, "margin", margin, "");
    put_machine(writer, config, answer);
    if (answer->minimum_bytes)
        put_line(writer, "smallest plan", answer->minimum_bytes,
                 answer->minimum_bytes == answer->process_bytes ? "this one" : "");
    put_line(writer, "page tables and kernel", answer->kernel_bytes, "charged beside the process");
    hr_put(writer, "\n%stime%s\n", style->title, style->plain);
    hr_put(writer, "  a step takes %.4g s, %.0f tokens a second\n  times: %s\n",
           answer->step_seconds,
           (double)(config->train.batch * config->train.seq_len) / answer->step_seconds,
           answer->times);
    hr_put(writer, "  a signal ends it within %.4g s, saved to a disk of %.0f MB/s\n",
           answer->stop_seconds, 1e-6 * answer->disk_rate);
    hr_put(writer, "  of all strategies: %s", hr_explain_certificate(answer));
    if (answer->bound_seconds > 0 && answer->step_seconds > answer->bound_seconds * (1 + 1e-6))
        hr_put(writer, "; none takes less than %.4g s", answer->bound_seconds);
    hr_put(writer, "\n");
}

/* What a run with --out takes. Bounds are said to be such. */
static void put_disk(hr_writer *writer, const hr_style *style, const hr_config *config,
                     const hr_plan_disk *disk)
{
    char what[HR_PLAN_NAME_BYTES], why[HR_PLAN_NAME_BYTES];
    hr_put(writer, "\n%sdisk, with --out%s\n", style->title, style->plain);
    put_line(writer, "one checkpoint", disk->checkpoint_bytes, "weights and optimizer states");
    snprintf(what, sizeof what, "%lld checkpoint%s", (long long)disk->checkpoints,
             disk->checkpoints == 1 ? "" : "s");
    snprintf(why, sizeof why, "at most at once; train.keep_last=%lld",
             (long long)config->train.keep_last);
    if (disk->every_steps)
        snprintf(why, sizeof why, "and one more every %lld steps (train.keep_every)",
                 (long long)disk->every_steps);
    put_line(writer, what, disk->checkpoints * disk->checkpoint_bytes, why);
    snprintf(why, sizeof why, "at most, for %lld steps", (long long)disk->steps);
    put_line(writer, "logs", disk->log_bytes, disk->steps ? why : "a step, at most");
    if (disk->shard_bytes > 0) put_line(writer, "token shards", disk->shard_bytes, "at most");
}

static void put_curve(hr_writer *writer, const hr_style *style, const hr_plan_details *details,
                      bool blocks)
{
    if (!details->curve_count) return;
    hr_put(writer, "\n%sbytes over a training step%s\n", style->title, style->plain);
    hr_curve_put(writer, details, blocks);
    int64_t most = 0;
    for (int32_t i = 0; i < details->phase_count; i++)
        most = hr_max(most, details->phases[i].bytes);
    hr_put(writer, " %s\n",
           details->curve[details->curve_peak] == most ? details->peak
                                                       : "the run's peak is in another phase");
}

/* The arena, how far it is above the floor, and what is proven of that. */
static void put_packing(hr_writer *writer, const hr_plan_answer *answer)
{
    const int64_t open = answer->arena_bytes - answer->bound_bytes;
    char gap[HR_PLAN_NAME_BYTES];
    put_line(writer, "floor", answer->floor_bytes, "no arena can be smaller");
    snprintf(gap, sizeof gap,
             !strcmp(answer->packing, "at floor") ? "at the floor, %lld bytes above"
             : !strcmp(answer->packing, "proven")
                 ? "%lld bytes above the floor; proven that none is lower"
                 : "%lld bytes above the floor; whether one is lower is open",
             (long long)(answer->arena_bytes - answer->floor_bytes));
    put_line(writer, "arena", answer->arena_bytes, gap);
    if (strcmp(answer->packing, "open") != 0) return;
    snprintf(gap, sizeof gap, "proven that none is lower; open: %lld bytes, %.3f %%",
             (long long)open, share(open, answer->bound_bytes));
    put_line(writer, "lowest there may be", answer->bound_bytes, gap);
}

static void put_peak(hr_writer *writer, const hr_style *style, const hr_plan_answer *answer,
                     const hr_plan_details *details)
{
    hr_put(writer, "\n%sat the peak%s (step %d of %d: %s%s%s)\n", style->title, style->plain,
           details->peak_step, details->step_count, style->strong, details->peak, style->plain);
    for (int32_t i = 0; i < details->part_count; i++) {
        const hr_plan_part *part = &details->parts[i];
        hr_put(writer, "  %-26s", part->name);
        hr_words_put_bytes(writer, part->bytes);
        hr_put(writer, "  %4.1f %%  %s\n", share(part->bytes, answer->floor_bytes), part->why);
    }
    put_packing(writer, answer);
}

static void put_parts(hr_writer *writer, const hr_style *style, const char *title,
                      const hr_plan_part *parts, int32_t count)
{
    int64_t columns = 26; /* whole names, aligned */
    for (int32_t i = 0; i < count; i++) columns = hr_max(columns, (int64_t)strlen(parts[i].name));
    if (count) hr_put(writer, "\n%s%s%s\n", style->title, title, style->plain);
    for (int32_t i = 0; i < count; i++) {
        hr_put(writer, "  %-*s", (int)columns, parts[i].name);
        hr_words_put_bytes(writer, parts[i].bytes);
        hr_put(writer, "%s%s\n", *parts[i].why ? "  " : "", parts[i].why);
    }
}

static void put_removals(hr_writer *writer, const hr_style *style, const hr_plan_answer *answer,
                         const hr_plan_details *details)
{
    if (!details->removal_count) return;
    hr_put(writer, "\n%swhat takes bytes away, and its price%s\n", style->title, style->plain);
    for (int32_t i = 0; i < details->removal_count; i++) {
        const hr_plan_change *change = &details->removals[i];
        char digits[32];
        hr_words_digits(-change->gained_bytes, digits);
        hr_put(writer, "  %-47s%*s bytes  %+6.1f %% time\n", change->what, HR_WORDS_BYTES_COLUMNS,
               digits, 100 * change->seconds_lost / answer->step_seconds);
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
    put_answer(writer, &style, config, answer);
    if (answer->disk.checkpoints) put_disk(writer, &style, config, &answer->disk);
    put_curve(writer, &style, details, blocks);
    put_peak(writer, &style, answer, details);
    put_parts(writer, &style, "largest values alive there", details->largest,
              details->largest_count);
    put_removals(writer, &style, answer, details);
    put_parts(writer, &style, "most bytes alive by phase", details->phases, details->phase_count);
    put_parts(writer, &style, "the process", details->lines, details->line_count);
    put_line(writer, "total", answer->process_bytes, "");
    hr_put(writer, "\n%sthe strategy%s\n", style.title, style.plain);
    put_indented(writer, answer->strategy);
}
