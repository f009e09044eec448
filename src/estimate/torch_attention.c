/* SPDX-License-Identifier: Apache-2.0 */
/* estimate/torch_attention.c - attention: the fused kernel, separate operations, and a product by
 * broadcasting. */
#include "base/checked.h"
#include "estimate/torch.h"

enum { FP32 = 4, GRAD = HR_ESTIMATE_OTHER_GRADIENTS, SCORES = HR_ESTIMATE_SCORES };

static const char cast_label[] = "inputs of attention, cast";

static int64_t mask_width(const hr_torch *torch)
{
    return hr_torch_width(torch->settings->weights);
}

/* A copy of a tensor that a product needs contiguous, or of keys for every query head. */
static hr_value spread(hr_torch *torch, hr_value x, hr_value original, int64_t count)
{
    const int32_t node = hr_tape_node_new(torch->tape, "copies for attention", x.grad);
    hr_tape_edge(torch->tape, node, x, x.count * x.width, GRAD);
    const hr_value copy = hr_torch_output(torch, "copies for attention", HR_ESTIMATE_ACTIVATIONS,
                                          count, x.width, node);
    if (x.storage != original.storage) hr_tape_drop(torch->tape, x);
    return copy;
}

/* Keeps q, k, v, the output, and the logarithm of each row's sum. A mask is kept as numbers, and
 * takes a copy of the keys for every query head. */
static hr_value fused(hr_torch *torch, hr_value q, hr_value k, hr_value v,
                      const hr_torch_attention *at)
{
    hr_tape *tape = torch->tape;
    const bool spreads = at->masked && at->G != at->H;
    if (spreads) k = spread(torch, k, k, q.count), v = spread(torch, v, v, q.count);
    const hr_value ql = hr_torch_lower(torch, cast_label, q);
    const hr_value kl = hr_torch_lower(torch, cast_label, k);
    const hr_value vl = hr_torch_lower(torch, cast_label, v);
    const int32_t node = hr_tape_node_new(tape, "attention", ql.grad || kl.grad || vl.grad);
    hr_tape_edge(tape, node, ql, ql.count * ql.width, GRAD);
    hr_tape_edge(tape, node, kl, kl.count * kl.width, GRAD);
    hr_tape_edge(tape, node, vl, vl.count * vl.width, GRAD);
    /* The backward kernel of a GPU sums the gradient of q in fp32. */
    if (torch->settings->device == HR_ESTIMATE_CUDA) hr_tape_extra(tape, node, q.count * FP32);
    hr_tape_save(tape, node, ql);
    hr_tape_save(tape, node, kl);
    hr_tape_save(tape, node, vl);
    if (at->masked)
        hr_tape_save(tape, node,
                     hr_torch_output(torch, "mask as numbers [B, T, T]", SCORES,
                                     at->B * at->T * at->T, ql.width, HR_TAPE_NONE));
    const hr_value out = hr_torch_output(torch, "outputs of attention", HR_ESTIMATE_ACTIVATIONS,
                                         ql.count, ql.width, node);
    const hr_value sums = hr_tape_value(tape, "row sums of attention", HR_ESTIMATE_ACTIVATIONS,
                                        at->B * at->H * at->T, FP32);
    hr_tape_save(tape, node, out);
    hr_tape_save(tape, node, sums);
    /* On the CPU the output has the order of q; rows of all heads are then another copy. */
    if (at->contiguous && torch->settings->device == HR_ESTIMATE_CPU)
        return hr_torch_copy(torch, "outputs of attention", out);
    return out;
}

static hr_value batched(hr_torch *torch, const char *label, int32_t component, hr_value a,
                        hr_value b, int64_t count)
{
    hr_tape *tape = torch->tape;
    const int32_t node = hr_tape_node_new(tape, label, a.grad || b.grad);
    hr_tape_edge(tape, node, a, a.count * a.width, component == SCORES ? GRAD : SCORES);
    hr_tape_edge(tape, node, b, b.count * b.width, GRAD);
    if (b.grad) hr_tape_save(tape, node, a);
    if (a.grad) hr_tape_save(tape, node, b);
    return hr_torch_output(torch, label, component, count, a.width, node);
}

