/* SPDX-License-Identifier: Apache-2.0 */
/* sections/evaluation.c - builds the sections of an evaluation.
 *
 * Tables have the dtype of activations as in sections/generation.c: rows are rounded when read, so
 * a rounded table gives equal values. A table to which positions are added first stays fp32. */
#include "sections/evaluation.h"

#include "ops/list.h"
#include "sections/assembly.h"

static void build_sequences(hr_assembly *a, int64_t sequences, int64_t emit_bytes)
{
    hr_builder *builder = &a->builder;
    hr_assembly_section(a, HR_LOOP_SEQUENCES, sequences * a->config->train.seq_len, false);
    hr_build_known_loop_open(builder, HR_LOOP_SEQUENCES_BATCH, HR_MANY);
    const int32_t ids = hr_assembly_tokens(a, "ids", builder->loop);
    hr_assembly_host(a, HR_OP_prompt, HR_NONE, 0)->out[0] = ids;
    const int32_t hidden = a->family->forward(builder, a->config, &a->model, ids);
    const int32_t logits = hr_assembly_logits(a, hidden);
    hr_assembly_host(a, HR_OP_emit, HR_NONE, emit_bytes)->in[0] = logits;
    builder->block = HR_BLOCK_NONE;
    hr_build_loop_close(builder);
    hr_build_loop_close(builder);
}

hr_status hr_model_assemble_evaluation(const hr_config *config, const hr_backend *backend,
                                       int64_t sequences, int64_t emit_bytes, hr_region *region,
                                       hr_program *program, hr_error *err)
{
    hr_assembly a;
    const hr_status status = hr_assembly_begin(&a, config, backend, true, region, program, err);
    if (status != HR_OK) return status;
    a.family->params(&a.builder, config, &a.model);
    hr_assembly_load(&a);
    build_sequences(&a, sequences, emit_bytes);
    return hr_assembly_end(&a, err);
}
