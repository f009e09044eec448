/* SPDX-License-Identifier: Apache-2.0 */
/* sections/evaluation.c - builds the sections of an evaluation.
 *
 * Tables have the dtype of activations as in sections/generation.c: rows are rounded when read, so
 * a rounded table gives equal values. A table to which positions are added first stays fp32. */
#include "sections/evaluation.h"

#include <stddef.h>

#include "ops/host/host.h"
#include "ops/list.h"
#include "sections/assembly.h"
#include "sections/head.h"

/* The base alone, and on its stream the error of each layer with adapters. */
static int32_t build_base(hr_assembly *a)
{
    hr_builder *builder = &a->builder;
    a->teaching.labels = a->targets;
    a->teaching.scale = HR_NONE;
    a->teaching.sums = hr_build_fixed(builder, "errors", HR_ROLE_SUM, HR_F64, HR_ROWS,
                                      a->teaching.slots, 0, 0);
    builder->teaching = &a->teaching;
    const int32_t hidden = a->family->forward(builder, a->config, &a->model, a->ids);
    builder->teaching = NULL;
    return hidden;
}

static void build_sequences(hr_assembly *a, int64_t sequences, int64_t emit_bytes)
{
    hr_builder *builder = &a->builder;
    hr_assembly_section(a, HR_LOOP_SEQUENCES, sequences * a->config->train.seq_len, false);
    hr_build_known_loop_open(builder, HR_LOOP_SEQUENCES_BATCH, HR_MANY);
    a->ids = hr_assembly_tokens(a, "ids", builder->loop);
    hr_step *prompt = hr_assembly_host(a, HR_OP_prompt, HR_NONE, 0);
    prompt->out[0] = a->ids;
    if (a->teaching.count) {
        const int32_t step = builder->program->step_count - 1;
        a->targets = hr_assembly_tokens(a, "targets", builder->loop);
        builder->program->steps[step].out[2] = a->targets;
    }
    builder->reveals = a->teaching.count > 0;
    const int32_t hidden = a->family->forward(builder, a->config, &a->model, a->ids);
    builder->reveals = false;
    const int32_t base = a->teaching.count ? build_base(a) : HR_NONE;
    const int32_t logits = hr_assembly_logits(a, hidden);
    hr_assembly_host(a, HR_OP_emit, HR_NONE, emit_bytes)->in[0] = logits;
    if (base != HR_NONE) {
        const int32_t standard = hr_assembly_logits(a, base);
        hr_assembly_host(a, HR_OP_emit, HR_EMIT_BASE, emit_bytes)->in[0] = standard;
    }
    builder->block = HR_BLOCK_NONE;
    hr_build_loop_close(builder);
    hr_build_loop_close(builder);
}

hr_status hr_model_assemble_evaluation(const hr_config *config, const hr_backend *backend,
                                       int64_t sequences, int64_t emit_bytes, bool strips,
                                       hr_region *region, hr_program *program, hr_error *err)
{
    hr_assembly a;
    const hr_status status = hr_assembly_begin(&a, config, backend, true, region, program, err);
    if (status != HR_OK) return status;
    a.family->params(&a.builder, config, &a.model);
    if (config->train.adapter.reports) a.teaching = hr_teaching_of(config, &a.model, program);
    hr_assembly_load(&a);
    build_sequences(&a, sequences, emit_bytes);
    const hr_status ended = hr_assembly_end(&a, err);
    return ended == HR_OK && strips && a.builder.weights_away ? hr_head_cut(program, err) : ended;
}
