/* SPDX-License-Identifier: Apache-2.0 */
/* sections/assemble.c - builds the sections of a run, one function each. */
#include "sections/assemble.h"

#include <string.h>

#include "base/checked.h"
#include "graph/weight_format.h"
#include "headroom/stages.h"
#include "model/adapter.h"
#include "model/optimizer.h"
#include "ops/host/host.h"
#include "ops/last_row/last_row_build.h"
#include "ops/linear/linear_build.h"
#include "ops/list.h"
#include "ops/loss/loss_build.h"
#include "ops/magnitude/magnitude_build.h"
#include "ops/penalty/penalty_build.h"
#include "ops/update/update_build.h"
#include "sections/assembly.h"
#include "sections/head.h"

static int32_t scalar(hr_assembly *a, const char *name, hr_role role)
{
    return hr_build_fixed(&a->builder, name, role, HR_F64, HR_ROWS, 1, 0, 0);
}

static hr_step *load_step(hr_assembly *a, int32_t param)
{
    const hr_param *loaded = &a->builder.program->params[param];
    return hr_assembly_host(a, HR_OP_initialize, param,
                            hr_assembly_staging(loaded, HR_LOAD_STAGING_BYTES));
}

/* New and continued runs share one program: either may read a file here. States outside of the
 * arena are loaded one at a time, so that one window of the size of the gradient is enough. */
static void build_load(hr_assembly *a)
{
    hr_program *program = a->builder.program;
    hr_assembly_section(a, HR_LOOP_LOAD, 0, false);
    for (int32_t p = 0; p < program->param_count && a->builder.status == HR_OK; p++) {
        hr_param *param = &program->params[p];
        const hr_tensor *master = &program->tensors[param->master];
        a->builder.layer = master->layer;
        if (hr_tensor_is_away(program, param->weight)) continue;
        hr_step *step = load_step(a, p);
        step->out[master->dtype != HR_F32] = param->master; /* or a weight without master */
        if (param->weight != param->master) step->out[1] = param->weight;
        hr_build_states(&a->builder, p);
        const bool constant = param->rule.frozen && !param->rule.rests;
        for (int32_t i = 0; i < program->state_count && !constant; i++)
            if (!hr_tensor_is_away(program, param->states[i])) step->out[2 + i] = param->states[i];
        for (int32_t i = 0; i < program->state_count; i++)
            if (hr_tensor_is_away(program, param->states[i]))
                load_step(a, p)->out[2 + i] = param->states[i];
        if (param->scales != HR_NONE) step->out[HR_LOAD_SCALES] = param->scales; /* it is frozen */
    }
    a->builder.layer = HR_NONE;
    hr_build_lengths(&a->builder, true);
    if (a->family->tables) a->family->tables(&a->builder, a->config, &a->model);
    hr_build_loop_close(&a->builder);
}

/* The products of parts of adapters that all micro-batches read. */
static void build_grams(hr_assembly *a)
{
    const hr_program *program = a->builder.program;
    const bool needs = a->teaching.count && a->teaching.regularisation > 0;
    for (int32_t p = 0; p < program->param_count && needs; p++) {
        const int32_t first = program->params[p].adapter;
        if (first == HR_NONE || program->params[first].rule.form != HR_ADAPTER_OUTER) continue;
        a->builder.layer = program->tensors[program->params[p].weight].layer;
        hr_build_gram(&a->builder, first);
    }
    a->builder.layer = HR_NONE;
}

/* Values that all micro-batches share are known before the first; each micro-batch reads its own
 * text. */
static void build_fetch(hr_assembly *a)
{
    hr_assembly_section(a, HR_LOOP_FETCH, 0, false);
    a->loss_scale = hr_build_fixed(&a->builder, "loss scale", HR_ROLE_INPUT, HR_F64, HR_ROWS, 2, 0,
                                   0);
    a->lr = scalar(a, "learning rate", HR_ROLE_INPUT);
    hr_step *step = hr_assembly_host(a, HR_OP_batch, HR_NONE, 0);
    step->out[2] = a->loss_scale;
    step->out[3] = a->lr;
    build_grams(a);
    hr_build_loop_close(&a->builder);
}

static void build_text(hr_assembly *a, const char *ids, const char *targets, const char *begins)
{
    a->ids = hr_assembly_tokens(a, ids, a->builder.loop);
    a->targets = hr_assembly_tokens(a, targets, a->builder.loop);
    a->builder.separate = a->config->data.documents == HR_DOCUMENTS_SEPARATE;
    if (a->builder.separate) a->builder.begins = hr_assembly_tokens(a, begins, a->builder.loop);
    a->builder.block = HR_BLOCK_EMBED;
    hr_step *step = hr_assembly_host(a, HR_OP_batch, HR_NONE, 0);
    step->out[0] = a->ids;
    step->out[1] = a->targets;
    if (a->builder.separate) step->out[4] = a->builder.begins;
    a->builder.block = HR_BLOCK_NONE;
}

