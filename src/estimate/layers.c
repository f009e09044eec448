/* SPDX-License-Identifier: Apache-2.0 */
/* estimate/layers.c - a layer of each family, as transformers 5.23 runs it. */
#include <stddef.h>

#include "base/checked.h"
#include "estimate/model.h"
#include "model/layer_types.h"

enum { ACT = HR_ESTIMATE_ACTIVATIONS, FP32 = 4 };

/* A window shorter than the sequence needs a mask. */
static bool is_masked(const hr_estimate_model *m, int64_t layer)
{
    const int64_t window = m->config->model.attention.sliding_window;
    return window > 0 && m->T > window && hr_layer_type(m->config, layer) == HR_LAYER_SLIDING;
}

static hr_torch_attention sizes(const hr_estimate_model *m, int64_t layer)
{
    return (hr_torch_attention){ .B = m->B,
                                 .T = m->T,
                                 .H = m->H,
                                 .G = m->G,
                                 .head = m->head,
                                 .dropout = m->config->model.dropout,
                                 .upcast = true,
                                 .masked = is_masked(m, layer),
                                 .copied = m->settings->cache && !m->settings->checkpointing };
}

static hr_value linear(const hr_estimate_model *m, const char *label, hr_value x, int64_t layer,
                       int32_t slot, int32_t bias)
{
    hr_torch_parameter *w = &m->layers[layer][slot];
    hr_torch_parameter *b = bias >= 0 && m->layers[layer][bias].value.count
                                ? &m->layers[layer][bias]
                                : NULL;
    return hr_torch_linear((hr_torch *)&m->torch, label, ACT, x, w, b);
}

static hr_value norm(const hr_estimate_model *m, hr_value x, int64_t layer, int32_t slot)
{
    const hr_torch_parameter *p = m->layers[layer];
    if (p[slot + 1].value.count)
        return hr_torch_layer_norm((hr_torch *)&m->torch, x, &p[slot], &p[slot + 1]);
    return hr_torch_rms_norm((hr_torch *)&m->torch, x, &p[slot]);
}

static hr_value dropped(const hr_estimate_model *m, hr_value x)
{
    const hr_value y = hr_torch_dropout((hr_torch *)&m->torch, ACT, x, m->config->model.dropout);
    if (y.storage != x.storage) hr_tape_drop(m->torch.tape, x);
    return y;
}

/* a + b, and the end of b. */
static hr_value joined(const hr_estimate_model *m, hr_value a, hr_value b)
{
    const hr_value sum = hr_torch_add((hr_torch *)&m->torch, "residual stream", a, b);
    hr_tape_drop(m->torch.tape, b);
    return sum;
}

/* A tensor that goes through the cache, which copies it and holds the copy to the end of the
 * forward pass. The cache has the dtype of its first keys, and values are joined to that. */
static hr_value cached(const hr_estimate_model *m, hr_value x, int64_t width)
{
    if (!m->settings->cache || m->settings->checkpointing) return x;
    const hr_value copy = hr_torch_cast((hr_torch *)&m->torch, "cached keys and values", ACT, x,
                                        hr_max(x.width, width));
    hr_tape_cache(m->torch.tape, copy.storage);
    return copy;
}

/* The end of a layer: the attention weights that it held go. */
static hr_value finished(const hr_estimate_model *m, int32_t mark, hr_value x)
{
    hr_torch *torch = (hr_torch *)&m->torch;
    hr_tape_release(torch->tape, torch->scores);
    torch->scores = HR_TAPE_NONE;
    return hr_tape_leave(torch->tape, mark, x);
}

/* ---- llama, mistral, qwen2, qwen3, yxanul */

static hr_value head_norm(const hr_estimate_model *m, hr_value x, int64_t layer, int32_t slot)
{
    if (!m->layers[layer][slot].value.count) return x;
    const hr_value y = hr_torch_rms_norm((hr_torch *)&m->torch, x, &m->layers[layer][slot]);
    hr_tape_drop(m->torch.tape, x);
    return y;
}

