/* SPDX-License-Identifier: Apache-2.0 */
/* estimate/torch.c - element-wise operations, products, norms and embeddings. */
#include "estimate/torch.h"

#include <stddef.h>

#include "base/checked.h"

enum { FP32 = 4, ACT = HR_ESTIMATE_ACTIVATIONS, GRAD = HR_ESTIMATE_OTHER_GRADIENTS };

int64_t hr_torch_width(int32_t dtype)
{
    static const int8_t bytes[] = { 4, 2, 2, 1, 0, 0 };
    return bytes[dtype];
}

static int64_t bytes_of(hr_value value)
{
    return value.count * value.width;
}

hr_value hr_torch_output(hr_torch *torch, const char *label, int32_t component, int64_t count,
                         int64_t width, int32_t node)
{
    hr_value out = hr_tape_value(torch->tape, label, component, count, width);
    out.node = node;
    out.grad = node != HR_TAPE_NONE;
    return out;
}

hr_value hr_torch_cast(hr_torch *torch, const char *label, int32_t component, hr_value x,
                       int64_t width)
{
    const int32_t node = hr_tape_node_new(torch->tape, label, x.grad);
    hr_tape_edge(torch->tape, node, x, bytes_of(x), GRAD);
    return hr_torch_output(torch, label, component, x.count, width, node);
}

hr_value hr_torch_copy(hr_torch *torch, const char *label, hr_value x)
{
    return hr_torch_cast(torch, label, ACT, x, x.width);
}

hr_value hr_torch_lower(hr_torch *torch, const char *label, hr_value x)
{
    if (!torch->autocast || x.width <= torch->autocast) return x;
    return hr_torch_cast(torch, label, ACT, x, torch->autocast);
}

/* A weight in a product. Autocast keeps the copies of trained weights until it ends. */
static hr_value lowered_weight(hr_torch *torch, hr_torch_parameter *w)
{
    hr_tape *tape = torch->tape;
    if (!torch->autocast || w->value.width <= torch->autocast) return w->value;
    const int64_t scope = torch->scope * (INT64_C(1) << 20) + 1 +
                          (tape->cursor == HR_TAPE_NONE ? -1 : tape->replayed);
    if (w->value.grad && w->cast_scope == scope) return w->cast;
    const int32_t node = hr_tape_node_new(tape, "gradients of weights", w->value.grad);
    hr_tape_edge(tape, node, w->value, bytes_of(w->value), HR_ESTIMATE_GRADIENTS);
    const hr_value cast = hr_torch_output(torch, "weights, cast", HR_ESTIMATE_COPIES,
                                          w->value.count, torch->autocast, node);
    if (!w->value.grad) return cast;
    hr_tape_cache(tape, cast.storage);
    w->cast = cast;
    w->cast_scope = scope;
    return cast;
}

static void drop_other(hr_torch *torch, hr_value value, hr_value original)
{
    if (value.storage != original.storage) hr_tape_drop(torch->tape, value);
}

static hr_value product(hr_torch *torch, const char *label, int32_t component, hr_value x,
                        hr_torch_parameter *w, hr_torch_parameter *b)
{
    hr_tape *tape = torch->tape;
    const hr_value xl = hr_torch_lower(torch, "inputs of products, cast", x),
                   wl = lowered_weight(torch, w);
    const hr_value bl = b ? lowered_weight(torch, b) : (hr_value){ .grad = false };
    const int64_t outputs = w->value.count / w->inputs, rows = x.count / w->inputs;
    const int64_t dequantized = w->quantized ? w->value.count * 2 : 0;
    hr_tape_burst(tape, label, HR_ESTIMATE_COPIES, dequantized);
    const int32_t node = hr_tape_node_new(tape, label, xl.grad || wl.grad || bl.grad);
    hr_tape_edge(tape, node, xl, bytes_of(xl), component == ACT ? GRAD : component);
    hr_tape_edge(tape, node, wl, bytes_of(wl), HR_ESTIMATE_GRADIENTS);
    if (b) hr_tape_edge(tape, node, bl, bytes_of(bl), HR_ESTIMATE_GRADIENTS);
    hr_tape_extra(tape, node, xl.grad ? dequantized : 0);
    if (wl.grad) hr_tape_save(tape, node, xl);
    if (xl.grad) hr_tape_save(tape, node, wl);
    const int64_t width = w->quantized ? xl.width : wl.width;
    const hr_value out = hr_torch_output(torch, label, component, rows * outputs, width, node);
    drop_other(torch, xl, x);
    if (!w->value.grad) drop_other(torch, wl, w->value);
    return out;
}

