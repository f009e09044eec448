/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks.c - layers and branches that model families share. */
#include "model/blocks.h"

#include <math.h>

#include "base/checked.h"
#include "model/layer_types.h"
#include "ops/activation/activation_build.h"
#include "ops/dropout/dropout_build.h"
#include "ops/embed/embed_build.h"
#include "ops/host/host.h"
#include "ops/linear/linear_build.h"
#include "ops/magnitude/magnitude_build.h"
#include "ops/match/match_build.h"
#include "ops/modulate/modulate_build.h"
#include "ops/norm/norm_build.h"
#include "ops/penalty/penalty_build.h"
#include "ops/select/select_build.h"

/* Whether a parameter has an adapter that is a function of the token, and that is used. */
static bool is_modulated(const hr_program *program, int32_t param)
{
    const int32_t a = param < program->param_count ? program->params[param].adapter : HR_NONE;
    if (a == HR_NONE) return false;
    return program->params[a].rule.form != HR_ADAPTER_LOW_RANK && !program->params[a].rule.off;
}

void hr_block_layers(hr_builder *builder, hr_model *model, const hr_layer_weight *weights,
                     int32_t count)
{
    const int64_t L = model->layer_count;
    int32_t *tensors = hr_region_take(model->region, L * count, sizeof *tensors);
    if (!tensors && hr_build_status(builder) == HR_OK)
        builder->status = hr_fail(builder->err, HR_FAILURE,
                                  "out of memory for the weights of %lld layers", (long long)L);
    for (int64_t i = 0; i < L && tensors; i++, tensors += count) {
        model->layers[i].weights = tensors;
        builder->layer = (int16_t)i;
        for (int32_t w = 0; w < count; w++) {
            const int32_t before = builder->program->param_count;
            tensors[w] = weights[w].name ? hr_build_param(builder, weights[w].shape,
                                                          weights[w].name, (long long)i)
                                         : HR_NONE;
            model->layers[i].modulated |= is_modulated(builder->program, before);
        }
    }
    builder->layer = HR_NONE;
}

void hr_block_table(hr_builder *builder, const hr_config *config, hr_model *model, double std,
                    const char *name)
{
    const int64_t V = config->model.vocab_size, D = config->model.d_model;
    const bool adds = model->traits & HR_LEARNS_POSITIONS;
    const hr_param_shape alone = { adds ? HR_PARAM_ADDEND : HR_PARAM_TABLE, V, D, std };
    const hr_param_shape tied = { HR_PARAM_MATRIX, D, V, std, false, true, .looked_up = true };
    model->table = hr_build_param(builder, model->tied ? tied : alone, "%s", name);
    model->positions = model->factor = HR_NONE;
}

int32_t hr_block_embed(hr_builder *builder, const char *name, int32_t ids, int32_t table,
                       int32_t positions, int64_t skip)
{
    const hr_program *program = builder->program;
    int32_t y = hr_build_embed(builder, name, ids, table, positions, skip);
    for (int32_t p = hr_build_adapter_of(builder, table); p != HR_NONE;
         p = program->params[p].adapter) {
        const hr_param *a = &program->params[p], *b = a + 1;
        const int32_t low = hr_build_embed(builder, "low", ids, a->weight, HR_NONE, 0);
        const int32_t scaled = hr_build_dropout(builder, "low_scaled", low, HR_NONE, 0,
                                                a->adapter_scale);
        y = hr_build_linear(builder, name, scaled, b->weight, HR_NONE, HR_ACT_NONE, y);
    }
    return y;
}

void hr_block_head(hr_builder *builder, const hr_config *config, hr_model *model, double std,
                   const char *name)
{
    const hr_param_shape shape = {
        HR_PARAM_MATRIX, config->model.d_model, config->model.vocab_size, std, false, true
    };
    model->head = model->tied ? model->table : hr_build_param(builder, shape, "%s", name);
}

int32_t hr_teaching_slot(const hr_teaching *teaching, const hr_program *program, int32_t param)
{
    int32_t slot = teaching->count;
    for (int32_t p = 0; p < param; p++) slot += program->params[p].adapts != HR_NONE;
    return slot;
}

