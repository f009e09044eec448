/* SPDX-License-Identifier: Apache-2.0 */
/* estimate/model.c - declares the parameters, with adapters, and runs the forward pass around the
 * layers. */
#include "estimate/model.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/words.h"
#include "estimate/names.h"
#include "model/adapter.h"
#include "model/family.h"
#include "model/module_names.h"
#include "model/rules.h"

enum { FP32 = 4, NAME_BYTES = 96 };

typedef struct {
    hr_estimate_model *model;
    hr_rules rules;
    int64_t layer; /* HR_NONE: none */
} declaration;

/* ---- parameters */

static int64_t stored_bytes(const hr_estimate_settings *s, int64_t count, bool quantized)
{
    enum { SECOND_BLOCK = 256 };
    if (!quantized || s->base != HR_ESTIMATE_NF4)
        return count * hr_torch_width(quantized ? s->base : s->weights);
    const int64_t scales = (count + s->base_block - 1) / s->base_block;
    if (!s->double_quant) return (count + 1) / 2 + scales * FP32;
    return (count + 1) / 2 + scales + (scales + SECOND_BLOCK - 1) / SECOND_BLOCK * FP32;
}

/* Whether a word of a list names a module. */
static bool is_named(const char *words, int16_t layer, const char *name)
{
    for (hr_words w = { words }; hr_words_next(&w);)
        if (hr_module_is_named(w.text, layer, name)) return true;
    return false;
}

/* Rank of the adapter of a part of a layer, or of the head; 0: it has none. */
static int64_t rank_of(const hr_config *config, int64_t rank, const char *targets,
                       const hr_estimate_names *with, int64_t layer, const char *part)
{
    char name[NAME_BYTES];
    const int used = layer < 0 ? 0 : snprintf(name, sizeof name, with->prefix, (long long)layer);
    snprintf(name + used, sizeof name - (size_t)used, "%s", part);
    const int16_t in = layer < 0 ? HR_NONE : (int16_t)layer;
    if (!strcmp(targets, "recipe")) return hr_adapter_of(config, 0, in, name).rank;
    return is_named(targets, in, name) ? rank : 0;
}

/* With LoRA everything but adapters is frozen. A pattern may match the name with or without its
 * ending, since some families have none. */
static bool is_frozen(const declaration *of, const char *name, bool bias, bool vector)
{
    char full[NAME_BYTES + 8];
    const int16_t layer = (int16_t)of->layer;
    if (of->model->settings->lora_rank) return true;
    if (!of->rules.config->train.freeze[0]) return false;
    snprintf(full, sizeof full, "%s.%s", name, bias ? "bias" : "weight");
    return hr_rules_of(&of->rules, layer, 0, vector, false, full).frozen ||
           (!bias && hr_rules_of(&of->rules, layer, 0, vector, false, name).frozen);
}

static void place(hr_estimate_model *model, hr_torch_parameter *p, int64_t count, int64_t width,
                  int64_t bytes, bool trained)
{
    hr_tape *tape = model->torch.tape;
    const int64_t share = model->settings->zero_stage == 3 ? model->settings->world : 1;
    const int64_t here = model->settings->offload_weights ? 0 : bytes / share;
    model->parameters += count;
    p->value = (hr_value){ hr_tape_keep(tape, "weights", HR_ESTIMATE_WEIGHTS, here), HR_TAPE_NONE,
                           count, width, false };
    if (!trained) return;
    model->trained += count;
    p->value.node = hr_tape_leaf(tape, "weights");
    p->value.grad = p->value.node != HR_TAPE_NONE;
}