static hr_value softmax(hr_torch *torch, hr_value x)
{
    const int32_t node = hr_tape_node_new(torch->tape, "softmax", x.grad);
    hr_tape_edge(torch->tape, node, x, x.count * x.width, SCORES);
    const hr_value out = hr_torch_output(torch, "softmax [B, H, T, T]", SCORES, x.count, x.width,
                                         node);
    hr_tape_save(torch->tape, node, out);
    return out;
}

/* The library's own function computes in fp32. */
static hr_value widened(hr_torch *torch, hr_value x)
{
    const hr_value low = hr_torch_lower(torch, cast_label, x);
    if (low.width == FP32) return low;
    const hr_value wide = hr_torch_cast(torch, cast_label, HR_ESTIMATE_ACTIVATIONS, low, FP32);
    if (low.storage != x.storage) hr_tape_drop(torch->tape, low);
    return wide;
}

/* Scores, mask, softmax, dropout and the product with v as separate operations. `inside`: the
 * fallback of the library's own function, which scales q and k instead of the scores. */
static hr_value separate(hr_torch *torch, hr_value q, hr_value k, hr_value v,
                         const hr_torch_attention *at, bool inside)
{
    hr_tape *tape = torch->tape;
    const int64_t full = q.count, square = at->B * at->H * at->T * at->T;
    const bool shared = at->G != at->H, contiguous = at->contiguous || at->B == 1;
    hr_value a = inside ? widened(torch, q) : q;
    hr_value b = inside ? widened(torch, k) : k;
    hr_value c = inside ? widened(torch, v) : v;
    if (at->wide) {
        a = hr_torch_cast(torch, cast_label, HR_ESTIMATE_ACTIVATIONS, a, FP32);
        b = hr_torch_cast(torch, cast_label, HR_ESTIMATE_ACTIVATIONS, b, FP32);
    }
    if (shared) b = spread(torch, b, k, full), c = spread(torch, c, v, full);
    if (inside) {
        a = hr_torch_scale(torch, "scaled queries and keys", a);
        b = hr_torch_scale(torch, "scaled queries and keys", b);
    } else {
        a = hr_torch_lower(torch, cast_label, a);
        b = hr_torch_lower(torch, cast_label, b);
    }
    if (!contiguous) a = spread(torch, a, inside ? a : q, full);
    if (!contiguous && !at->copied && (!shared || inside)) b = spread(torch, b, k, full);
    hr_value s = batched(torch, "scores [B, H, T, T]", SCORES, a, b, square);
    if (!inside) {
        const hr_value scaled = hr_torch_cast(torch, "scores [B, H, T, T]", SCORES, s, s.width);
        hr_tape_drop(tape, s);
        s = scaled;
    }
    const int32_t masked = hr_tape_node_new(tape, "mask", s.grad);
    /* The mask has the dtype of the residual stream. */
    const int64_t width = inside ? s.width : hr_max(s.width, mask_width(torch));
    hr_tape_edge(tape, masked, s, width > s.width ? square * s.width : 0, SCORES);
    hr_value m = hr_torch_output(torch, "scores [B, H, T, T]", SCORES, square, width, masked);
    hr_tape_drop(tape, s);
    if (!inside && at->upcast && m.width < FP32) {
        const hr_value wide = hr_torch_cast(torch, "scores in fp32 [B, H, T, T]", SCORES, m, FP32);
        hr_tape_drop(tape, m);
        m = wide;
    }
    hr_value p = softmax(torch, m);
    hr_tape_drop(tape, m);
    if (!inside && p.width > q.width) {
        const hr_value low = hr_torch_cast(torch, "softmax [B, H, T, T]", SCORES, p, q.width);
        hr_tape_drop(tape, p);
        p = low;
    }
    const hr_value d = hr_torch_dropout(torch, SCORES, p, at->dropout);
    if (!inside) {
        torch->scores = d.storage;
        hr_tape_refer(tape, d.storage);
    }
    const hr_value dl = !inside && torch->autocast && d.width > torch->autocast
                            ? hr_torch_cast(torch, "softmax [B, H, T, T]", SCORES, d,
                                            torch->autocast)
                            : d;
    const int64_t result = torch->autocast ? hr_min(torch->autocast, q.width) : q.width;
    /* The function also returns the attention weights, in the dtype of the output. */
    if (inside && result < FP32)
        hr_tape_value(tape, "softmax [B, H, T, T]", SCORES, square, result);
    if (!inside) c = hr_torch_lower(torch, cast_label, c);
    if (at->B > 1 && !at->copied && (!shared || inside)) c = spread(torch, c, inside ? c : v, full);
    const hr_value o = batched(torch, "outputs of attention", HR_ESTIMATE_ACTIVATIONS, dl, c, full);
    if (!inside) return hr_torch_copy(torch, "outputs of attention", o);
    if (result == o.width) return hr_torch_copy(torch, "outputs of attention", o);
    const hr_value low = hr_torch_cast(torch, "outputs of attention", HR_ESTIMATE_ACTIVATIONS, o,
                                       result);
    return hr_torch_copy(torch, "outputs of attention", low);
}