/* A step of layers that learn to equal others. */
static void build_teaching(hr_assembly *a, int32_t first, hr_region *scratch)
{
    hr_builder *builder = &a->builder;
    hr_teaching *teaching = &a->teaching;
    a->loss_sum = hr_build_fixed(builder, "loss sum", HR_ROLE_SUM, HR_F64, HR_ROWS, teaching->slots,
                                 0, 0);
    teaching->labels = a->targets;
    teaching->scale = a->loss_scale;
    teaching->sums = a->loss_sum;
    teaching->scratch = scratch;
    builder->teaching = teaching;
    (void)a->family->forward(builder, a->config, &a->model, a->ids);
    builder->teaching = NULL;
    if (builder->status == HR_OK && !hr_teaching_is_alone(teaching))
        builder->status = hr_build_derivative(builder, first, builder->program->step_count - 1,
                                              scratch, builder->err);
    hr_build_loop_close(builder);
}

static void build_step(hr_assembly *a, hr_region *scratch)
{
    hr_builder *builder = &a->builder;
    hr_assembly_section(a, HR_LOOP_STEP, a->config->train.batch * a->config->train.seq_len, true);
    build_text(a, "ids", "targets", "begins");
    builder->direction = HR_DIR_FORWARD;
    const int32_t first = builder->program->step_count;
    if (a->teaching.count) {
        build_teaching(a, first, scratch);
        return;
    }
    const int32_t hidden = a->family->forward(builder, a->config, &a->model, a->ids);
    a->loss_sum = hr_build_fixed(builder, "loss sum", HR_ROLE_SUM, HR_F64, HR_ROWS,
                                 a->config->train.z_loss > 0 ? 2 : 1, 0, 0);
    hr_assembly_head(a, hidden, a->targets, a->loss_scale, a->loss_sum, 0);
    if (builder->status == HR_OK)
        builder->status = hr_build_derivative(builder, first, builder->program->step_count - 1,
                                              scratch, builder->err);
    hr_build_loop_close(builder);
}

/* The gradients of what keeps adapters of a token small, and its value in the loss. */
static void build_penalties(hr_assembly *a)
{
    const hr_program *program = a->builder.program;
    const double weight = a->teaching.regularisation / (2.0 * a->teaching.count);
    for (int32_t p = 0; p < program->param_count && a->teaching.count && weight > 0; p++) {
        const hr_param *param = &program->params[p];
        a->builder.layer = program->tensors[param->weight].layer;
        if (param->adapts != HR_NONE && param->rule.form == HR_ADAPTER_DIAGONAL)
            hr_build_penalty(&a->builder, p, weight, a->loss_scale, a->loss_sum,
                             hr_teaching_slot(&a->teaching, program, p));
        else if (param->adapts != HR_NONE && param->lengths != HR_NONE)
            hr_build_gram_bwd(&a->builder, p);
    }
    a->builder.layer = HR_NONE;
}

static void build_update(hr_assembly *a, hr_region *scratch)
{
    const hr_program *program = a->builder.program;
    const hr_optimizer *optimizer = &hr_optimizers[a->config->train.optimizer.kind];
    hr_assembly_section(a, HR_LOOP_UPDATE, 0, false);
    hr_build_late_steps(&a->builder);
    hr_build_merges(&a->builder);
    build_penalties(a);
    const bool scaled = a->builder.dtype == HR_F16;
    const int32_t norm_scale = hr_build_norm_scale(&a->builder, a->config->train.optimizer.clip,
                                                   a->config->memory.product_norm,
                                                   scaled ? a->loss_scale : HR_NONE, scratch);
    /* The report precedes the first update, so that a loss that is not finite changes no weight. */
    hr_step *step = hr_assembly_host(a, HR_OP_report, a->teaching.count ? HR_REPORT_TERMS : HR_NONE,
                                     0);
    step->in[0] = a->loss_sum;
    step->in[1] = norm_scale;
    /* With neither clipping nor a scaled loss, no update depends on the norm. */
    const int32_t scale = hr_config_needs_norm(a->config) ? norm_scale : HR_NONE;
    for (int32_t p = 0; p < program->param_count; p++)
        optimizer->update(&a->builder, a->config, p, scale, a->lr);
    hr_build_lengths(&a->builder, false);
    const int32_t average = hr_program_average(program);
    for (int32_t p = 0; p < program->param_count && average != HR_NONE; p++)
        hr_build_average(&a->builder, p, average, a->config->train.ema_decay);
    hr_build_loop_close(&a->builder);
}

