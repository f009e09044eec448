/* SPDX-License-Identifier: Apache-2.0 */
/* admission/answer.c - reads the answer off a compiled plan: bytes, times, and the strategy as
 * text. */
#include "admission/answer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/account.h"
#include "graph/backend.h"
#include "model/attention_share.h"
#include "plan/strategy_file.h"
#include "plan/timeline.h"
#include "sections/assemble.h"

static const char *const packing_words
    [] = { [HR_PACK_AT_FLOOR] = "at floor", [HR_PACK_PROVEN] = "proven", [HR_PACK_OPEN] = "open" };

/* FLOP of training for one token by the usual convention: three times the products of the forward
 * pass, with attention counted over the pairs that the mask keeps. With frozen weights: the
 * products that remain. */
static int64_t flops_per_token(const hr_config *config, const hr_program *program)
{
    const int64_t T = config->train.seq_len;
    const bool freezes = hr_config_freezes(config);
    int64_t whole = 0, rest = 0; /* quotients and remainders by T, so that no sum overflows */
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        const hr_op *op = hr_step_op(program, step);
        const hr_loop_id section = hr_step_section(program, s);
        if (!op->flops || (section != HR_LOOP_STEP && section != HR_LOOP_UPDATE)) continue;
        const bool forward = step->direction == HR_DIR_FORWARD;
        const bool counted = forward || (step->direction == HR_DIR_BACKWARD && freezes);
        const int64_t flops = counted ? op->flops(step->attr, T) : 0;
        whole += flops / T;
        rest += flops % T;
    }
    const int64_t times = freezes ? 1 : 3;
    return times * whole + times * rest / T;
}

void hr_answer_describe_device(const hr_device_choice *choice, hr_plan_device *device)
{
    const hr_device_facts *facts = choice->device;
    *device = (hr_plan_device){ .is_card = facts->kind == HR_DEVICE_GPU,
                                .own = facts->own,
                                .usable_bytes = facts->usable_bytes,
                                .reserve_bytes = choice->reserve_bytes,
                                .host_bytes = choice->host_bytes,
                                .disk_bytes = choice->disk_bytes };
    memcpy(device->name, facts->name, sizeof device->name);
    memcpy(device->title, facts->title, sizeof device->title);
}

void hr_answer_describe(hr_admission *a)
{
    const hr_plan *plan = &a->compiled.plan;
    const hr_strategy *strategy = &a->compiled.strategy;
    hr_plan_answer *answer = &a->answer;
    hr_writer writer = { answer->strategy, sizeof answer->strategy };
    const int64_t T = a->config.train.seq_len;
    answer->process_bytes = plan->process.bytes;
    answer->arena_bytes = plan->arena_bytes;
    answer->floor_bytes = plan->floor_bytes;
    answer->bound_bytes = a->compiled.packing.bound_bytes;
    if (!answer->device.is_card)
        answer->kernel_bytes = hr_account_kernel(plan->process.page_bytes, plan->process.bytes,
                                                 plan->process.threads, plan->process.has_file);
    answer->parameters = hr_program_parameters(&a->compiled.program);
    answer->trained_parameters = hr_program_trained_parameters(&a->compiled.program);
    answer->base_bytes = hr_program_base_bytes(&a->compiled.program);
    answer->adapter_bytes = hr_program_adapter_bytes(&a->compiled.program);
    answer->wide_adapters = hr_program_wide_adapters(&a->compiled.program);
    answer->micro_batch = a->config.memory.micro_batch;
    answer->loss_chunk = strategy->loss_chunk ? strategy->loss_chunk : answer->micro_batch * T;
    answer->flops_per_token = flops_per_token(&a->config, &a->compiled.program);
    const hr_attention_share share = hr_attention_share_of(&a->config);
    answer->attention_kept = share.kept;
    answer->attention_causal = share.causal;
    const hr_timeline times = hr_timeline_of(&a->compiled.program, &a->rates);
    answer->step_seconds = hr_cost_seconds(&a->rates, times.step);
    answer->compute_seconds = hr_cost_seconds(&a->rates, times.compute);
    answer->file_seconds = hr_cost_seconds(&a->rates, times.file);
    answer->norm_pass = hr_program_loop(&a->compiled.program, HR_LOOP_NORM) != HR_NONE;
    answer->away_bytes = a->compiled.plan.spaces[HR_SPACE_BASE].bytes;
    answer->read_bytes = times.read_bytes;
    answer->read_rate = hr_rates_file_read(&a->rates);
    answer->read_rate_measured = a->rates.file_read_rate > 0;
    if (answer->bound_seconds > 0)
        answer->bound_seconds = fmax(answer->bound_seconds, answer->file_seconds);
    answer->threads = plan->process.threads;
    snprintf(answer->rung, sizeof answer->rung, "%s", plan->process.rung);
    snprintf(answer->packing, sizeof answer->packing, "%s",
             packing_words[a->compiled.packing.proof]);
    hr_strategy_print(&a->config, strategy, &writer);
}