static hr_torch_parameter parameter(declaration *of, const char *name, bool bias, int64_t count,
                                    int64_t inputs, int64_t columns)
{
    hr_estimate_model *model = of->model;
    const hr_estimate_settings *s = model->settings;
    hr_torch_parameter p = { .inputs = inputs, .columns = columns, .cast_scope = -1 };
    const bool matrix = inputs > 0;
    const bool frozen = is_frozen(of, name, bias, !matrix);
    /* With adapters the matrices of layers; else all that train.freeze names. */
    const bool based = s->base != HR_ESTIMATE_NONE &&
                       (s->lora_rank ? matrix && of->layer >= 0 : frozen);
    const bool saved = s->lora_rank && is_named(s->lora_saved, HR_NONE, name);
    const int32_t dtype = based ? s->base : s->weights;
    p.quantized = based && (s->base == HR_ESTIMATE_NF4 || s->base == HR_ESTIMATE_I8);
    const int64_t width = p.quantized ? 2 : hr_torch_width(dtype);
    place(model, &p, count, width, stored_bytes(s, count, based), !frozen);
    /* The copy is what runs. */
    if (saved) {
        const int64_t wide = hr_torch_width(s->lora_saved_dtype);
        place(model, &p, count, wide, count * wide, true);
    }
    return p;
}

static void adapt(hr_estimate_model *model, hr_torch_parameter *p, hr_torch_parameter *a, int64_t R)
{
    const hr_estimate_settings *s = model->settings;
    const int64_t width = hr_torch_width(s->lora_dtype);
    const int64_t outputs = p->value.count / p->inputs;
    hr_torch_parameter *b = a + 1;
    *a = (hr_torch_parameter){ .inputs = p->inputs, .columns = p->inputs, .cast_scope = -1 };
    *b = (hr_torch_parameter){ .inputs = R, .columns = R, .cast_scope = -1 };
    place(model, a, R * p->inputs, width, R * p->inputs * width, true);
    place(model, b, R * outputs, width, R * outputs * width, true);
    p->lora_a = a;
    p->lora_b = b;
    if (!s->lora_dora) return;
    hr_torch_parameter *m = a + 2;
    *m = (hr_torch_parameter){ .cast_scope = -1 };
    place(model, m, outputs, width, outputs * width, true);
    p->lora_m = m;
}

/* The adapter of the token embedding: a table of its own, and a matrix. */
static void adapt_table(hr_estimate_model *model, int64_t R)
{
    const int64_t width = hr_torch_width(model->settings->lora_dtype);
    const int64_t outputs = model->table.value.count / model->V;
    hr_torch_parameter *a = model->table_adapters, *b = a + 1;
    *a = (hr_torch_parameter){ .columns = R, .cast_scope = -1 };
    *b = (hr_torch_parameter){ .inputs = R, .columns = R, .cast_scope = -1 };
    place(model, a, R * model->V, width, R * model->V * width, true);
    place(model, b, R * outputs, width, R * outputs * width, true);
    model->table.lora_a = a;
    model->table.lora_b = b;
}

/* Adapters of all targets, after the other parameters. */
static void adapt_all(hr_estimate_model *model, const hr_estimate_names *with)
{
    const hr_estimate_settings *s = model->settings;
    for (int64_t l = 0; l < model->L; l++)
        for (int32_t i = 0; i < HR_WEIGHTS_OF_LAYER; i++) {
            hr_torch_parameter *p = &model->layers[l][i];
            if (p->inputs <= 0 || !with->parts[i]) continue;
            const int64_t rank = rank_of(model->config, s->lora_rank, s->lora_targets, with, l,
                                         with->parts[i]);
            if (rank) adapt(model, p, &model->adapters[l][HR_ADAPTER_PARTS * i], rank);
        }
    const int64_t rank = with->head ? rank_of(model->config, s->lora_rank, s->lora_targets, with,
                                              -1, with->head)
                                    : 0;
    if (rank) adapt(model, &model->head_weight, model->head_adapters, rank);
    const int64_t wide = with->table ? rank_of(model->config, s->lora_rank, s->lora_targets, with,
                                               -1, with->table)
                                     : 0;
    if (wide) adapt_table(model, wide);
}

/* [count, inputs] of a slot; inputs 0: a vector. */
typedef struct {
    int64_t count, inputs;
} shape;

