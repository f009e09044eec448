/* SPDX-License-Identifier: Apache-2.0 */
/* audit/training_auto.c - values "auto" of a training file: what was taken for each, and why. */
#include <stdio.h>

#include "audit/training.h"

#include "config/config.h"

void hr_autos_note(hr_reading *r, const hr_entry *entry, hr_meaning meaning)
{
    r->autos++;
    if (r->autos > HR_AUDIT_AUTOS_MOST) return;
    r->auto_list[r->autos - 1] = (hr_audit_auto){ entry->key, meaning,
                                                  r->elsewhere ? 0 : entry->line };
}

/* What the settings have in the place of an "auto". */
static void put_taken(const hr_reading *r, hr_meaning meaning, char *to, size_t room)
{
    const hr_audit_training *t = &r->report->training;
    const hr_config *config = r->report->config;
    const int64_t update = t->micro_batch * t->accumulation * t->world;
    const char *switched = NULL;
    double real = 0;
    switch (meaning) {
    case HR_MEANS_BF16: switched = r->bf16 ? "true" : "false"; break;
    case HR_MEANS_FP16: switched = r->fp16 ? "true" : "false"; break;
    case HR_MEANS_DTYPE: switched = hr_audit_dtype_name(t->weights); break;
    case HR_MEANS_MICRO_BATCH: real = (double)t->micro_batch; break;
    case HR_MEANS_ACCUMULATION: real = (double)t->accumulation; break;
    case HR_MEANS_GLOBAL_BATCH: real = (double)update; break;
    case HR_MEANS_LENGTH: real = (double)t->seq_len; break;
    case HR_MEANS_RANK: real = (double)t->lora_rank; break;
    case HR_MEANS_RATE: real = config->train.optimizer.lr; break;
    case HR_MEANS_DECAY: real = config->train.optimizer.weight_decay; break;
    case HR_MEANS_BETA1: real = config->train.optimizer.beta1; break;
    case HR_MEANS_BETA2: real = config->train.optimizer.beta2; break;
    case HR_MEANS_EPS: real = config->train.optimizer.eps; break;
    case HR_MEANS_CLIP: real = config->train.optimizer.clip; break;
    case HR_MEANS_WARMUP: real = (double)config->train.schedule.warmup_steps; break;
    case HR_MEANS_OPTIMIZER: switched = "adamw"; break;
    default: switched = "its default"; break;
    }
    if (switched) snprintf(to, room, "%s", switched);
    else snprintf(to, room, "%.10g", real);
}

static const char *reason_of(const hr_reading *r, const hr_audit_auto *found)
{
    const hr_audit_training *t = &r->report->training;
    const bool axolotl = r->report->kind == HR_AUDIT_AXOLOTL;
    if (found->meaning == HR_MEANS_DTYPE) return "is the dtype of the published weights";
    if (axolotl && found->meaning == HR_MEANS_BF16 && r->fp16)
        return t->lacks_bf16 ? "is fp16 on a device without bf16" : "gives way to fp16: true";
    if (axolotl && found->meaning == HR_MEANS_BF16)
        return "is bf16 on a device that has it, else fp16";
    if (r->report->kind == HR_AUDIT_DEEPSPEED)
        return "is what the file of the trainer says, which is not given";
    return found->line ? "is the default of the trainer" : "is what the file of the trainer says";
}

void hr_autos_find(hr_reading *r)
{
    char taken[48];
    for (int32_t i = 0; i < r->autos && i < HR_AUDIT_AUTOS_MOST; i++) {
        const hr_audit_auto *found = &r->auto_list[i];
        put_taken(r, found->meaning, taken, sizeof taken);
        hr_audit_find(r->report, found->line, "%.80s: auto %s: taken as %s", found->key,
                      reason_of(r, found), taken);
    }
    if (r->autos > HR_AUDIT_AUTOS_MOST)
        hr_audit_find(r->report, 0, "%d more values are \"auto\"",
                      (int)(r->autos - HR_AUDIT_AUTOS_MOST));
}