static hr_value llama_attention(const hr_estimate_model *m, int64_t layer, hr_value x)
{
    hr_torch *torch = (hr_torch *)&m->torch;
    hr_tape *tape = torch->tape;
    const bool norms = m->config->model.family == HR_FAMILY_QWEN3;
    const int32_t mark = hr_tape_enter(tape);
    hr_value q = linear(m, "queries", x, layer, HR_WEIGHT_Q, HR_WEIGHT_Q_BIAS);
    if (norms) q = head_norm(m, q, layer, HR_WEIGHT_NORM_Q);
    hr_value k = linear(m, "keys", x, layer, HR_WEIGHT_K, HR_WEIGHT_K_BIAS);
    if (norms) k = head_norm(m, k, layer, HR_WEIGHT_NORM_K);
    const hr_value v = linear(m, "values", x, layer, HR_WEIGHT_V, HR_WEIGHT_V_BIAS);
    const hr_value qr = hr_torch_rope(torch, q, m->head, m->head, m->width_hidden);
    const hr_value kr = hr_torch_rope(torch, k, m->head, m->head, m->width_hidden);
    hr_tape_drop(tape, q);
    hr_tape_drop(tape, k);
    const hr_torch_attention at = sizes(m, layer);
    const hr_value a = hr_torch_attend(torch, qr, cached(m, kr, 0), cached(m, v, kr.width), &at);
    return hr_tape_leave(
        tape, mark,
        linear(m, "attention, output product", a, layer, HR_WEIGHT_O, HR_WEIGHT_O_BIAS));
}

static hr_value llama_mlp(const hr_estimate_model *m, int64_t layer, hr_value x)
{
    hr_torch *torch = (hr_torch *)&m->torch;
    hr_tape *tape = torch->tape;
    const int32_t mark = hr_tape_enter(tape);
    const hr_value gate = linear(m, "MLP, gate", x, layer, HR_WEIGHT_GATE, -1);
    const hr_value active = hr_torch_activation(torch, "MLP, silu(gate)", gate, false);
    hr_tape_drop(tape, gate);
    const hr_value up = linear(m, "MLP, up", x, layer, HR_WEIGHT_UP, -1);
    const hr_value both = hr_torch_multiply(torch, "MLP, silu(gate) x up", active, up);
    hr_tape_drop(tape, active);
    hr_tape_drop(tape, up);
    return hr_tape_leave(tape, mark,
                         linear(m, "MLP, output product", both, layer, HR_WEIGHT_DOWN, -1));
}

/* A change [D, F] of the gate's weight for every token, from a product of rank R. */
static void weight_changes(const hr_estimate_model *m, int64_t layer)
{
    const hr_estimate_settings *s = m->settings;
    hr_tape *tape = m->torch.tape;
    if (!s->npt_rank || (s->npt_layers && layer >= s->npt_layers)) return;
    const int64_t width = s->autocast == HR_ESTIMATE_NONE ? m->width_hidden
                                                          : hr_torch_width(s->autocast);
    int64_t count = 0;
    if (!hr_checked_mul(m->B * m->T, m->D, &count) || !hr_checked_mul(count, m->F, &count)) {
        tape->full = true;
        return;
    }
    const hr_value all = hr_tape_value(tape, "weight changes [B, T, D, F]",
                                       HR_ESTIMATE_WEIGHT_CHANGES, count, width);
    const int32_t node = hr_tape_node_new(tape, "weight changes", true);
    hr_tape_save(tape, node, all);
    hr_tape_drop(tape, all);
}

hr_value hr_estimate_layer_llama(hr_tape *tape, const void *model, int64_t layer, hr_value x)
{
    const hr_estimate_model *m = model;
    const int32_t mark = hr_tape_enter(tape);
    const hr_value n1 = norm(m, x, layer, HR_WEIGHT_NORM_1);
    const hr_value a = llama_attention(m, layer, n1);
    hr_tape_drop(tape, n1);
    const hr_value h = joined(m, x, a);
    const hr_value n2 = norm(m, h, layer, HR_WEIGHT_NORM_2);
    weight_changes(m, layer);
    const hr_value f = llama_mlp(m, layer, n2);
    hr_tape_drop(tape, n2);
    return finished(m, mark, joined(m, h, f));
}

/* ---- gpt_neox */

static hr_value neox_attention(const hr_estimate_model *m, int64_t layer, hr_value x)
{
    hr_torch *torch = (hr_torch *)&m->torch;
    hr_tape *tape = torch->tape;
    const int32_t mark = hr_tape_enter(tape);
    const int64_t count = m->B * m->T * m->D;
    const int64_t rotated = (int64_t)((double)m->head * m->config->model.rotary_fraction) / 2 * 2;
    hr_value qkv = hr_torch_split(
        torch, linear(m, "queries, keys and values", x, layer, HR_WEIGHT_Q, HR_WEIGHT_Q_BIAS));
    qkv.count = count;
    const hr_value q = hr_torch_rope(torch, qkv, m->head, rotated, m->width_hidden);
    const hr_value k = hr_torch_rope(torch, qkv, m->head, rotated, m->width_hidden);
    hr_torch_attention at = sizes(m, layer);
    at.contiguous = true;
    const hr_value a = hr_torch_attend(torch, q, cached(m, k, 0), cached(m, qkv, k.width), &at);
    return hr_tape_leave(
        tape, mark,
        linear(m, "attention, output product", a, layer, HR_WEIGHT_O, HR_WEIGHT_O_BIAS));
}