/* A product of each column with a factor that is trained; what the factor's gradient sums is as
 * large as x. */
static hr_value columns(hr_torch *torch, hr_value x, hr_value factor)
{
    hr_tape *tape = torch->tape;
    const int32_t node = hr_tape_node_new(tape, "magnitudes", true);
    hr_tape_edge(tape, node, x, bytes_of(x), GRAD);
    hr_tape_edge(tape, node, factor, bytes_of(factor), GRAD);
    hr_tape_extra(tape, node, bytes_of(x));
    hr_tape_save(tape, node, x);
    if (x.grad) hr_tape_save(tape, node, factor);
    return hr_torch_output(torch, "magnitudes", ACT, x.count, hr_max(x.width, factor.width), node);
}

/* What PEFT adds to y for DoRA: (m / v - 1) base + m / v scale B(A(x)), with v from A and B applied
 * to the unit matrix, which lives to the end. */
static hr_value directed(hr_torch *torch, hr_value x, hr_value y, hr_torch_parameter *w,
                         const hr_torch_parameter *bias)
{
    hr_tape *tape = torch->tape;
    hr_torch_parameter *a = (hr_torch_parameter *)w->lora_a, *b = (hr_torch_parameter *)w->lora_b;
    const int64_t inputs = w->inputs, outputs = w->value.count / inputs, width = a->value.width;
    const int32_t mark = hr_tape_enter(tape);
    /* Their gradients are not asked for: the norm is a constant. */
    const int64_t rank = a->value.count / inputs;
    const int64_t counts[] = { inputs * inputs, inputs * rank, inputs * outputs };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        (void)hr_tape_value(tape, "W + s B A of DoRA", HR_ESTIMATE_COPIES, counts[i], width);
    hr_torch_parameter weight = *w;
    if (w->value.width != width)
        weight.value = hr_tape_value(tape, "W + s B A of DoRA", HR_ESTIMATE_COPIES, w->value.count,
                                     width);
    hr_tape_burst(tape, "W + s B A of DoRA", HR_ESTIMATE_COPIES, 2 * inputs * outputs * width);
    if (torch->transposes) { /* PEFT wraps W in a new parameter, whose gradient is computed */
        weight.value.grad = true;
        weight.value.node = hr_tape_node_new(tape, "W + s B A of DoRA", true);
        weight.cast_scope = -1;
    }
    const hr_value factor = hr_torch_scale(torch, "magnitudes", w->lora_m->value);
    const hr_value low = product(torch, "adapters", ACT, x, a, NULL);
    const hr_value wide = product(torch, "adapters", ACT, low, b, NULL);
    hr_value base = y;
    if (torch->settings->lora_dropout > 0)
        base = product(torch, "magnitudes", ACT, x, &weight, NULL);
    else if (bias)
        base = hr_torch_cast(torch, "magnitudes", ACT, y, hr_max(y.width, bias->value.width));
    const hr_value one = columns(torch, base, factor), two = columns(torch, wide, factor);
    const hr_value scaled = hr_torch_scale(torch, "magnitudes", two);
    hr_tape_drop(tape, two);
    return hr_tape_leave(tape, mark, hr_torch_add(torch, "magnitudes", one, scaled));
}

/* The adapters of a product: y + scale B(A(dropout(x))), in the dtype of the adapters. */
static hr_value adapted(hr_torch *torch, hr_value x, hr_value y, hr_torch_parameter *w,
                        const hr_torch_parameter *bias)
{
    hr_tape *tape = torch->tape;
    const int32_t mark = hr_tape_enter(tape);
    hr_torch_parameter *a = (hr_torch_parameter *)w->lora_a, *b = (hr_torch_parameter *)w->lora_b;
    hr_value in = x;
    if (x.width != a->value.width)
        in = hr_torch_cast(torch, "inputs of adapters", ACT, x, a->value.width);
    const hr_value dropped = hr_torch_dropout(torch, ACT, in, torch->settings->lora_dropout);
    hr_value more;
    if (w->lora_m) {
        more = directed(torch, dropped, y, w, bias);
    } else {
        const hr_value low = product(torch, "adapters", ACT, dropped, a, NULL);
        const hr_value wide = product(torch, "adapters", ACT, low, b, NULL);
        more = hr_torch_scale(torch, "adapters", wide);
        hr_tape_drop(tape, wide);
    }
    hr_value sum = hr_torch_add(torch, "adapters", y, more);
    if (sum.width != y.width) sum = hr_torch_cast(torch, "adapters", ACT, sum, y.width);
    return hr_tape_leave(tape, mark, sum);
}