static void shapes_of(const hr_estimate_model *m, shape shapes[HR_WEIGHTS_OF_LAYER])
{
    const int64_t D = m->D, F = m->F, Q = m->H * m->head, K = m->G * m->head;
    const int32_t family = m->config->model.family;
    const bool norm_bias = family == HR_FAMILY_GPT_NEOX || family == HR_FAMILY_GPT2 ||
                           family == HR_FAMILY_OPT || family == HR_FAMILY_GPT_NEO ||
                           family == HR_FAMILY_NEEDLE;
    const bool fused = family == HR_FAMILY_GPT_NEOX || family == HR_FAMILY_GPT2;
    const bool biases = fused || family == HR_FAMILY_OPT;
    memset(shapes, 0, HR_WEIGHTS_OF_LAYER * sizeof *shapes);
    if (family == HR_FAMILY_WIDE) {
        shapes[HR_WEIGHT_UP] = (shape){ D * D, D };
        shapes[HR_WEIGHT_NORM_1] = (shape){ D, 0 };
        return;
    }
    shapes[HR_WEIGHT_NORM_1] = shapes[HR_WEIGHT_NORM_2] = (shape){ D, 0 };
    if (norm_bias) shapes[HR_WEIGHT_NORM_1_BIAS] = shapes[HR_WEIGHT_NORM_2_BIAS] = (shape){ D, 0 };
    shapes[HR_WEIGHT_Q] = (shape){ fused ? 3 * D * D : D * Q, D };
    if (!fused) shapes[HR_WEIGHT_K] = shapes[HR_WEIGHT_V] = (shape){ D * K, D };
    shapes[HR_WEIGHT_O] = (shape){ Q * D, Q };
    shapes[HR_WEIGHT_UP] = (shape){ D * F, D };
    shapes[HR_WEIGHT_DOWN] = (shape){ F * D, F };
    if (!norm_bias) shapes[HR_WEIGHT_GATE] = (shape){ D * F, D };
    if (biases || family == HR_FAMILY_QWEN2)
        shapes[HR_WEIGHT_Q_BIAS] = (shape){ fused ? 3 * D : Q, 0 };
    if (family == HR_FAMILY_OPT || family == HR_FAMILY_QWEN2)
        shapes[HR_WEIGHT_K_BIAS] = shapes[HR_WEIGHT_V_BIAS] = (shape){ K, 0 };
    if (biases || family == HR_FAMILY_GPT_NEO) shapes[HR_WEIGHT_O_BIAS] = (shape){ D, 0 };
    if (norm_bias) shapes[HR_WEIGHT_UP_BIAS] = (shape){ F, 0 };
    if (norm_bias) shapes[HR_WEIGHT_DOWN_BIAS] = (shape){ D, 0 };
    if (family == HR_FAMILY_QWEN3)
        shapes[HR_WEIGHT_NORM_Q] = shapes[HR_WEIGHT_NORM_K] = (shape){ m->head, 0 };
    if (family == HR_FAMILY_NEEDLE)
        for (int32_t i = HR_WEIGHT_NORM_Q; i <= HR_WEIGHT_NORM_K_BIAS; i++)
            shapes[i] = (shape){ D, 0 };
}

static void declare_ends(declaration *of, const hr_estimate_names *with)
{
    hr_estimate_model *m = of->model;
    const hr_config *config = m->config;
    const int32_t family = config->model.family;
    const int64_t rank = hr_config_embedding_rank(config), X = hr_config_expansion(config);
    const int64_t decoder = config->model.decoder_rank;
    const bool norms = family == HR_FAMILY_GPT_NEOX || family == HR_FAMILY_GPT2 ||
                       family == HR_FAMILY_OPT || family == HR_FAMILY_GPT_NEO ||
                       family == HR_FAMILY_NEEDLE;
    const int64_t offset = family == HR_FAMILY_OPT ? 2 : 0;
    const bool factors = family == HR_FAMILY_YXANUL, expands = family == HR_FAMILY_WIDE;
    const int64_t inputs = expands && decoder   ? decoder
                           : expands            ? X
                           : factors && m->tied ? rank
                                                : m->D;
    of->layer = HR_NONE;
    m->table = parameter(of, with->table, false, m->V * (factors ? rank : m->D), 0,
                         factors ? rank : m->D);
    if (norms && family != HR_FAMILY_GPT_NEOX)
        m->positions = parameter(of, with->positions, false,
                                 (hr_config_positions(config) + offset) * m->D, 0, m->D);
    if (factors) m->factor = parameter(of, with->factor, false, m->D * rank, rank, rank);
    if (!expands) m->final_norm = parameter(of, with->norm, false, m->D, 0, 0);
    if (norms) m->final_bias = parameter(of, with->norm, true, m->D, 0, 0);
    if (expands) m->expansion = parameter(of, with->expansion, false, m->D * X, m->D, m->D);
    if (expands) m->expansion_bias = parameter(of, with->expansion_bias, false, X, 0, 0);
    if (expands && decoder) m->factor = parameter(of, with->factor, false, X * decoder, X, X);
    if (m->tied) m->head_weight = m->table;
    else m->head_weight = parameter(of, with->head, false, m->V * inputs, inputs, inputs);
    m->head_weight.inputs = inputs;
}