/* The product of every query with every key, element by element, before it is summed. */
static hr_value broadcast(hr_torch *torch, hr_value q, hr_value k, hr_value v,
                          const hr_torch_attention *at)
{
    hr_tape *tape = torch->tape;
    const int64_t square = at->B * at->H * at->T * at->T;
    const char *label = "products [B, H, T, T, head]";
    const int32_t scored = hr_tape_node_new(tape, "products of queries and keys", q.grad || k.grad);
    hr_tape_edge(tape, scored, q, q.count * q.width, GRAD);
    hr_tape_edge(tape, scored, k, k.count * k.width, GRAD);
    hr_tape_extra(tape, scored, square * at->head * q.width);
    hr_tape_save(tape, scored, q);
    hr_tape_save(tape, scored, k);
    const hr_value all = hr_torch_output(torch, label, SCORES, square * at->head, q.width, scored);
    hr_tape_save(tape, scored, all);
    const int32_t summed = hr_tape_node_new(tape, "sums of products", all.grad);
    hr_tape_edge(tape, summed, all, square * q.width, SCORES);
    const hr_value s = hr_torch_output(torch, "scores [B, H, T, T]", SCORES, square, q.width,
                                       summed);
    hr_tape_drop(tape, all);
    const hr_value p = softmax(torch, s);
    hr_tape_drop(tape, s);
    const hr_value d = hr_torch_dropout(torch, SCORES, p, at->dropout);
    const int32_t weighted = hr_tape_node_new(tape, "products with values", d.grad || v.grad);
    hr_tape_edge(tape, weighted, d, square * q.width, SCORES);
    hr_tape_edge(tape, weighted, v, v.count * v.width, GRAD);
    hr_tape_extra(tape, weighted, square * at->head * q.width);
    hr_tape_save(tape, weighted, d);
    hr_tape_save(tape, weighted, v);
    const hr_value parts = hr_torch_output(torch, label, SCORES, square * at->head, q.width,
                                           weighted);
    hr_tape_save(tape, weighted, parts);
    const int32_t node = hr_tape_node_new(tape, "sums of products", parts.grad);
    hr_tape_edge(tape, node, parts, q.count * q.width, GRAD);
    return hr_torch_output(torch, "outputs of attention", HR_ESTIMATE_ACTIVATIONS, q.count, q.width,
                           node);
}

hr_value hr_torch_attend(hr_torch *torch, hr_value q, hr_value k, hr_value v,
                         const hr_torch_attention *at)
{
    const int32_t mark = hr_tape_enter(torch->tape);
    const hr_estimate_settings *settings = torch->settings;
    const bool falls_back = at->dropout > 0 && settings->device == HR_ESTIMATE_CPU;
    hr_value out;
    if (settings->attention == HR_ESTIMATE_BROADCAST) out = broadcast(torch, q, k, v, at);
    else if (settings->attention == HR_ESTIMATE_EAGER || at->wide)
        out = separate(torch, q, k, v, at, false);
    else if (falls_back) out = separate(torch, q, k, v, at, true);
    else out = fused(torch, q, k, v, at);
    return hr_tape_leave(torch->tape, mark, out);
}
