/* SPDX-License-Identifier: Apache-2.0 */
/* sections/assembly.c - shared building blocks of sections. */
#include "sections/assembly.h"

#include <stddef.h>

#include "base/checked.h"
#include "graph/service.h"
#include "model/adapter.h"
#include "model/blocks.h"
#include "model/layer_schema.h"
#include "model/nsa.h"
#include "model/optimizer.h"
#include "ops/host/host.h"
#include "ops/linear/linear_build.h"
#include "ops/list.h"
#include "ops/loss/loss_build.h"
#include "ops/magnitude/magnitude_build.h"
#include "sections/assemble.h"
#include "sections/head.h"

hr_model_limits hr_model_limits_of(const hr_config *config)
{
    /* Of a layer. Each parameter has a step in load, one in save and three in update; and a weight,
     * a master, a gradient, a part of the norm, and its states. A step forward is in three passes
     * (training, evaluation, sample), has at most two steps backward, and a clone that recomputes
     * it. If the gradient norm has a pass of its own, four of these six are repeated: ten. Its
     * tensors are outputs, gradients, and views in loops: 18 at most were seen, and
     * tests/plan/limits_test.c fails if there is no room for more. Tiles make a loop for each run
     * of attention and of the MLP: forward, backward and at most four of clones, in each of the two
     * passes. The rest is what is outside of the layers. */
    enum { PARAM_STEPS = 5, PARAM_TENSORS = 4, STEP_STEPS = 10, STEP_TENSORS = 20, LOOPS = 16 };
    enum { NSA_LOOPS = 12 }; /* strips of its matrices, in two passes */
    enum { REST_STEPS = 200, REST_TENSORS = 300, REST_LOOPS = 48, REST_PARAMS = 24 };
    /* A stored matrix is dequantized for each step that reads it: forward in training, evaluation
     * and sample, backward and its clone, of which training may repeat three. Its scales count as a
     * parameter. */
    enum { READERS = 8 };
    hr_state states[HR_STATES_MAX];
    const int32_t count = hr_config_states(config, states);
    const int32_t layers = (int32_t)config->model.n_layers;
    const hr_layer_size size = hr_layer_size_of(config);
    const bool stored = hr_config_weights(config) != HR_WEIGHTS_COMPUTE;
    const int32_t scales = stored ? size.matrices : 0, params = size.params + scales;
    /* In a file, each of these readers has a transfer that begins and one that waits, and a window
     * for the weight and for its scales. */
    const bool away = config->memory.weights == HR_PLACE_FILE;
    const int32_t head = hr_head_most(config);
    const int32_t fetched = away ? size.matrices : 0;
    const int32_t clones = config->memory.recompute_again ? size.steps : 0; /* the second ones */
    const int32_t steps = STEP_STEPS * size.steps + clones + PARAM_STEPS * params +
                          READERS * scales + 2 * READERS * fetched;
    const int32_t tensors = STEP_TENSORS * size.steps + HR_OUT_MAX * clones +
                            (PARAM_TENSORS + count) * params + READERS * scales +
                            2 * READERS * fetched;
    hr_model_limits limits = { .steps = steps * layers + REST_STEPS + head,
                               .tensors = tensors * layers + REST_TENSORS + head,
                               .loops = (LOOPS + (hr_nsa_is_on(config) ? NSA_LOOPS : 0)) * layers +
                                        REST_LOOPS,
                               .params = params * layers + REST_PARAMS + size.rest_params };
    if (config->memory.spill == HR_SPILL_AUTO) {
        const int32_t fetches = config->memory.recompute_again ? 3 : 1;
        limits.steps += HR_SPILL_STEPS * fetches * layers;
        limits.tensors += HR_SPILL_TENSORS * fetches * layers;
    }
    if (config->memory.moments != HR_PLACE_FILE) return limits;
    const int64_t piece = hr_piece_elements(size.largest);
    const int64_t pieces = (size.elements / piece + params) * layers + size.rest_elements / piece +
                           REST_PARAMS;
    limits.steps += (int32_t)hr_transfer_steps(limits.params, pieces, count);
    limits.tensors += (int32_t)hr_transfer_tensors(limits.params, pieces, count);
    return limits;
}