static hr_tape_layer layer_of(int32_t family)
{
    switch (family) {
    case HR_FAMILY_GPT_NEOX: return hr_estimate_layer_gpt_neox;
    case HR_FAMILY_GPT2: return hr_estimate_layer_gpt2;
    case HR_FAMILY_GPT_NEO: return hr_estimate_layer_gpt_neo;
    case HR_FAMILY_OPT: return hr_estimate_layer_opt;
    case HR_FAMILY_NEEDLE: return hr_estimate_layer_needle;
    case HR_FAMILY_WIDE: return hr_estimate_layer_wide;
    default: return hr_estimate_layer_llama;
    }
}

hr_status hr_estimate_model_open(const hr_config *config, const hr_estimate_settings *settings,
                                 hr_tape *tape, hr_region *region, hr_estimate_model *model,
                                 hr_error *err)
{
    const int64_t L = config->model.n_layers;
    *model = (hr_estimate_model){ .torch = { .tape = tape,
                                             .settings = settings,
                                             .scores = HR_TAPE_NONE,
                                             .transposes = config->model.family == HR_FAMILY_GPT2 &&
                                                           settings->lora_dropout > 0 },
                                  .config = config,
                                  .settings = settings,
                                  .D = config->model.d_model,
                                  .F = config->model.d_ff,
                                  .V = config->model.vocab_size,
                                  .L = L,
                                  .H = config->model.n_heads,
                                  .G = hr_config_kv_heads(config),
                                  .head = hr_config_head_dim(config),
                                  .B = settings->batch / settings->accumulation,
                                  .T = settings->seq_len,
                                  .tied = hr_family_ties(config),
                                  .width_hidden = hr_torch_width(settings->weights),
                                  .layer = layer_of(config->model.family) };
    model->layers = hr_region_take(region, L, sizeof *model->layers);
    model->adapters = hr_region_take(region, L, sizeof *model->adapters);
    if (!model->adapters)
        return hr_fail(err, HR_FAILURE, "the memory for an estimate is too small");
    if (model->B < 1 || settings->batch % settings->accumulation)
        return hr_fail(err, HR_USAGE,
                       "accumulation=%lld does not divide the batch of %lld sequences",
                       (long long)settings->accumulation, (long long)settings->batch);
    shape shapes[HR_WEIGHTS_OF_LAYER];
    const hr_estimate_names *with = hr_estimate_names_of(config->model.family);
    declaration of = { model, { config, NULL }, HR_NONE };
    shapes_of(model, shapes);
    declare_ends(&of, with);
    for (int64_t l = 0; l < L; l++) {
        of.layer = l;
        for (int32_t i = 0; i < HR_WEIGHTS_OF_LAYER; i++) {
            if (!shapes[i].count) continue;
            char name[NAME_BYTES], prefix[NAME_BYTES / 2];
            const bool bias = !with->parts[i];
            snprintf(prefix, sizeof prefix, with->prefix, (long long)l);
            snprintf(name, sizeof name, "%s%s", prefix, with->parts[bias ? i - 1 : i]);
            model->layers[l][i] = parameter(&of, name, bias, shapes[i].count, shapes[i].inputs,
                                            shapes[i].inputs);
        }
    }
    if (config->model.family == HR_FAMILY_GPT_NEO) /* a mask of bytes in every layer */
        hr_tape_keep(tape, "masks of layers", HR_ESTIMATE_WEIGHTS,
                     L * hr_config_positions(config) * hr_config_positions(config));
    if (settings->lora_rank) adapt_all(model, with);
    for (int32_t i = 0; i < HR_WEIGHTS_OF_LAYER; i++) model->gathered += shapes[i].count;
    if (settings->lora_rank && !model->trained)
        return hr_fail(err, HR_USAGE, "lora: no module of the %s family is named \"%s\"",
                       hr_family_of(config)->name, settings->lora_targets);
    return HR_OK;
}