/* An MLP without a gate. */
static hr_value plain_mlp(const hr_estimate_model *m, int64_t layer, hr_value x)
{
    hr_torch *torch = (hr_torch *)&m->torch;
    hr_tape *tape = torch->tape;
    const int32_t family = m->config->model.family;
    const int32_t mark = hr_tape_enter(tape);
    const hr_value up = linear(m, "MLP, up", x, layer, HR_WEIGHT_UP, HR_WEIGHT_UP_BIAS);
    const bool relu = family == HR_FAMILY_OPT || family == HR_FAMILY_NEEDLE;
    const bool separate = family == HR_FAMILY_GPT2 || family == HR_FAMILY_GPT_NEO;
    const hr_value active = separate ? hr_torch_gelu_tanh(torch, up)
                            : relu   ? hr_torch_activation(torch, "outputs of ReLU", up, true)
                                     : hr_torch_activation(torch, "outputs of GELU", up, false);
    hr_tape_drop(tape, up);
    const hr_value out = linear(m, "MLP, output product", active, layer, HR_WEIGHT_DOWN,
                                HR_WEIGHT_DOWN_BIAS);
    hr_tape_drop(tape, active);
    return hr_tape_leave(tape, mark, dropped(m, out));
}

hr_value hr_estimate_layer_gpt_neox(hr_tape *tape, const void *model, int64_t layer, hr_value x)
{
    const hr_estimate_model *m = model;
    const int32_t mark = hr_tape_enter(tape);
    const hr_value n1 = norm(m, x, layer, HR_WEIGHT_NORM_1);
    hr_value a = neox_attention(m, layer, n1);
    hr_tape_drop(tape, n1);
    a = dropped(m, a);
    if (!m->config->model.parallel_residual) {
        const hr_value h = joined(m, x, a);
        const hr_value n2 = norm(m, h, layer, HR_WEIGHT_NORM_2);
        const hr_value f = plain_mlp(m, layer, n2);
        return finished(m, mark, joined(m, h, f));
    }
    const hr_value n2 = norm(m, x, layer, HR_WEIGHT_NORM_2);
    const hr_value f = plain_mlp(m, layer, n2);
    hr_tape_drop(tape, n2);
    const hr_value sum = hr_torch_add((hr_torch *)&m->torch, "residual stream", f, a);
    return finished(m, mark, joined(m, x, sum));
}

/* ---- gpt2, gpt_neo, opt, needle */

static hr_value gpt2_attention(const hr_estimate_model *m, int64_t layer, hr_value x)
{
    hr_torch *torch = (hr_torch *)&m->torch;
    const int32_t mark = hr_tape_enter(torch->tape);
    hr_value qkv = hr_torch_split(
        torch, linear(m, "queries, keys and values", x, layer, HR_WEIGHT_Q, HR_WEIGHT_Q_BIAS));
    qkv.count = m->B * m->T * m->D;
    hr_torch_attention at = sizes(m, layer);
    at.upcast = torch->autocast && m->settings->device == HR_ESTIMATE_CUDA;
    const hr_value a = hr_torch_attend(torch, qkv, cached(m, qkv, 0), cached(m, qkv, 0), &at);
    const hr_value o = linear(m, "attention, output product", a, layer, HR_WEIGHT_O,
                              HR_WEIGHT_O_BIAS);
    return hr_tape_leave(torch->tape, mark, dropped(m, o));
}

/* Three products, with the scale of the scores on the queries. */
static hr_value three_products(const hr_estimate_model *m, int64_t layer, hr_value x, hr_value xk,
                               hr_value xv, bool scaled)
{
    hr_torch *torch = (hr_torch *)&m->torch;
    hr_tape *tape = torch->tape;
    const int32_t mark = hr_tape_enter(tape);
    hr_value q = linear(m, "queries", x, layer, HR_WEIGHT_Q, HR_WEIGHT_Q_BIAS);
    if (scaled) {
        const hr_value s = hr_torch_scale(torch, "queries", q);
        hr_tape_drop(tape, q);
        q = s;
    }
    const hr_value k = linear(m, "keys", xk, layer, HR_WEIGHT_K, HR_WEIGHT_K_BIAS);
    const hr_value v = linear(m, "values", xv, layer, HR_WEIGHT_V, HR_WEIGHT_V_BIAS);
    hr_torch_attention at = sizes(m, layer);
    at.wide = m->config->model.family == HR_FAMILY_GPT_NEO;
    const hr_value a = hr_torch_attend(torch, q, cached(m, k, 0), cached(m, v, k.width), &at);
    const hr_value o = linear(m, "attention, output product", a, layer, HR_WEIGHT_O,
                              HR_WEIGHT_O_BIAS);
    return hr_tape_leave(tape, mark, dropped(m, o));
}