hr_value hr_torch_linear(hr_torch *torch, const char *label, int32_t component, hr_value x,
                         hr_torch_parameter *w, hr_torch_parameter *b)
{
    const hr_value y = product(torch, label, component, x, w, b);
    if (!w->lora_a) return y;
    const hr_value sum = adapted(torch, x, y, w, b);
    hr_tape_drop(torch->tape, y);
    return sum;
}

hr_value hr_torch_add(hr_torch *torch, const char *label, hr_value a, hr_value b)
{
    const int64_t width = hr_max(a.width, b.width);
    const int32_t node = hr_tape_node_new(torch->tape, label, a.grad || b.grad);
    hr_tape_edge(torch->tape, node, a, a.width == width ? 0 : bytes_of(a), GRAD);
    hr_tape_edge(torch->tape, node, b, b.width == width ? 0 : bytes_of(b), GRAD);
    return hr_torch_output(torch, label, ACT, hr_max(a.count, b.count), width, node);
}

hr_value hr_torch_scale(hr_torch *torch, const char *label, hr_value x)
{
    return hr_torch_cast(torch, label, ACT, x, x.width);
}

hr_value hr_torch_multiply(hr_torch *torch, const char *label, hr_value a, hr_value b)
{
    const int32_t node = hr_tape_node_new(torch->tape, label, a.grad || b.grad);
    hr_tape_edge(torch->tape, node, a, bytes_of(a), GRAD);
    hr_tape_edge(torch->tape, node, b, bytes_of(b), GRAD);
    if (b.grad) hr_tape_save(torch->tape, node, a);
    if (a.grad) hr_tape_save(torch->tape, node, b);
    return hr_torch_output(torch, label, ACT, a.count, hr_max(a.width, b.width), node);
}

/* The mask has the dtype of x on the CPU, and a byte per element on a GPU. */
hr_value hr_torch_dropout(hr_torch *torch, int32_t component, hr_value x, double p)
{
    if (p <= 0) return x;
    const int64_t width = torch->settings->device == HR_ESTIMATE_CPU ? x.width : 1;
    const hr_value mask = hr_tape_value(torch->tape, "masks of dropout", component, x.count, width);
    const int32_t node = hr_tape_node_new(torch->tape, "dropout", x.grad);
    hr_tape_edge(torch->tape, node, x, bytes_of(x), component == ACT ? GRAD : component);
    hr_tape_save(torch->tape, node, mask);
    const hr_value out = hr_torch_output(torch, "outputs of dropout", component, x.count, x.width,
                                         node);
    hr_tape_drop(torch->tape, mask);
    return out;
}

hr_value hr_torch_layer_norm(hr_torch *torch, hr_value x, const hr_torch_parameter *w,
                             const hr_torch_parameter *b)
{
    hr_tape *tape = torch->tape;
    const int32_t mark = hr_tape_enter(tape);
    if (torch->autocast && torch->settings->device == HR_ESTIMATE_CUDA && x.width < FP32)
        x = hr_torch_cast(torch, "inputs of norms, fp32", ACT, x, FP32);
    const int64_t rows = x.count / w->value.count;
    const int32_t node = hr_tape_node_new(tape, "norms", x.grad || w->value.grad || b->value.grad);
    hr_tape_edge(tape, node, x, bytes_of(x), GRAD);
    hr_tape_edge(tape, node, w->value, bytes_of(w->value), HR_ESTIMATE_GRADIENTS);
    hr_tape_edge(tape, node, b->value, bytes_of(b->value), HR_ESTIMATE_GRADIENTS);
    hr_tape_save(tape, node, x);
    const hr_value stats = hr_tape_value(tape, "statistics of norms", ACT, 2 * rows, x.width);
    hr_tape_save(tape, node, stats);
    return hr_tape_leave(tape, mark,
                         hr_torch_output(torch, "outputs of norms", ACT, x.count, x.width, node));
}

/* As transformers writes it:
 *     x = x.to(fp32); x = x * rsqrt(mean(x^2) + eps); w * x.to(dtype) */