int64_t hr_estimate_adapter_parameters(const hr_config *config, int64_t rank, const char *targets)
{
    const hr_estimate_names *with = hr_estimate_names_of(config->model.family);
    const hr_estimate_model model = { .config = config,
                                      .D = config->model.d_model,
                                      .F = config->model.d_ff,
                                      .H = config->model.n_heads,
                                      .G = hr_config_kv_heads(config),
                                      .head = hr_config_head_dim(config) };
    shape shapes[HR_WEIGHTS_OF_LAYER];
    int64_t count = 0;
    shapes_of(&model, shapes);
    for (int32_t i = 0; i < HR_WEIGHTS_OF_LAYER; i++)
        if (shapes[i].inputs > 0 && with->parts[i])
            count += rank_of(config, rank, targets, with, 0, with->parts[i]) *
                     (shapes[i].inputs + shapes[i].count / shapes[i].inputs);
    count *= config->model.n_layers;
    if (with->head)
        count += rank_of(config, rank, targets, with, -1, with->head) *
                 (config->model.d_model + config->model.vocab_size);
    if (with->table)
        count += rank_of(config, rank, targets, with, -1, with->table) *
                 (config->model.d_model + config->model.vocab_size);
    return count;
}

void hr_estimate_parameters(const hr_estimate_model *model, hr_estimate_each each, void *context)
{
    const hr_torch_parameter *ends[] = {
        &model->table,          &model->positions,
        &model->factor,         &model->final_norm,
        &model->final_bias,     &model->expansion,
        &model->expansion_bias, model->tied ? NULL : &model->head_weight
    };
    enum { ENDS = sizeof ends / sizeof *ends, BEFORE = 2 };
    for (int32_t i = 0; i < BEFORE; i++)
        if (ends[i]->value.grad) each(context, ends[i]);
    for (int64_t l = 0; l < model->L; l++) {
        for (int32_t i = 0; i < HR_WEIGHTS_OF_LAYER; i++)
            if (model->layers[l][i].value.grad) each(context, &model->layers[l][i]);
        for (int32_t i = 0; i < HR_ADAPTER_PARTS * HR_WEIGHTS_OF_LAYER; i++)
            if (model->adapters[l][i].value.grad) each(context, &model->adapters[l][i]);
    }
    for (int32_t i = BEFORE; i < ENDS; i++)
        if (ends[i] && ends[i]->value.grad) each(context, ends[i]);
    for (int32_t i = 0; i < HR_ADAPTER_PARTS; i++)
        if (model->table_adapters[i].value.grad) each(context, &model->table_adapters[i]);
    for (int32_t i = 0; i < HR_ADAPTER_PARTS; i++)
        if (model->head_adapters[i].value.grad) each(context, &model->head_adapters[i]);
}

/* ---- the forward pass */

/* Rows of the embedding, with learned positions. */
static hr_value embed(hr_estimate_model *m)
{
    hr_torch *torch = &m->torch;
    hr_tape *tape = torch->tape;
    const int32_t family = m->config->model.family;
    const int32_t mark = hr_tape_enter(tape);
    const int64_t rows = m->B * m->T;
    const bool factors = family == HR_FAMILY_YXANUL;
    hr_value x = hr_torch_embedding(torch, "embedding", rows, m->table.value.count / m->V,
                                    &m->table);
    if (factors)
        x = hr_torch_linear(torch, "embedding", HR_ESTIMATE_ACTIVATIONS, x, &m->factor, NULL);
    if (m->positions.value.count) {
        const int64_t times = family == HR_FAMILY_OPT ? m->B : 1;
        const hr_value p = hr_torch_embedding(torch, "positions", times * m->T, m->D,
                                              &m->positions);
        const hr_value sum = hr_torch_add(torch, "embedding", x, p);
        hr_tape_drop(tape, x);
        hr_tape_drop(tape, p);
        x = sum;
    }
    if (family == HR_FAMILY_GPT2 || family == HR_FAMILY_GPT_NEOX || family == HR_FAMILY_GPT_NEO ||
        family == HR_FAMILY_NEEDLE)
        x = hr_torch_dropout(torch, HR_ESTIMATE_ACTIVATIONS, x, m->config->model.dropout);
    return hr_tape_leave(tape, mark, x);
}

