/* SPDX-License-Identifier: Apache-2.0 */
/* report/labels.c - names a step by its parameter. */
#include "report/labels.h"

#include <string.h>

#include "graph/backend.h"
#include "headroom/config.h"

/* Substrings of parameter names and their meaning; the first match counts. */
static const struct {
    const char *part, *role;
} roles[] = { { "query_key_value", "query, key and value projection" },
              { "attention.dense", "attention output projection" },
              { "dense_h_to_4h", "MLP up-projection" },
              { "dense_4h_to_h", "MLP down-projection" },
              { "input_layernorm", "norm before attention" },
              { "post_attention_layernorm", "norm before the MLP" },
              { "final_layer_norm", "final norm" },
              { "embed_in", "embedding" },
              { "embed_out", "logits" },
              { ".ln_q", "norm before queries" },
              { ".ln_k", "norm before keys" },
              { ".ln_v", "norm before values" },
              { ".ln_mlp", "norm before the MLP" },
              { "ln_f", "final norm" },
              { ".wq", "query projection" },
              { ".wk", "key projection" },
              { ".wv", "value projection" },
              { ".wo", "attention output projection" },
              { ".w1", "MLP up-projection" },
              { ".w2", "MLP down-projection" },
              { "tok_emb", "embedding" },
              { "pos_emb", "position embedding" },
              { "head", "logits" } };

/* Labels of operations without a parameter, and of some with one. */
static const struct {
    const char *op, *words;
    bool of_parameter; /* the label precedes the name of the parameter */
} op_labels[] = { { "linear_dx", "input gradient", false },
                  { "linear_dw", "weight gradient", false },
                  { "attention_bwd", "attention", false },
                  { "attention_cached", "attention", false },
                  { "compress", "key compression", false },
                  { "compress_cached", "key compression", false },
                  { "compress_bwd", "key compression", false },
                  { "choose", "choice of key blocks", false },
                  { "gates", "gates of branches", false },
                  { "gates_bwd", "gates of branches", false },
                  { "cache_clear", "clearing the KV cache", false },
                  { "cache_append", "appending to the KV cache", false },
                  { "glu", "gated activation", false },
                  { "glu_bwd", "gated activation", false },
                  { "length", "column norms of", true },
                  { "magnitude", "DoRA magnitudes", false },
                  { "magnitude_bwd", "DoRA magnitudes", false },
                  { "modulate", "NPT modulation", false },
                  { "modulate_bwd", "NPT modulation", false },
                  { "match", "NPT objective", false },
                  { "select", "inputs of a layer", false },
                  { "penalty", "NPT regularisation of", true },
                  { "gram", "NPT regularisation", false },
                  { "gram_bwd", "NPT regularisation", false },
                  { "restrain", "NPT regularisation", false },
                  { "recurrence", "recurrence", false },
                  { "recurrence_bwd", "recurrence", false },
                  { "recurrence_clear", "clearing recurrent states", false },
                  { "lif", "spiking neurons", false },
                  { "lif_bwd", "spiking neurons", false },
                  { "rope", "RoPE", false },
                  { "rope_table", "RoPE table", false },
                  { "last_row", "last token", false },
                  { "batch", "loading a batch", false },
                  { "prompt", "loading the prompt", false },
                  { "sample", "sampling a token", false },
                  { "emit", "writing logits", false },
                  { "report", "reporting the loss", false },
                  { "clip", "global gradient norm", false },
                  { "initialize", "initializing", true },
                  { "save", "writing", true },
                  { "merge", "adding both gradients of", true },
                  { "sumsq", "norm of the gradient of", true },
                  { "product_norm", "norm of a gradient, without computing it", false },
                  { "adamw", "update of", true },
                  { "sgd", "update of", true },
                  { "lion", "update of", true },
                  { "adafactor", "update of", true },
                  { "muon", "update of", true },
                  { "average", "EMA of", true },
                  { "dequantize", "dequantizing", true } };

static bool is_state(const hr_param *param, int32_t tensor)
{
    for (int32_t i = 0; i < HR_STATES_MAX; i++)
        if (param->states[i] == tensor) return true;
    return false;
}

static bool belongs(const hr_param *param, int32_t tensor)
{
    return tensor == param->weight || tensor == param->master || tensor == param->gradient ||
           tensor == param->gradient_again || tensor == param->scales || tensor == param->lengths ||
           is_state(param, tensor);
}