hr_teaching hr_teaching_of(const hr_config *config, const hr_model *model,
                           const hr_program *program)
{
    const hr_config_adapter *adapter = &config->train.adapter;
    hr_teaching teaching = { .measure = adapter->measure == HR_NPT_COSINE ? HR_MATCH_COSINE
                                                                          : HR_MATCH_MSE,
                             .direct = adapter->objective == HR_NPT_DIRECT,
                             .regularisation = adapter->regularisation };
    hr_npt_phase phases[HR_NPT_PHASES_MOST];
    if (adapter->kind != HR_ADAPTER_NPT || adapter->objective == HR_NPT_LM) return teaching;
    teaching.inputs = hr_npt_inputs_of(config, phases, &teaching.mix.phases);
    for (int32_t i = 0; i < teaching.mix.phases; i++) {
        teaching.mix.phase[i].step = phases[i].step;
        teaching.mix.phase[i].share = phases[i].share;
    }
    for (int64_t l = 0; l < model->layer_count; l++) teaching.count += model->layers[l].modulated;
    teaching.slots = hr_teaching_slot(&teaching, program, program->param_count);
    return teaching;
}

/* A layer with adapters beside the standard one, and its objective. Both have one attention.
 * Returns what the next layer reads. */
static int32_t taught_layer(hr_builder *builder, const hr_config *config, const hr_model *model,
                            const hr_layer *layer, int32_t h, int32_t slot,
                            hr_block_branch *attention, hr_block_branch *mlp)
{
    const hr_teaching *teaching = builder->teaching;
    const int32_t first = builder->program->step_count;
    const int32_t a = attention(builder, config, model, layer, (hr_block_rows){ h, HR_NONE });
    const int32_t mid = hr_build_mark(builder, hr_build_dropout(builder, "mid", a, h, 0, 1),
                                      HR_INTERMEDIATE_MID);
    builder->block = HR_BLOCK_MLP;
    builder->modulator = HR_NONE;
    const hr_block_rows rows = { model->parallel ? h : mid, teaching->direct ? a : mid };
    const int32_t t = mlp(builder, config, model, layer, rows);
    builder->modulator = a;
    const int32_t y = mlp(builder, config, model, layer,
                          (hr_block_rows){ h, teaching->direct ? HR_NONE : h });
    builder->modulator = HR_NONE;
    hr_build_match(builder, y, t, teaching->labels, teaching->scale, teaching->sums,
                   (hr_match_attr){ .weight = 1.0 / teaching->count,
                                    .measure = teaching->measure,
                                    .slot = slot,
                                    .slots = teaching->slots });
    int32_t next = teaching->inputs == HR_NPT_TEACHER ? t : y;
    if (teaching->inputs == HR_NPT_MIXED)
        next = hr_build_select(builder, "layer_input", y, t, teaching->mix);
    if (teaching->direct) next = hr_build_dropout(builder, "layer_out", next, h, 0, 1);
    if (!hr_teaching_is_alone(teaching) || !teaching->scratch || hr_build_status(builder) != HR_OK)
        return next;
    builder->alone = true;
    builder->status = hr_build_derivative(builder, first, builder->program->step_count - 1,
                                          teaching->scratch, builder->err);
    builder->alone = false;
    builder->direction = HR_DIR_FORWARD;
    return next;
}

/* The number of layers up to the last one with adapters of a token. */
static int64_t taught_layers(const hr_model *model)
{
    int64_t count = model->layer_count;
    while (count > 0 && !model->layers[count - 1].modulated) count--;
    return count;
}

/* Marks what a layer reads, which backward may read from a file (plan/spill.h). It is no value that
 * the layer makes: it has no other mark. */
static void mark_input(hr_builder *builder, const hr_config *config, int32_t h)
{
    if (config->memory.spill == HR_SPILL_NO || hr_build_status(builder) != HR_OK) return;
    hr_tensor *input = &builder->program->tensors[h];
    if (input->intermediates || input->view_of != HR_NONE) return;
    input->intermediates = 1u << HR_INTERMEDIATE_INPUT;
    input->layer = builder->layer;
}