hr_value hr_torch_rms_norm(hr_torch *torch, hr_value x, const hr_torch_parameter *w)
{
    hr_tape *tape = torch->tape;
    const int32_t mark = hr_tape_enter(tape);
    hr_value wide = x;
    if (x.width != FP32) wide = hr_torch_cast(torch, "inputs of norms, fp32", ACT, x, FP32);
    const int64_t bytes = bytes_of(wide), rows = x.count / w->value.count;
    const int32_t squared = hr_tape_node_new(tape, "norms", wide.grad);
    hr_tape_edge(tape, squared, wide, bytes, GRAD);
    hr_tape_extra(tape, squared, 2 * bytes);
    hr_tape_save(tape, squared, wide);
    hr_value square = hr_torch_output(torch, "norms, squares", ACT, x.count, FP32, squared);
    const int32_t averaged = hr_tape_node_new(tape, "norms", square.grad);
    hr_tape_edge(tape, averaged, square, bytes, GRAD);
    hr_value scale = hr_torch_output(torch, "statistics of norms", ACT, rows, FP32, averaged);
    hr_tape_save(tape, averaged, scale);
    hr_tape_drop(tape, square);
    const int32_t scaled = hr_tape_node_new(tape, "norms", wide.grad);
    hr_tape_edge(tape, scaled, wide, bytes, GRAD);
    hr_tape_edge(tape, scaled, scale, rows * FP32, GRAD);
    hr_tape_extra(tape, scaled, bytes);
    hr_tape_save(tape, scaled, wide);
    hr_tape_save(tape, scaled, scale);
    hr_value y = hr_torch_output(torch, "normalized rows", ACT, x.count, FP32, scaled);
    if (x.width != FP32) y = hr_torch_cast(torch, "normalized rows", ACT, y, x.width);
    const int32_t node = hr_tape_node_new(tape, "norms", y.grad || w->value.grad);
    hr_tape_edge(tape, node, y, bytes_of(y), GRAD);
    hr_tape_edge(tape, node, w->value, bytes_of(w->value), HR_ESTIMATE_GRADIENTS);
    if (w->value.grad) hr_tape_extra(tape, node, bytes_of(y));
    if (w->value.grad) hr_tape_save(tape, node, y);
    const hr_value out = hr_torch_output(torch, "outputs of norms", ACT, x.count,
                                         hr_max(y.width, w->value.width), node);
    return hr_tape_leave(tape, mark, out);
}

hr_value hr_torch_activation(hr_torch *torch, const char *label, hr_value x, bool keeps_output)
{
    const int32_t node = hr_tape_node_new(torch->tape, label, x.grad);
    hr_tape_edge(torch->tape, node, x, bytes_of(x), GRAD);
    if (!keeps_output) hr_tape_save(torch->tape, node, x);
    const hr_value out = hr_torch_output(torch, label, ACT, x.count, x.width, node);
    if (keeps_output) hr_tape_save(torch->tape, node, out);
    return out;
}

/* 0.5 x (1 + tanh(c (x + 0.044715 x^3))), operation by operation: x is kept twice over, and so are
 * the tanh and both factors of the last product. */
hr_value hr_torch_gelu_tanh(hr_torch *torch, hr_value x)
{
    hr_tape *tape = torch->tape;
    const int32_t mark = hr_tape_enter(tape);
    const hr_value half = hr_torch_scale(torch, "GELU, 0.5 x", x);
    const int32_t cubed = hr_tape_node_new(tape, "GELU", x.grad);
    hr_tape_edge(tape, cubed, x, bytes_of(x), GRAD);
    hr_tape_extra(tape, cubed, 2 * bytes_of(x));
    hr_tape_save(tape, cubed, x);
    const hr_value cube = hr_torch_output(torch, "GELU", ACT, x.count, x.width, cubed);
    const hr_value part = hr_torch_scale(torch, "GELU", cube);
    hr_tape_drop(tape, cube);
    const hr_value sum = hr_torch_add(torch, "GELU", x, part);
    hr_tape_drop(tape, part);
    const hr_value inner = hr_torch_scale(torch, "GELU", sum);
    hr_tape_drop(tape, sum);
    const hr_value angle = hr_torch_activation(torch, "GELU, tanh", inner, true);
    hr_tape_drop(tape, inner);
    const int32_t added = hr_tape_node_new(tape, "GELU", angle.grad);
    hr_tape_edge(tape, added, angle, 0, GRAD);
    const hr_value one = hr_torch_output(torch, "GELU, 1 + tanh", ACT, x.count, x.width, added);
    hr_tape_drop(tape, angle);
    return hr_tape_leave(tape, mark, hr_torch_multiply(torch, "outputs of GELU", half, one));
}

/* A part of x: its gradient is as large as that of x. */
static hr_value part(hr_torch *torch, hr_value x, int64_t count)
{
    const int32_t node = hr_tape_node_new(torch->tape, "RoPE", x.grad);
    hr_tape_edge(torch->tape, node, x, bytes_of(x), GRAD);
    return (hr_value){ HR_TAPE_NONE, node, count, x.width, node != HR_TAPE_NONE };
}