/* Iterations of an evaluation. They cover the recipe's eval_batches, so that the text read does not
 * depend on the micro-batch. */
static int64_t evaluation_iterations(const hr_config *config, int64_t sequences)
{
    int64_t turns = 0;
    const int64_t parts = hr_max(config->train.batch / sequences, 1);
    const int64_t at_once = sequences * config->train.seq_len;
    if (config->stage.count) { /* the same text in all stages */
        const int64_t tokens = hr_config_valid_tokens(config);
        turns = tokens / at_once + (tokens % at_once != 0);
        return turns ? turns : HR_MANY;
    }
    const bool counted = hr_checked_mul(config->train.eval_batches, parts, &turns);
    return counted && turns ? turns : HR_MANY;
}

static void build_evaluation(hr_assembly *a, int64_t sequences)
{
    hr_builder *builder = &a->builder;
    hr_assembly_section(a, HR_LOOP_EVALUATION, sequences * a->config->train.seq_len, false);
    const int32_t loss_sum = scalar(a, "evaluation loss sum", HR_ROLE_SUM);
    hr_build_known_loop_open(builder, HR_LOOP_EVALUATION_BATCH,
                             evaluation_iterations(a->config, sequences));
    build_text(a, "evaluation ids", "evaluation targets", "evaluation begins");
    const int32_t hidden = a->family->forward(builder, a->config, &a->model, a->ids);
    hr_assembly_head(a, hidden, a->targets, HR_NONE, loss_sum, 0);
    hr_build_loop_close(builder);
    hr_step *step = hr_assembly_host(a, HR_OP_report, HR_NONE, 0);
    step->in[0] = loss_sum;
    hr_build_loop_close(builder);
}

static void build_sample(hr_assembly *a)
{
    hr_builder *builder = &a->builder;
    hr_assembly_section(a, HR_LOOP_SAMPLE, a->config->train.seq_len, false);
    hr_build_loop_open(builder, "sampled token", hr_max(a->config->train.sample_tokens, 1));
    const int32_t ids = hr_assembly_tokens(a, "prompt ids", builder->loop);
    hr_assembly_host(a, HR_OP_prompt, HR_NONE, 0)->out[0] = ids;
    const int32_t hidden = a->family->forward(builder, a->config, &a->model, ids);
    const int32_t last = hr_build_last_row(builder, "last hidden", hidden);
    hr_assembly_head(a, last, HR_NONE, HR_NONE, HR_NONE, 0);
    hr_build_loop_close(builder);
    hr_build_loop_close(builder);
}

static hr_step *save_step(hr_assembly *a, int32_t param)
{
    const hr_param *saved = &a->builder.program->params[param];
    return hr_assembly_host(a, HR_OP_save, param,
                            hr_assembly_staging(saved, HR_SAVE_STAGING_BYTES));
}

/* The staging buffer of a parameter has the size of its gradient, so saving is never the peak, and
 * a run without saving has the same arena. */
static void build_save(hr_assembly *a)
{
    const hr_program *program = a->builder.program;
    hr_assembly_section(a, HR_LOOP_SAVE, 0, false);
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        if (param->rule.base) continue;
        hr_step *step = save_step(a, p);
        step->in[0] = param->master;
        for (int32_t i = 0; i < program->state_count; i++)
            if (!hr_tensor_is_away(program, param->states[i])) step->in[1 + i] = param->states[i];
        for (int32_t i = 0; i < program->state_count; i++)
            if (hr_tensor_is_away(program, param->states[i]))
                save_step(a, p)->in[1 + i] = param->states[i];
        if (param->scales != HR_NONE) step->in[HR_SAVE_SCALES] = param->scales;
    }
    hr_build_loop_close(&a->builder);
}

/* A format that no weight can have is refused: it would change nothing. */
static hr_status check_stored(const hr_config *config, const hr_program *program, hr_error *err)
{
    const hr_weight_format *format = hr_weight_format_of(hr_config_weights(config));
    const char *trained = NULL;
    if (format->trains) return HR_OK;
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        const bool matrix = param->dims[1] && program->tensors[param->weight].layer != HR_NONE;
        if (param->format != HR_WEIGHTS_COMPUTE) return HR_OK;
        if (!trained && matrix) trained = param->external_name;
    }
    if (!trained) return HR_OK;
    return hr_fail(
        err, HR_USAGE,
        "%s is trained, as all matrices of layers are, and model.weights=%s is for frozen "
        "weights; freeze some with train.freeze, or use model.weights=compute",
        trained, format->name);
}