int32_t hr_block_stack(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t h, hr_block_branch *attention, hr_block_branch *mlp)
{
    const bool ends = builder->teaching && builder->training;
    const int64_t count = ends ? taught_layers(model) : model->layer_count;
    int32_t slot = 0;
    for (int64_t i = 0; i < count && hr_build_status(builder) == HR_OK; i++) {
        builder->layer = (int16_t)i;
        builder->block = HR_BLOCK_ATTENTION;
        const hr_layer *layer = &model->layers[i];
        mark_input(builder, config, h);
        if (builder->teaching && layer->modulated) {
            h = taught_layer(builder, config, model, layer, h, slot++, attention, mlp);
            continue;
        }
        const int32_t onto = layer->modulated ? HR_NONE : h;
        const int32_t after = attention(builder, config, model, layer, (hr_block_rows){ h, onto });
        builder->block = HR_BLOCK_MLP;
        hr_block_rows rows = { model->parallel ? h : after, after };
        if (layer->modulated) rows = (hr_block_rows){ h, h };
        builder->modulator = layer->modulated ? after : HR_NONE;
        h = mlp ? mlp(builder, config, model, layer, rows) : after;
    }
    builder->modulator = HR_NONE;
    builder->layer = HR_NONE;
    builder->block = HR_BLOCK_NONE;
    return ends ? HR_NONE : h;
}

int32_t hr_block_end(hr_builder *builder, const hr_config *config, const hr_model *model, int32_t h)
{
    const double eps = config->model.norm_eps;
    if (h == HR_NONE) return HR_NONE;
    if (model->final_bias == HR_NONE)
        return hr_build_rms_norm(builder, "final_norm", h, model->final_gain, eps);
    return hr_build_norm(builder, "final_norm", h, model->final_gain, model->final_bias, eps);
}

int32_t hr_block_learned_positions(hr_builder *builder, const hr_config *config,
                                   const hr_model *model, int32_t ids, int32_t skipped,
                                   hr_block_branch *attention, hr_block_branch *mlp)
{
    builder->block = HR_BLOCK_EMBED;
    int32_t h = hr_block_embed(builder, "embedding", ids, model->table, model->positions, skipped);
    h = hr_block_stack(builder, config, model, h, attention, mlp);
    return hr_block_end(builder, config, model, h);
}

const hr_intermediates hr_block_qkv = 1 << HR_INTERMEDIATE_Q | 1 << HR_INTERMEDIATE_K |
                                      1 << HR_INTERMEDIATE_V;

int32_t hr_block_mark(hr_builder *builder, int32_t tensor, hr_intermediates kinds)
{
    if (tensor != HR_NONE) builder->program->tensors[tensor].intermediates |= kinds;
    return tensor;
}

static hr_intermediates set_of(hr_intermediate kind)
{
    return kind == HR_INTERMEDIATE_NONE ? 0 : (hr_intermediates)(1u << kind);
}

/* dropout(x) scale, marked as x: a strategy treats both alike. */
static int32_t drop(hr_builder *builder, int32_t x, double scale)
{
    const hr_intermediates kinds = builder->program->tensors[x].intermediates;
    const double p = builder->adapter_dropout;
    return hr_block_mark(builder, hr_build_dropout(builder, "dropped", x, HR_NONE, p, scale),
                         kinds);
}

/* Adds scale (dropout(x) A) B to y for an adapter that begins with parameter `a`. A strategy treats
 * its parts as it treats x and y. */
static int32_t adapt(hr_builder *builder, int32_t a, const char *name, int32_t x, int32_t y,
                     hr_intermediates kinds, bool drops)
{
    const hr_param *first = &builder->program->params[a], *second = first + 1;
    const double scale = first->adapter_scale;
    if (drops) x = drop(builder, x, scale);
    int32_t low = hr_build_linear(builder, "low", x, first->weight, HR_NONE, HR_ACT_NONE, HR_NONE);
    if (!drops) low = hr_build_dropout(builder, "low_scaled", low, HR_NONE, 0, scale);
    return hr_block_mark(
        builder, hr_build_linear(builder, name, low, second->weight, HR_NONE, HR_ACT_NONE, y),
        kinds);
}

/* The weight of the squared lengths of one outer product: their mean over triples, over the
 * matrices of the layer that have some, and over layers. */