/* One gradient has to reach the input of checkpointed layers, even when nothing before trains. */
static hr_value with_gradient(hr_tape *tape, hr_value x)
{
    if (x.grad) return x;
    x.node = hr_tape_node_new(tape, "embedding", true);
    x.grad = x.node != HR_TAPE_NONE;
    return x;
}

static hr_value final_rows(hr_estimate_model *m, hr_value x)
{
    hr_torch *torch = &m->torch;
    if (m->config->model.family == HR_FAMILY_WIDE) return x;
    if (m->final_bias.value.count)
        return hr_torch_layer_norm(torch, x, &m->final_norm, &m->final_bias);
    return hr_torch_rms_norm(torch, x, &m->final_norm);
}

/* The input of the last product. */
static hr_value widened(hr_estimate_model *m, hr_value x)
{
    hr_torch *torch = &m->torch;
    if (m->config->model.family == HR_FAMILY_YXANUL && m->tied) {
        hr_torch_parameter transposed = m->factor;
        transposed.inputs = m->D;
        return hr_torch_linear(torch, "factor", HR_ESTIMATE_ACTIVATIONS, x, &transposed, NULL);
    }
    if (m->config->model.family != HR_FAMILY_WIDE) return x;
    const hr_value z = hr_torch_linear(torch, "expansion", HR_ESTIMATE_ACTIVATIONS, x,
                                       &m->expansion, &m->expansion_bias);
    const hr_value r = hr_torch_activation(torch, "outputs of ReLU", z, true);
    hr_tape_drop(torch->tape, z);
    if (!m->config->model.decoder_rank) return r;
    return hr_torch_linear(torch, "factor", HR_ESTIMATE_ACTIVATIONS, r, &m->factor, NULL);
}

hr_value hr_estimate_forward(hr_estimate_model *m, hr_value *logits)
{
    hr_torch *torch = &m->torch;
    hr_tape *tape = torch->tape;
    const hr_estimate_settings *s = m->settings;
    torch->autocast = hr_torch_width(s->autocast);
    torch->scope++;
    const bool eager = s->attention == HR_ESTIMATE_EAGER ||
                       m->config->model.family == HR_FAMILY_GPT_NEO;
    hr_value x = embed(m);
    const hr_value mask = hr_tape_value(tape, "mask", HR_ESTIMATE_TEMPORARIES,
                                        eager ? m->B * m->T * m->T : 0, m->width_hidden);
    const hr_value tables = hr_tape_value(tape, "tables of RoPE", HR_ESTIMATE_ACTIVATIONS,
                                          2 * m->T * m->head, x.width);
    if (s->checkpointing && s->lora_rank) x = with_gradient(tape, x);
    for (int64_t l = 0; l < m->L && !tape->full; l++) {
        const hr_value y = s->checkpointing ? hr_tape_checkpoint(tape, m->layer, m, l, x)
                                            : m->layer(tape, m, l, x);
        hr_tape_drop(tape, x);
        x = y;
    }
    const hr_value rows = final_rows(m, x);
    if (rows.storage != x.storage) hr_tape_drop(tape, x);
    m->mask = s->checkpointing ? mask.storage : HR_TAPE_NONE;
    hr_tape_refer(tape, m->mask);
    hr_tape_drop(tape, mask);
    const hr_value wide = widened(m, rows);
    *logits = (hr_value){ HR_TAPE_NONE, HR_TAPE_NONE, 0, 0, false };
    (void)tables;
    if (s->loss != HR_ESTIMATE_LOSS_WHOLE)
        return hr_torch_chunked_loss(torch, wide, &m->head_weight, m->V);
    *logits = hr_torch_linear(torch, "logits [B T, V]", HR_ESTIMATE_LOGITS, wide, &m->head_weight,
                              NULL);
    return hr_torch_loss(torch, *logits);
}