/* Only weights that do not change stay in files. */
static hr_status check_away(const hr_config *config, const hr_program *program, hr_error *err)
{
    bool away = false;
    if (config->memory.weights != HR_PLACE_FILE) return HR_OK;
    if (!program->adapts)
        return hr_fail(err, HR_USAGE,
                       "memory.weights=file is for a frozen model under adapters: give "
                       "train.adapter.kind");
    for (int32_t p = 0; p < program->param_count; p++)
        away |= hr_tensor_is_away(program, program->params[p].weight);
    if (away) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "memory.weights=file has no effect: no frozen matrix has %d KiB or more",
                   HR_STATE_AWAY_BYTES >> 10);
}

hr_status hr_model_assemble_proxy(const hr_config *config, const hr_backend *backend,
                                  const hr_trained *trained, const uint8_t *kinds,
                                  int64_t evaluation_sequences, hr_region *region,
                                  hr_program *program, hr_error *err)
{
    hr_assembly a;
    hr_status status = hr_assembly_begin(&a, config, backend, false, region, program, err);
    if (status != HR_OK) return status;
    for (int64_t l = 0; kinds && l < config->model.n_layers; l++) a.model.layers[l].kind = kinds[l];
    a.builder.no_masters = config->train.state.master != HR_MASTERS_FP32;
    a.rules.trained = trained;
    program->loops[0].count = config->train.steps ? config->train.steps : HR_MANY;
    a.family->params(&a.builder, config, &a.model);
    status = hr_build_status(&a.builder);
    if (status == HR_OK && !trained) status = hr_adapter_check(config, program, err);
    if (status == HR_OK && !trained) status = hr_rules_check_names(config, program, err);
    if (status == HR_OK && !trained) status = check_stored(config, program, err);
    if (status == HR_OK && !trained) status = check_away(config, program, err);
    if (status != HR_OK) return status;
    program->state_count = hr_config_states(config, program->states);
    a.teaching = hr_teaching_of(config, &a.model, program);
    build_load(&a);
    build_fetch(&a);
    build_step(&a, region);
    build_update(&a, region);
    /* A recipe without data may still get some. */
    if (config->data.valid[0] || !config->data.train[0]) build_evaluation(&a, evaluation_sequences);
    if (config->train.sample_tokens) build_sample(&a);
    build_save(&a);
    status = hr_assembly_end(&a, err);
    return status == HR_OK && a.builder.weights_away ? hr_head_cut(program, err) : status;
}

hr_status hr_model_assemble(const hr_config *config, const hr_backend *backend,
                            int64_t evaluation_sequences, hr_region *region, hr_program *program,
                            hr_error *err)
{
    return hr_model_assemble_proxy(config, backend, NULL, NULL, evaluation_sequences, region,
                                   program, err);
}

static int64_t elements_of(const hr_param *param)
{
    return param->dims[0] * hr_max(param->dims[1], 1);
}

int64_t hr_program_parameters(const hr_program *program)
{
    int64_t count = 0;
    for (int32_t p = 0; p < program->param_count; p++) count += elements_of(&program->params[p]);
    return count;
}

int64_t hr_program_trained_parameters(const hr_program *program)
{
    int64_t count = 0;
    for (int32_t p = 0; p < program->param_count; p++)
        if (!program->params[p].rule.frozen) count += elements_of(&program->params[p]);
    return count;
}

static int64_t bytes_of(const hr_program *program, int32_t tensor)
{
    return tensor == HR_NONE ? 0 : hr_tensor_bytes(&program->tensors[tensor]);
}

int64_t hr_program_base_bytes(const hr_program *program)
{
    int64_t bytes = 0;
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        if (!param->rule.base) continue;
        bytes += bytes_of(program, param->weight) + bytes_of(program, param->scales);
    }
    return bytes;
}

int64_t hr_program_adapter_bytes(const hr_program *program)
{
    int64_t bytes = 0;
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        if (!program->adapts || !hr_param_is_in_adapters(param)) continue;
        bytes += bytes_of(program, param->weight);
        if (param->master != param->weight) bytes += bytes_of(program, param->master);
        for (int32_t i = 0; i < program->state_count; i++)
            bytes += bytes_of(program, param->states[i]);
    }
    return bytes;
}

int64_t hr_program_wide_adapters(const hr_program *program)
{
    int64_t count = 0;
    for (int32_t p = 0; p < program->param_count; p++) {
        const int64_t *dims = program->params[p].dims;
        count += program->params[p].adapts == HR_NONE &&
                 hr_program_rank(program, p) > hr_min(dims[0], dims[1]);
    }
    return count;
}