static double weight_of(const hr_builder *builder, int32_t a)
{
    const hr_program *program = builder->program;
    const hr_param *first = &program->params[a];
    int32_t matrices = 0;
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *other = &program->params[p];
        matrices += other->adapter != HR_NONE && other->adapts == HR_NONE &&
                    program->tensors[other->weight].layer == builder->layer;
    }
    return builder->teaching->regularisation /
           ((double)builder->teaching->count * matrices * first->rule.stack);
}

/* The same for an adapter whose weights are a function of the token: of the rows that modulate the
 * layer. The part that projects these is `first`, and of the diagonal form also that of x. */
static int32_t modulate(hr_builder *builder, int32_t a, const char *name, int32_t x, int32_t y,
                        hr_intermediates kinds)
{
    const hr_param *first = &builder->program->params[a];
    const bool diagonal = first->rule.form == HR_ADAPTER_DIAGONAL;
    const int32_t of_x = diagonal ? first->weight : first[2].weight;
    const int64_t R = first->dims[1] / hr_max(first->rule.stack, 1);
    const int32_t u = hr_build_linear(builder, "modulator", builder->modulator, first->weight,
                                      HR_NONE, HR_ACT_NONE, HR_NONE);
    if (builder->reveals)
        hr_build_step(builder, HR_OP_emit, &(hr_host_attr){ .param = a }, sizeof(hr_host_attr))
            ->in[0] = u;
    const hr_teaching *teaching = builder->teaching;
    if (teaching && !diagonal && first->lengths != HR_NONE)
        hr_build_restrain(
            builder, a, u, teaching->labels, teaching->scale, teaching->sums,
            (hr_restrain_attr){ .weight = weight_of(builder, a),
                                .slot = hr_teaching_slot(teaching, builder->program, a),
                                .slots = teaching->slots });
    const int32_t p = hr_build_linear(builder, "modulated", x, of_x, HR_NONE, HR_ACT_NONE, HR_NONE);
    const int32_t low = hr_build_modulate(builder, "modulation", u, p,
                                          diagonal ? HR_MODULATE_DIAGONAL : HR_MODULATE_OUTER, R,
                                          first->adapter_scale);
    return hr_block_mark(
        builder, hr_build_linear(builder, name, low, first[1].weight, HR_NONE, HR_ACT_NONE, y),
        kinds);
}

/* x W + bias + residual with the adapters of W, the first of them `adapter`. With magnitudes, bias
 * and residual come after these. Then dropout is of the directions alone, as in PEFT: for d =
 * dropout(x), y = d (W + s A B) c m + (x W - d W) + bias + residual. */
static int32_t adapted(hr_builder *builder, int32_t adapter, const char *name, int32_t x,
                       int32_t weight, int32_t bias, int32_t residual, hr_intermediates kinds)
{
    const hr_param *params = builder->program->params;
    const bool scales = params[params[adapter].adapts].lengths != HR_NONE;
    const bool drops = builder->training && builder->adapter_dropout > 0;
    const bool parts = scales && drops;
    int32_t rest = HR_NONE;
    if (parts) {
        rest = hr_build_linear(builder, "whole", x, weight, HR_NONE, HR_ACT_NONE, residual);
        hr_block_mark(builder, rest, kinds);
        x = drop(builder, x, 1);
    }
    int32_t y = hr_build_linear(builder, "frozen", x, weight, scales ? HR_NONE : bias, HR_ACT_NONE,
                                scales ? HR_NONE : residual);
    hr_block_mark(builder, y, kinds);
    if (parts) /* before y has other readers: the first of these shares its gradient with y */
        residual = hr_block_mark(builder, hr_build_dropout(builder, "rest", y, rest, 0, -1), kinds);
    if (params[adapter].rule.form != HR_ADAPTER_LOW_RANK)
        return modulate(builder, adapter, name, x, y, kinds);
    for (int32_t a = adapter; a != HR_NONE; a = params[a].adapter)
        y = adapt(builder, a, scales || params[a].adapter != HR_NONE ? "directions" : name, x, y,
                  kinds, drops && !scales);
    if (!scales) return y;
    y = hr_build_magnitude(builder, name, y, params[adapter].adapts, bias, residual);
    return hr_block_mark(builder, y, kinds);
}

