/* SPDX-License-Identifier: Apache-2.0 */
/* train/refuse.c - tries changes of a recipe until it fits. */
#include "train/refuse.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/checked.h"

/* One thing to change: set once to a value, or halved down to `least`. */
typedef struct {
    const char *key;
    const char *value; /* null: halve */
    int64_t least;
    const char *price;
} change;

static const change changes[] = {
    { "memory.micro_batch", "auto", 0, "a little time" },
    { "memory.loss_chunk", "auto", 0, "a little time" },
    { "memory.recompute", "auto", 0, "time: a third of it if layers are computed again" },
    { "train.sample_tokens", "0", 0, "no sample of text" },
    { "data.words_max", 0, 65536, "refuses a text with more distinct words" },
    { "train.threads", "1", 0, "time" },
    { "train.format", "bf16", 0, "rounding of weights and activations; faster" },
    { "train.optimizer.kind", "sgd", 0, "another optimiser" },
    { "train.seq_len", 0, 16, "shorter context" },
    { "model.vocab_size", 0, 256, "fewer words" },
    { "model.n_layers", 0, 1, "a smaller model" },
    { "model.d_ff", 0, 16, "a smaller model" },
};

typedef struct {
    char *text;
    int64_t bytes, used;
} writer;

HR_PRINTF(2, 3) static void put(writer *w, const char *format, ...)
{
    va_list list;
    if (w->used >= w->bytes) return;
    va_start(list, format);
    w->used += vsnprintf(w->text + w->used, (size_t)(w->bytes - w->used), format, list);
    va_end(list);
}

/* Tries one change; true if the recipe then fits, with the value that did it. */
static bool helps(hr_memory *memory, const hr_config *config, hr_admission *admission,
                  const change *c, char value[64], int64_t *needed)
{
    hr_error ignored;
    hr_config other = *config;
    char before[64];
    if (hr_config_get(config, c->key, before, sizeof before, &ignored) != HR_OK) return false;
    if (c->value) {
        snprintf(value, 64, "%s", c->value);
        if (hr_config_set(&other, c->key, value, &ignored) != HR_OK) return false;
        *needed = hr_admit_minimum(memory, &other, admission);
        return *needed <= admission->answer.available_bytes;
    }
    long long number = 0;
    if (sscanf(before, "%lld", &number) != 1) return false;
    for (number /= 2; number >= c->least; number /= 2) {
        snprintf(value, 64, "%lld", number);
        if (hr_config_set(&other, c->key, value, &ignored) != HR_OK) return false;
        *needed = hr_admit_minimum(memory, &other, admission);
        if (*needed <= admission->answer.available_bytes) return true;
    }
    return false;
}

void hr_refuse(hr_memory *memory, const hr_config *config, hr_admission *admission, char *text,
               int64_t bytes)
{
    writer w = { text, bytes, 0 };
    char size[64];
    const hr_plan_answer *answer = &admission->answer;
    const hr_plan *plan = &admission->compiled.plan;
    int32_t largest = 0, found = 0;
    for (int32_t i = 1; i < plan->process_count; i++)
        if (plan->process[i].bytes > plan->process[largest].bytes) largest = i;
    put(&w, "does not fit\n");
    put(&w, "  needs at least  %s\n", hr_bytes_print(answer->minimum_bytes, size));
    put(&w, "  available       %s\n", hr_bytes_print(answer->available_bytes, size));
    put(&w, "  largest part    %s, %s\n", plan->process[largest].name,
        hr_bytes_print(plan->process[largest].bytes, size));
    put(&w, "\nwould fit with one of these, cheapest first\n");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char value[64];
        int64_t needed;
        if (!helps(memory, config, admission, &changes[i], value, &needed)) continue;
        char setting[128];
        snprintf(setting, sizeof setting, "%s=%s", changes[i].key, value);
        put(&w, "  %-32s %s; costs %s\n", setting, hr_bytes_print(needed, size), changes[i].price);
        found++;
    }
    if (!found)
        put(&w, "  no single change does; ask for --budget %lld\n",
            (long long)answer->minimum_bytes);
    else
        put(&w, "  --budget %-23lld the smallest plan: time, nothing else\n",
            (long long)answer->minimum_bytes);
}
