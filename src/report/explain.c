/* SPDX-License-Identifier: Apache-2.0 */
/* report/explain.c - prints plans. Sizes in exact bytes with GiB beside them, columns aligned. */
#include "report/explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "graph/op.h"
#include "model/family.h"

typedef struct {
    char *text;
    int64_t bytes, used;
} writer;

HR_PRINTF(2, 3) static void put(writer *w, const char *format, ...)
{
    va_list list;
    if (w->used >= w->bytes) return;
    va_start(list, format);
    const int written = vsnprintf(w->text + w->used, (size_t)(w->bytes - w->used), format, list);
    va_end(list);
    w->used = hr_min(w->used + written, w->bytes);
}

static const char *const kinds[] = { [HR_ROLE_WEIGHT] = "weights",
                                     [HR_ROLE_MASTER] = "master weights (fp32)",
                                     [HR_ROLE_MOMENT] = "optimiser moments",
                                     [HR_ROLE_GRADIENT] = "gradients",
                                     [HR_ROLE_ACTIVATION] = "activations",
                                     [HR_ROLE_INPUT] = "inputs",
                                     [HR_ROLE_SUM] = "sums",
                                     [HR_ROLE_TABLE] = "tables" };
enum { KINDS = sizeof kinds / sizeof *kinds, SCRATCH = KINDS };

/* Digits in groups of three, right-aligned in 16 columns, with GiB beside. */
static void put_bytes(writer *w, int64_t bytes)
{
    char digits[32], grouped[40];
    const int count = snprintf(digits, sizeof digits, "%lld", (long long)bytes);
    int out = 0;
    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0) grouped[out++] = ',';
        grouped[out++] = digits[i];
    }
    grouped[out] = 0;
    put(w, "%18s  %8.3f GiB", grouped, (double)bytes / 1073741824.0);
}

static void put_line(writer *w, const char *name, int64_t bytes)
{
    put(w, "  %-26s", name);
    put_bytes(w, bytes);
    put(w, "\n");
}

static int32_t kind_of(const hr_compiled *compiled, const hr_buffer *buffer)
{
    if (buffer->tensor == HR_NONE) return SCRATCH;
    return compiled->program.tensors[buffer->tensor].role;
}

static bool lives_at(const hr_storage *storage, int32_t step)
{
    return storage->step_first <= step && step <= storage->step_last;
}

void hr_explain_step(const hr_program *program, int32_t step, char text[96])
{
    static const char *const directions[] = { "", " forward", " backward", " again" };
    static const char *const blocks[] = {
        [HR_BLOCK_EMBED] = "embedding", [HR_BLOCK_HEAD] = "head"
    };
    const hr_step *s = &program->steps[step];
    int32_t section = s->loop;
    while (section != 0 && program->loops[section].parent != 0)
        section = program->loops[section].parent;
    const char *place = program->loops[section].name;
    if (s->block == HR_BLOCK_EMBED || s->block == HR_BLOCK_HEAD) place = blocks[s->block];
    if (s->layer == HR_NONE)
        snprintf(text, 96, "%s%s, %s", place, directions[s->direction], program->ops[s->op]->name);
    else
        snprintf(text, 96, "layer %d%s, %s", s->layer, directions[s->direction],
                 program->ops[s->op]->name);
}

/* Bytes of storages that live at a step, by the kind of the buffer that lives in them there. */
static void sum_kinds(const hr_compiled *compiled, int32_t step, int64_t sums[KINDS + 1])
{
    const hr_plan *plan = &compiled->plan;
    memset(sums, 0, (KINDS + 1) * sizeof *sums);
    for (int32_t b = 0; b < plan->buffer_count; b++) {
        const hr_buffer *buffer = &plan->buffers[b];
        const hr_storage *storage = &plan->storages[buffer->storage];
        /* Of buffers that share a storage the one counts that is born last before the step. */
        if (buffer->view_of != HR_NONE || buffer->step_first > step || buffer->step_last < step)
            continue;
        bool successor = false;
        for (int32_t other = b + 1; other < plan->buffer_count && !successor; other++)
            successor = plan->buffers[other].storage == buffer->storage &&
                        plan->buffers[other].view_of == HR_NONE &&
                        plan->buffers[other].step_first <= step &&
                        plan->buffers[other].step_last >= step;
        if (!successor && lives_at(storage, step))
            sums[kind_of(compiled, buffer)] += storage->bytes;
    }
}