/* Returns the first parameter that a step reads or writes, or null. */
static const hr_param *param_of(const hr_program *program, const hr_step *step)
{
    int32_t operands[HR_IN_MAX + HR_OUT_MAX], count = 0;
    for (int32_t i = 0; i < HR_OUT_MAX; i++)
        if (step->out[i] != HR_NONE) operands[count++] = step->out[i];
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] != HR_NONE) operands[count++] = step->in[i];
    for (int32_t i = 0; i < count; i++)
        for (int32_t p = 0; p < program->param_count; p++)
            if (belongs(&program->params[p], hr_tensor_root(program, operands[i])))
                return &program->params[p];
    return NULL;
}

static const char *role_of(const hr_param *param)
{
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strstr(param->external_name, roles[i].part)) return roles[i].role;
    return param->external_name;
}

const char *hr_label_intermediate(hr_intermediate intermediate)
{
    static const char *const names[HR_INTERMEDIATES] = {
        [HR_INTERMEDIATE_NORM] = "norm outputs",
        [HR_INTERMEDIATE_Q] = "queries",
        [HR_INTERMEDIATE_K] = "keys",
        [HR_INTERMEDIATE_V] = "values",
        [HR_INTERMEDIATE_ATTENTION] = "attention outputs",
        [HR_INTERMEDIATE_MID] = "MLP inputs",
        [HR_INTERMEDIATE_GATE] = "MLP gates",
        [HR_INTERMEDIATE_UP] = "MLP pre-activations",
        [HR_INTERMEDIATE_ACTIVATION] = "MLP activations",
        [HR_INTERMEDIATE_INPUT] = "layer inputs",
    };
    return names[intermediate] ? names[intermediate] : "layer inputs";
}

static void put_place(hr_writer *writer, const hr_program *program, int32_t step)
{
    static const char *const directions[] = { [HR_DIR_NONE] = "",
                                              [HR_DIR_FORWARD] = " forward",
                                              [HR_DIR_BACKWARD] = " backward",
                                              [HR_DIR_RECOMPUTED] = " recompute" };
    const hr_step *s = &program->steps[step];
    const hr_loop_id id = hr_step_section(program, step);
    const char *section = hr_loop_name(id);
    const bool training = id == HR_LOOP_STEP;
    const char *direction = training ? directions[s->direction] : "";
    if (!training) hr_put(writer, "%s", section);
    if (!training && (s->layer != HR_NONE || s->block != HR_BLOCK_NONE)) hr_put(writer, ", ");
    if (s->layer != HR_NONE) hr_put(writer, "layer %d%s", s->layer, direction);
    else if (s->block == HR_BLOCK_EMBED) hr_put(writer, "embedding%s", direction);
    else if (s->block == HR_BLOCK_HEAD) hr_put(writer, "output head%s", direction);
    else if (training) hr_put(writer, "%s", *direction ? direction + 1 : section);
}

void hr_label_step(const hr_program *program, int32_t step, char text[HR_PLAN_NAME_BYTES])
{
    const hr_step *s = &program->steps[step];
    const char *op = hr_step_op(program, s)->name;
    const hr_param *param = param_of(program, s);
    hr_writer writer = { text, HR_PLAN_NAME_BYTES };
    const char *label = NULL;
    bool of_parameter = false;
    for (size_t i = 0; i < sizeof op_labels / sizeof *op_labels && !label; i++)
        if (!strcmp(op_labels[i].op, op)) {
            label = op_labels[i].words;
            of_parameter = op_labels[i].of_parameter;
        }
    put_place(&writer, program, step);
    hr_put(&writer, ", ");
    if (label && of_parameter && param) hr_put(&writer, "%s %s", label, param->external_name);
    else if (label && param && hr_step_op(program, s)->flops)
        hr_put(&writer, "%s, %s", role_of(param), label);
    else if (label) hr_put(&writer, "%s", label);
    else if (param) hr_put(&writer, "%s", role_of(param));
    else hr_put(&writer, "%s", op);
}

void hr_label_tensor(const hr_tensor *tensor, char text[HR_PLAN_NAME_BYTES])
{
    hr_writer writer = { text, HR_PLAN_NAME_BYTES };
    const bool rows = tensor->role == HR_ROLE_ACTIVATION;
    if (rows && tensor->layer != HR_NONE) hr_put(&writer, "layer %d ", tensor->layer);
    const bool gradient = !strncmp(tensor->name, "d.", 2); /* gradient of an activation */
    hr_put(&writer, "%s%s", gradient ? "gradient of " : "", tensor->name + 2 * gradient);
}

void hr_label_put_bytes(hr_writer *writer, int64_t bytes)
{
    char count[HR_COUNT_BYTES], size[HR_COUNT_BYTES];
    hr_put(writer, "%*s  %12s", HR_WORDS_BYTES_COLUMNS, hr_count_print(bytes, count),
           hr_size_print(bytes, size));
}