/* x cos + turned(x) sin, where `turned` swaps both halves and negates one. */
static hr_value rotate(hr_torch *torch, hr_value x, int64_t width)
{
    hr_tape *tape = torch->tape;
    const int64_t wide = hr_max(x.width, width), narrow = bytes_of(x);
    const int64_t cast = wide > x.width ? x.count * wide : 0;
    const int32_t direct = hr_tape_node_new(tape, "RoPE", x.grad);
    hr_tape_edge(tape, direct, x, narrow, GRAD);
    hr_tape_extra(tape, direct, cast);
    const hr_value a = hr_torch_output(torch, "RoPE", ACT, x.count, wide, direct);
    const int32_t turned = hr_tape_node_new(tape, "RoPE", x.grad);
    hr_tape_edge(tape, turned, x, narrow, GRAD);
    hr_tape_edge(tape, turned, x, narrow, GRAD);
    hr_tape_extra(tape, turned, narrow / 2);
    hr_tape_burst(tape, "RoPE", ACT, narrow + narrow / 2);
    const hr_value turn = hr_torch_output(torch, "RoPE", ACT, x.count, x.width, turned);
    const int32_t multiplied = hr_tape_node_new(tape, "RoPE", turn.grad);
    hr_tape_edge(tape, multiplied, turn, narrow, GRAD);
    hr_tape_extra(tape, multiplied, cast);
    const hr_value b = hr_torch_output(torch, "RoPE", ACT, x.count, wide, multiplied);
    hr_tape_drop(tape, turn);
    const hr_value sum = hr_torch_add(torch, "rotated queries and keys", a, b);
    hr_tape_drop(tape, a);
    hr_tape_drop(tape, b);
    return sum;
}

hr_value hr_torch_rope(hr_torch *torch, hr_value x, int64_t head, int64_t rotated, int64_t width)
{
    hr_tape *tape = torch->tape;
    if (!rotated) return x;
    const int32_t mark = hr_tape_enter(tape);
    if (rotated == head) return hr_tape_leave(tape, mark, rotate(torch, x, width));
    /* The rest of the head is joined to it: another copy, in the wider dtype. */
    const int64_t count = x.count / head * rotated;
    const hr_value sum = rotate(torch, part(torch, x, count), width);
    const hr_value rest = part(torch, x, x.count - count);
    const int32_t joined = hr_tape_node_new(tape, "RoPE", x.grad);
    hr_tape_edge(tape, joined, sum, 0, GRAD);
    hr_tape_edge(tape, joined, rest, rest.count * rest.width, GRAD);
    if (sum.width > x.width) hr_tape_burst(tape, "RoPE", ACT, rest.count * sum.width);
    return hr_tape_leave(
        tape, mark,
        hr_torch_output(torch, "rotated queries and keys", ACT, x.count, sum.width, joined));
}

/* Views of parts of x: the gradients of the parts are joined in a new tensor. */
hr_value hr_torch_split(hr_torch *torch, hr_value x)
{
    const int32_t node = hr_tape_node_new(torch->tape, "parts of a product", x.grad);
    hr_tape_edge(torch->tape, node, x, bytes_of(x), GRAD);
    if (node != HR_TAPE_NONE) torch->tape->nodes[node].collects = true;
    x.node = node;
    x.grad = node != HR_TAPE_NONE;
    return x;
}

hr_value hr_torch_embedding(hr_torch *torch, const char *label, int64_t rows, int64_t width,
                            const hr_torch_parameter *table)
{
    const int32_t node = hr_tape_node_new(torch->tape, label, table->value.grad);
    hr_tape_edge(torch->tape, node, table->value, bytes_of(table->value), HR_ESTIMATE_GRADIENTS);
    const hr_value y = hr_torch_output(torch, label, ACT, rows * width, table->value.width, node);
    if (!table->lora_a) return y;
    hr_tape *tape = torch->tape;
    const int32_t mark = hr_tape_enter(tape);
    hr_torch_parameter *b = (hr_torch_parameter *)table->lora_b;
    const hr_value low = hr_torch_embedding(torch, "adapters", rows, b->inputs, table->lora_a);
    const hr_value wide = product(torch, "adapters", ACT, low, b, NULL);
    hr_value sum = hr_torch_add(torch, "adapters", y, hr_torch_scale(torch, "adapters", wide));
    if (sum.width != y.width) sum = hr_torch_cast(torch, "adapters", ACT, sum, y.width);
    hr_tape_drop(tape, y);
    return hr_tape_leave(tape, mark, sum);
}