static void put_peak(writer *w, const hr_compiled *compiled)
{
    enum { LARGEST = 6 };
    const hr_plan *plan = &compiled->plan;
    int64_t sums[KINDS + 1];
    char words[96];
    hr_explain_step(&compiled->program, plan->peak_step, words);
    put(w, "\nat the peak (step %d of %d: %s)\n", plan->peak_step, compiled->program.step_count,
        words);
    sum_kinds(compiled, plan->peak_step, sums);
    for (int32_t k = 0; k <= KINDS; k++)
        if (sums[k]) put_line(w, k == SCRATCH ? "scratch" : kinds[k], sums[k]);
    put_line(w, "floor", plan->floor_bytes);
    put_line(w, "arena", plan->arena_bytes);
    put(w, "  packing: %s\n",
        compiled->packing.proof == HR_PACK_AT_FLOOR ? "at the floor, 0 bytes above"
        : compiled->packing.proof == HR_PACK_PROVEN ? "above the floor; proven that none is lower"
                                                    : "above the floor; not proven the lowest");

    put(w, "\nlargest activations alive there\n");
    int64_t below = INT64_MAX;
    int32_t below_index = -1;
    for (int32_t n = 0; n < LARGEST; n++) {
        int32_t best = HR_NONE;
        for (int32_t b = 0; b < plan->buffer_count; b++) {
            const hr_buffer *buffer = &plan->buffers[b];
            if (buffer->view_of != HR_NONE || buffer->step_first > plan->peak_step ||
                buffer->step_last < plan->peak_step ||
                kind_of(compiled, buffer) < HR_ROLE_ACTIVATION)
                continue;
            if (buffer->bytes > below || (buffer->bytes == below && b <= below_index)) continue;
            if (best == HR_NONE || buffer->bytes > plan->buffers[best].bytes) best = b;
        }
        if (best == HR_NONE) break;
        const hr_buffer *buffer = &plan->buffers[best];
        const hr_tensor *tensor = buffer->tensor == HR_NONE
                                      ? 0
                                      : &compiled->program.tensors[buffer->tensor];
        char name[80];
        if (!tensor) snprintf(name, sizeof name, "scratch");
        else if (tensor->layer == HR_NONE) snprintf(name, sizeof name, "%s", tensor->name);
        else snprintf(name, sizeof name, "layer %d %s", tensor->layer, tensor->name);
        put_line(w, name, buffer->bytes);
        below = buffer->bytes;
        below_index = best;
    }
}

/* What is known about the time of the strategy chosen. */
static const char *certificate_of(const hr_plan_answer *answer)
{
    if (answer->bound_seconds < 0) return "as it was found";
    return answer->step_seconds <= answer->bound_seconds * (1 + 1e-6)
               ? "the fastest there is in these bytes"
               : "the fastest that packs in these bytes";
}

static void put_indented(writer *w, const char *lines)
{
    while (*lines) {
        const char *end = strchr(lines, '\n');
        const int length = end ? (int)(end - lines) : (int)strlen(lines);
        put(w, "  %.*s\n", length, lines);
        lines += length + (end != NULL);
    }
}

void hr_explain_plan(const hr_config *config, const hr_compiled *compiled,
                     const hr_plan_answer *answer, char *text, int64_t bytes)
{
    writer w = { text, bytes, 0 };
    const hr_plan *plan = &compiled->plan;
    const hr_family_spec *family = hr_family_of(config);
    put(&w, "%s  %lld parameters, %lld layers of %lld, vocabulary %lld, %s\n", family->name,
        (long long)answer->parameters, (long long)config->model.n_layers,
        (long long)config->model.d_model, (long long)config->model.vocab_size,
        config->train.format == HR_FORMAT_BF16 ? "bf16 with fp32 masters" : "fp32");
    put(&w, "  initialised: %s\n", family->initialisation);
    put(&w,
        "  batch %lld x %lld tokens, micro-batch %lld, loss chunk %lld tokens, %d thread%s, %s\n",
        (long long)config->train.batch, (long long)config->train.seq_len,
        (long long)answer->micro_batch, (long long)answer->loss_chunk, answer->threads,
        answer->threads == 1 ? "" : "s", answer->rung);
    put(&w, "  %.3f MFLOP a token (forward and backward)\n",
        (double)answer->flops_per_token * 1e-6);
    put(&w, "  a step takes %.4g s, %.0f tokens a second: %s\n", answer->step_seconds,
        (double)(config->train.batch * config->train.seq_len) / answer->step_seconds,
        answer->times);
    put(&w, "\nthe strategy, %s\n", certificate_of(answer));
    put_indented(&w, answer->strategy);

    put(&w, "\nthe process\n");
    for (int32_t i = 0; i < plan->process_count; i++)
        if (plan->process[i].bytes) put_line(&w, plan->process[i].name, plan->process[i].bytes);
    put_line(&w, "total", plan->process_bytes);
    put_line(&w, "page tables and kernel", answer->kernel_bytes);
    put_peak(&w, compiled);
}

void hr_explain_program(const hr_compiled *compiled, char *text, int64_t bytes)
{
    writer w = { text, bytes, 0 };
    const hr_program *program = &compiled->program;
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        const hr_op *op = program->ops[step->op];
        int32_t depth = 0;
        for (int32_t l = step->loop; l > 0; l = program->loops[l].parent) {
            depth++;
            if (program->loops[l].step_first != s) continue;
            put(&w, "%s x %lld:\n", program->loops[l].name, (long long)program->loops[l].count);
        }
        put(&w, "%*s%5d  %-13s", 2 * depth, "", s, op->name);
        for (int32_t k = 0; op->out[k]; k++)
            if (step->out[k] != HR_NONE)
                put(&w, " %c:%s", op->out[k], program->tensors[step->out[k]].name);
        put(&w, "  <-");
        for (int32_t i = 0; op->in[i]; i++)
            if (step->in[i] != HR_NONE) put(&w, " %s", program->tensors[step->in[i]].name);
        if (step->layer != HR_NONE) put(&w, "   (layer %d)", step->layer);
        put(&w, "\n");
    }
}