int32_t hr_block_product(hr_builder *builder, const char *name, int32_t x, int32_t weight,
                         int32_t bias, hr_act act, int32_t residual, hr_intermediates kinds)
{
    const hr_program *program = builder->program;
    const int32_t adapter = hr_build_adapter_of(builder, weight);
    const bool modulates = adapter != HR_NONE &&
                           program->params[adapter].rule.form != HR_ADAPTER_LOW_RANK;
    if (adapter == HR_NONE || hr_program_looks_up(program, adapter) ||
        (modulates && builder->modulator == HR_NONE))
        return hr_block_mark(builder,
                             hr_build_linear(builder, name, x, weight, bias, act, residual), kinds);
    if (act == HR_ACT_NONE)
        return adapted(builder, adapter, name, x, weight, bias, residual, kinds);
    const int32_t y = adapted(builder, adapter, "pre", x, weight, bias, residual,
                              set_of(HR_INTERMEDIATE_UP));
    return hr_build_mark(builder, hr_build_activation(builder, name, y, act),
                         HR_INTERMEDIATE_ACTIVATION);
}

int32_t hr_block_project(hr_builder *builder, const char *name, int32_t x, int32_t weight,
                         int32_t bias, hr_intermediate mark)
{
    return hr_block_product(builder, name, x, weight, bias, HR_ACT_NONE, HR_NONE, set_of(mark));
}

static int32_t join(hr_builder *builder, const hr_config *config, const char *name, int32_t x,
                    int32_t weight, int32_t bias, int32_t residual, hr_intermediate mark)
{
    const double p = builder->training ? config->model.dropout : 0;
    if (p == 0)
        return hr_block_product(builder, name, x, weight, bias, HR_ACT_NONE, residual,
                                set_of(mark));
    const int32_t branch = hr_block_product(builder, "branch", x, weight, bias, HR_ACT_NONE,
                                            HR_NONE, set_of(mark));
    return hr_build_mark(builder, hr_build_dropout(builder, name, branch, residual, p, 1), mark);
}

int32_t hr_block_join(hr_builder *builder, const hr_config *config, const char *name, int32_t x,
                      int32_t weight, int32_t bias, int32_t residual)
{
    return join(builder, config, name, x, weight, bias, residual, HR_INTERMEDIATE_NONE);
}

int32_t hr_block_join_mid(hr_builder *builder, const hr_config *config, const char *name, int32_t x,
                          int32_t weight, int32_t bias, int32_t residual)
{
    return join(builder, config, name, x, weight, bias, residual, HR_INTERMEDIATE_MID);
}

/* The choices of the recipe are the values of the operation. */
_Static_assert((int)HR_ATTENTION_DENSE == HR_PATTERN_DENSE &&
                   (int)HR_ATTENTION_LOCAL == HR_PATTERN_LOCAL &&
                   (int)HR_ATTENTION_GLOBAL == HR_PATTERN_GLOBAL &&
                   (int)HR_ATTENTION_MIXED == HR_PATTERN_MIXED,
               "model.attention.pattern");

static hr_attention_mask mask_of(const hr_config *config, int32_t kind)
{
    const int32_t window = (int32_t)config->model.attention.sliding_window;
    if (kind == HR_LAYER_SLIDING) return (hr_attention_mask){ HR_PATTERN_SLIDING, 1, window, 1 };
    return (hr_attention_mask){ config->model.attention.pattern,
                                (int32_t)config->model.attention.block,
                                (int32_t)config->model.attention.window,
                                (int32_t)hr_config_attention_stride(config) };
}

hr_attention_attr hr_block_attention(const hr_config *config, const hr_layer *layer)
{
    const int64_t head_width = hr_config_head_dim(config);
    return (hr_attention_attr){ .H = (int32_t)config->model.n_heads,
                                .G = (int32_t)hr_config_kv_heads(config),
                                .head_width = (int32_t)head_width,
                                .q_head_stride = head_width,
                                .k_head_stride = head_width,
                                .v_head_stride = head_width,
                                .mask = mask_of(config, layer->kind),
                                .scale = (float)(1 / sqrt((double)head_width)),
                                .dropout = (float)config->model.dropout };
}