static hr_value residual_layer(const hr_estimate_model *m, int64_t layer, hr_value x,
                               hr_value (*attention)(const hr_estimate_model *, int64_t, hr_value))
{
    hr_tape *tape = m->torch.tape;
    const int32_t mark = hr_tape_enter(tape);
    const hr_value n1 = norm(m, x, layer, HR_WEIGHT_NORM_1);
    const hr_value a = attention(m, layer, n1);
    hr_tape_drop(tape, n1);
    const hr_value h = joined(m, x, a);
    const hr_value n2 = norm(m, h, layer, HR_WEIGHT_NORM_2);
    const hr_value f = plain_mlp(m, layer, n2);
    hr_tape_drop(tape, n2);
    return finished(m, mark, joined(m, h, f));
}

hr_value hr_estimate_layer_gpt2(hr_tape *tape, const void *model, int64_t layer, hr_value x)
{
    (void)tape;
    return residual_layer(model, layer, x, gpt2_attention);
}

static hr_value gpt_neo_attention(const hr_estimate_model *m, int64_t layer, hr_value x)
{
    return three_products(m, layer, x, x, x, false);
}

hr_value hr_estimate_layer_gpt_neo(hr_tape *tape, const void *model, int64_t layer, hr_value x)
{
    (void)tape;
    return residual_layer(model, layer, x, gpt_neo_attention);
}

static hr_value opt_attention(const hr_estimate_model *m, int64_t layer, hr_value x)
{
    return three_products(m, layer, x, x, x, true);
}

hr_value hr_estimate_layer_opt(hr_tape *tape, const void *model, int64_t layer, hr_value x)
{
    (void)tape;
    return residual_layer(model, layer, x, opt_attention);
}

/* Queries, keys and values have norms of their own. */
hr_value hr_estimate_layer_needle(hr_tape *tape, const void *model, int64_t layer, hr_value x)
{
    const hr_estimate_model *m = model;
    const int32_t mark = hr_tape_enter(tape);
    const hr_value nq = norm(m, x, layer, HR_WEIGHT_NORM_1);
    const hr_value nk = norm(m, x, layer, HR_WEIGHT_NORM_Q);
    const hr_value nv = norm(m, x, layer, HR_WEIGHT_NORM_K);
    const hr_value a = three_products(m, layer, nq, nk, nv, false);
    const hr_value h = joined(m, x, a);
    const hr_value n2 = norm(m, h, layer, HR_WEIGHT_NORM_2);
    const hr_value f = plain_mlp(m, layer, n2);
    return finished(m, mark, joined(m, h, f));
}

/* ---- wide */

/* s_t = a s_(t-1) + (1 - a) u_t, one token after another: autograd keeps the state and the input of
 * every token, and their sum. */
hr_value hr_estimate_layer_wide(hr_tape *tape, const void *model, int64_t layer, hr_value x)
{
    const hr_estimate_model *m = model;
    hr_torch *torch = (hr_torch *)&m->torch;
    const int32_t mark = hr_tape_enter(tape);
    const hr_value u = linear(m, "inputs of the recurrence", x, layer, HR_WEIGHT_UP, -1);
    const hr_value alpha = m->layers[layer][HR_WEIGHT_NORM_1].value;
    const int32_t node = hr_tape_node_new(tape, "recurrence", true);
    hr_tape_edge(tape, node, u, u.count * u.width, HR_ESTIMATE_OTHER_GRADIENTS);
    hr_tape_edge(tape, node, alpha, alpha.count * alpha.width, HR_ESTIMATE_GRADIENTS);
    hr_tape_extra(tape, node, 2 * u.count * u.width);
    hr_tape_save(tape, node, u);
    const hr_value states = hr_torch_output(torch, "states of the recurrence", ACT, u.count,
                                            u.width, node);
    hr_tape_save(tape, node, states);
    const hr_value rows = hr_torch_copy(torch, "states of the recurrence", states);
    return finished(m, mark, joined(m, x, rows));
}