hr_status hr_assembly_begin(hr_assembly *a, const hr_config *config, const hr_backend *backend,
                            bool inference, hr_region *region, hr_program *program, hr_error *err)
{
    const hr_model_limits limits = hr_model_limits_of(config);
    hr_status status = hr_adapter_check_switched(config, err);
    if (status == HR_OK && !inference) status = hr_nsa_check_length(config, err);
    if (status == HR_OK)
        status = hr_program_place(region, backend, limits.steps, limits.tensors, limits.loops,
                                  limits.params, program, err);
    if (status != HR_OK) return status;
    if (config->memory.moments == HR_PLACE_FILE)
        program->piece_elements = hr_piece_elements(hr_layer_size_of(config).largest);
    program->dtype = hr_config_dtype(config);
    program->in_blocks = config->memory.spill == HR_SPILL_AUTO && !inference;
    program->again = config->memory.recompute_again;
    *a = (hr_assembly){
        .builder = { .program = program,
                     .dtype = hr_config_dtype(config),
                     .T = config->train.seq_len,
                     .layer = HR_NONE,
                     .weights_alone = inference,
                     .weights_away = config->memory.weights == HR_PLACE_FILE,
                     .short_tables = inference,
                     .stored_weights = hr_config_weights(config),
                     .adapter_dropout = config->train.adapter.dropout,
                     .rule = hr_rules_of,
                     .adapter = hr_rules_adapter,
                     .rule_of = &a->rules,
                     .err = err },
        .config = config,
        .rules = { config, NULL },
        .family = hr_family_of(config),
        .region = region,
        .kept_bytes = region->used,
    };
    return hr_model_open(config, config->model.n_layers, region, &a->model, err);
}

hr_status hr_assembly_end(hr_assembly *a, hr_error *err)
{
    a->region->used = a->kept_bytes;
    hr_status status = hr_build_status(&a->builder);
    if (status == HR_OK) status = hr_service_check_sections(a->builder.program, err);
    return status == HR_OK ? hr_backend_check(a->builder.program, err) : status;
}

void hr_assembly_section(hr_assembly *a, hr_loop_id id, int64_t rows, bool training)
{
    a->builder.rows = rows;
    a->builder.training = training;
    a->builder.separate = false;
    hr_build_known_loop_open(&a->builder, id, 1);
}

hr_step *hr_assembly_host(hr_assembly *a, int32_t op, int32_t param, int64_t staging_bytes)
{
    const hr_host_attr attr = { param, staging_bytes };
    return hr_build_step(&a->builder, op, &attr, sizeof attr);
}

int32_t hr_assembly_tokens(hr_assembly *a, const char *name, int32_t home)
{
    const int32_t made = hr_build_rows(&a->builder, name, HR_I32, 1);
    if (made == HR_NONE) return made;
    a->builder.program->tensors[made].role = HR_ROLE_INPUT;
    a->builder.program->tensors[made].home = home;
    return made;
}

int64_t hr_assembly_staging(const hr_param *param, int64_t most)
{
    const int64_t K = param->dims[0], N = hr_max(param->dims[1], 1);
    const int64_t row_bytes = hr_max(K, N) * (int64_t)sizeof(float);
    return hr_max(row_bytes, hr_min(K * N * (int64_t)sizeof(float), most));
}

void hr_assembly_load(hr_assembly *a)
{
    hr_program *program = a->builder.program;
    hr_assembly_section(a, HR_LOOP_LOAD, 0, false);
    for (int32_t p = 0; p < program->param_count && a->builder.status == HR_OK; p++) {
        const hr_param *param = &program->params[p];
        const hr_tensor *weight = &program->tensors[param->weight];
        a->builder.layer = weight->layer;
        if (hr_tensor_is_away(program, param->weight)) continue;
        hr_step *step = hr_assembly_host(a, HR_OP_initialize, p,
                                         hr_assembly_staging(param, HR_LOAD_STAGING_BYTES));
        step->out[weight->dtype != HR_F32] = param->weight;
        if (param->scales != HR_NONE) step->out[HR_LOAD_SCALES] = param->scales;
    }
    a->builder.layer = HR_NONE;
    hr_build_lengths(&a->builder, true);
    if (a->family->tables) a->family->tables(&a->builder, a->config, &a->model);
    hr_build_loop_close(&a->builder);
}

int32_t hr_assembly_logits(hr_assembly *a, int32_t hidden)
{
    a->builder.block = HR_BLOCK_HEAD;
    if (a->family->expand) hidden = a->family->expand(&a->builder, a->config, &a->model, hidden);
    return hr_block_product(&a->builder, "logits", hidden, a->model.head, HR_NONE, HR_ACT_NONE,
                            HR_NONE, 0);
}

void hr_assembly_head(hr_assembly *a, int32_t hidden, int32_t targets, int32_t scale,
                      int32_t loss_sum, int64_t sampling_bytes)
{
    const int32_t logits = hr_assembly_logits(a, hidden);
    const double z = a->builder.training ? a->config->train.z_loss : 0;
    if (loss_sum != HR_NONE) hr_build_loss(&a->builder, logits, targets, scale, z, loss_sum);
    a->builder.block = HR_BLOCK_NONE;
    if (loss_sum == HR_NONE)
        hr_assembly_host(a, HR_OP_sample, HR_NONE, sampling_bytes)->in[0] = logits;
}
