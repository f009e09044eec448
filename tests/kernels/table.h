/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kernels/table.h - every operation with kernel variants: how to build a case, its error
 * bounds, and the sizes for timing.
 *
 * Timed arrays fit in the caches, those of simple passes in L1, so that the instructions of a
 * kernel decide and not the memory bandwidth. */
#ifndef HR_TESTS_KERNELS_TABLE_H
#define HR_TESTS_KERNELS_TABLE_H

#include "kernels/weight_cases.h"
#include "ops/cpu.h"
#include "ops/linear/linear.h"

/* ---- matrix products: K = a, N = b */

enum { LINEAR_PLAIN, LINEAR_RELU, LINEAR_GELU, LINEAR_GELU_TANH };

/* Rounding of a sum of `products` products of about one. */
static inline kernel_bound kernel_product(hr_dtype dtype, int64_t products)
{
    const double size = sqrt((double)products);
    return kernel_rounded(dtype, dtype == HR_BF16 ? size / 16 : size);
}

static inline void make_linear(kernel_case *c, kernel_sizes s, int32_t option)
{
    static const hr_act acts[] = { HR_ACT_NONE, HR_ACT_RELU, HR_ACT_GELU, HR_ACT_GELU_TANH };
    const hr_dtype dtype = c->call.dtype;
    const kernel_bound bound = kernel_product(dtype, s.a);
    c->attr.linear = (hr_linear_attr){ s.a, s.b, 64, acts[option] };
    c->run = hr_linear_run;
    c->kernel_offset = KERNEL_LINEAR(c, mm);
    c->scratch_bytes = hr_linear_cpu.scratch_bytes;
    kernel_in(c, 0, dtype, s.rows * s.a, KERNEL_UNIFORM, 1);
    kernel_weight(c, 1, s.a, s.b);
    if (option != LINEAR_PLAIN) kernel_in(c, 2, HR_F32, s.b, KERNEL_UNIFORM, 1);
    if (option == LINEAR_RELU) kernel_in(c, 3, dtype, s.rows * s.b, KERNEL_UNIFORM, 1);
    if (option < LINEAR_GELU) {
        kernel_out(c, 0, dtype, s.rows * s.b, bound);
        return;
    }
    /* GELU is of out 1 as it is stored, and then rounded once more. */
    kernel_out(c, 0, dtype, s.rows * s.b, (kernel_bound){ false, 2 * bound.tolerance, bound.size });
    kernel_out(c, 1, dtype, s.rows * s.b, bound);
}

static inline void make_linear_dx(kernel_case *c, kernel_sizes s, int32_t option)
{
    static const hr_act acts[] = { HR_ACT_NONE, HR_ACT_RELU, HR_ACT_GELU, HR_ACT_GELU_TANH };
    const hr_dtype dtype = c->call.dtype;
    c->attr.linear = (hr_linear_attr){ s.a, s.b, 64, acts[option] };
    c->run = hr_linear_dx_run;
    c->kernel_offset = KERNEL_LINEAR(c, mm);
    c->scratch_bytes = hr_linear_dx_cpu.scratch_bytes;
    kernel_in(c, 0, dtype, s.rows * s.b, KERNEL_UNIFORM, 1);
    kernel_weight(c, 1, s.a, s.b);
    if (option != LINEAR_PLAIN) kernel_in(c, 2, dtype, s.rows * s.a, KERNEL_UNIFORM, 1);
    if (option != LINEAR_PLAIN) kernel_in(c, 3, dtype, s.rows * s.a, KERNEL_UNIFORM, 6);
    kernel_out(c, 0, dtype, s.rows * s.a, kernel_product(dtype, s.b));
}

enum { DW_ALONE, DW_DB, DW_STRIP };

/* DW_STRIP: the second of two strips. */
static inline void make_linear_dw(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    const int64_t first = option == DW_STRIP ? s.b / 2 / HR_PANEL_WIDTH * HR_PANEL_WIDTH : 0;
    const int64_t columns = hr_round_up(s.b - first, HR_PANEL_WIDTH);
    const int64_t count = hr_layout_elements(hr_linear_layout(dtype), s.a, columns);
    c->attr.linear = (hr_linear_attr){ s.a, s.b, 64, HR_ACT_NONE };
    if (option == DW_STRIP) c->attr.linear.strip = columns;
    c->attr.linear.strip_first = first;
    c->run = hr_linear_dw_run;
    c->kernel_offset = KERNEL_LINEAR(c, dw);
    c->scratch_bytes = hr_linear_dw_cpu.scratch_bytes;
    c->call.clear = 3;
    kernel_in(c, 0, dtype, s.rows * s.a, KERNEL_UNIFORM, 1);
    kernel_in(c, 1, dtype, s.rows * s.b, KERNEL_UNIFORM, 1);
    kernel_out(c, 0, HR_F32, count, kernel_product(HR_F32, s.rows + 1));
    if (option == DW_DB) kernel_out(c, 1, HR_F32, s.b, kernel_product(HR_F32, s.rows + 1));
}

/* K = 0: only the gradient of the bias, of width b. */
static inline void make_linear_db(kernel_case *c, kernel_sizes s, int32_t option)
{
    (void)option;
    c->attr.linear = (hr_linear_attr){ 0, s.b, 64, HR_ACT_NONE };
    c->run = hr_linear_dw_run;
    c->kernel_offset = KERNEL_LINEAR(c, db);
    c->scratch_bytes = hr_linear_dw_cpu.scratch_bytes;
    c->call.clear = 3;
    kernel_in(c, 1, c->call.dtype, s.rows * s.b, KERNEL_UNIFORM, 1);
    kernel_out(c, 1, HR_F32, s.b, kernel_product(HR_F32, s.rows + 1));
}

/* ---- attention: one sequence of `rows`, heads of width a, 4 query heads on 2 key-value heads */

enum { ATTENTION_DENSE, ATTENTION_SLIDING, ATTENTION_MIXED, ATTENTION_DROPOUT };
enum { ATTENTION_H = 4, ATTENTION_G = 2 };

static inline hr_attention_mask kernel_mask(int32_t option, int64_t T)
{
    switch (option) {
    case ATTENTION_SLIDING:
        return (hr_attention_mask){ HR_PATTERN_SLIDING, 64, (int32_t)(1 + T / 3), 1 };
    case ATTENTION_MIXED: return (hr_attention_mask){ HR_PATTERN_MIXED, 64, 1, 3 };
    default: return (hr_attention_mask){ HR_PATTERN_DENSE, 64, 1, 2 };
    }
}

/* In the 2-norm, because elements of a gradient cancel, completely in a row with one key. The norm
 * of one bf16 number may be off by its last place. */
static inline kernel_bound kernel_attended(hr_dtype dtype, double size)
{
    return (kernel_bound){ true, dtype == HR_BF16 ? 8e-3 : dtype == HR_F16 ? 1e-3 : 1e-5, size };
}

static inline hr_attention_attr kernel_attention(kernel_sizes s, int32_t option)
{
    const int32_t width = (int32_t)hr_min(s.a, HR_ATTENTION_HEAD_MAX);
    return (hr_attention_attr){ .H = ATTENTION_H,
                                .G = ATTENTION_G,
                                .head_width = width,
                                .T = hr_max(s.rows, 1),
                                .q_width = ATTENTION_H * width,
                                .k_width = ATTENTION_G * width,
                                .v_width = ATTENTION_G * width,
                                .q_head_stride = width,
                                .k_head_stride = width,
                                .v_head_stride = width,
                                .mask = kernel_mask(option, s.rows),
                                .scale = 1 / sqrtf((float)width),
                                .dropout = option == ATTENTION_DROPOUT ? 0.25f : 0,
                                .site = 3 };
}

static inline void make_attention(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    c->attr.attention = kernel_attention(s, option);
    const int64_t queries = s.rows * c->attr.attention.q_width;
    const int64_t keys = s.rows * c->attr.attention.k_width;
    c->run = hr_attention_run;
    c->kernel_offset = KERNEL_TYPED(c, attention.fwd);
    c->scratch_bytes = hr_attention_cpu.scratch_bytes;
    kernel_in(c, 0, dtype, queries, KERNEL_UNIFORM, 1);
    kernel_in(c, 1, dtype, keys, KERNEL_UNIFORM, 1);
    kernel_in(c, 2, dtype, keys, KERNEL_UNIFORM, 1);
    kernel_out(c, 0, dtype, queries, kernel_attended(dtype, 1e-3));
    kernel_out(c, 1, HR_F32, s.rows * ATTENTION_H, kernel_attended(dtype, 0.05));
}

/* The derivative is a function of any o and lse, so they need not come from the forward pass. */
static inline void make_attention_bwd(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    c->attr.attention = kernel_attention(s, option);
    const int64_t queries = s.rows * c->attr.attention.q_width;
    const int64_t keys = s.rows * c->attr.attention.k_width;
    c->run = hr_attention_bwd_run;
    c->phases_of = hr_attention_bwd_phases;
    c->kernel_offset = KERNEL_TYPED(c, attention.bwd);
    c->scratch_bytes = hr_attention_bwd_cpu.scratch_bytes;
    kernel_in(c, 0, dtype, queries, KERNEL_UNIFORM, 1);
    kernel_in(c, 1, dtype, keys, KERNEL_UNIFORM, 1);
    kernel_in(c, 2, dtype, keys, KERNEL_UNIFORM, 1);
    kernel_in(c, 3, dtype, queries, KERNEL_UNIFORM, 0.3);
    kernel_in(c, 4, dtype, queries, KERNEL_UNIFORM, 1);
    kernel_in(c, 5, HR_F32, s.rows * ATTENTION_H, KERNEL_CONSTANT, log((double)s.rows + 1));
    kernel_out(c, 0, dtype, queries, kernel_attended(dtype, 0.2));
    kernel_out(c, 1, dtype, keys, kernel_attended(dtype, 0.2));
    kernel_out(c, 2, dtype, keys, kernel_attended(dtype, 0.2));
}

/* `rows` queries at the end of a cache of b rows. option: 1 sliding. Weights are rounded to the
 * dtype and the values they multiply cancel: outputs may be off by more than their last place. */
static inline void make_attention_cached(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    const hr_attention_attr a = kernel_attention(s, ATTENTION_DENSE);
    const int64_t capacity = hr_round_up(s.b + s.rows, 32);
    c->attr.cached = (hr_attention_cached_attr){ .H = a.H,
                                                 .G = a.G,
                                                 .head_width = a.head_width,
                                                 .capacity = capacity,
                                                 .q_width = a.q_width,
                                                 .q_head_stride = a.q_head_stride,
                                                 .mask = a.mask,
                                                 .scale = a.scale };
    if (option)
        c->attr.cached.mask = (hr_attention_mask){ HR_PATTERN_SLIDING, 64, (int32_t)(1 + s.b / 2),
                                                   1 };
    c->run = hr_attention_cached_run;
    c->kernel_offset = KERNEL_TYPED(c, attention.cached);
    c->scratch_bytes = hr_attention_cached_cpu.scratch_bytes;
    kernel_in(c, 0, dtype, s.rows * a.q_width, KERNEL_UNIFORM, 1);
    kernel_in(c, 1, dtype, a.G * capacity * a.head_width, KERNEL_UNIFORM, 1);
    kernel_in(c, 2, dtype, a.G * capacity * a.head_width, KERNEL_UNIFORM, 1);
    kernel_in(c, 3, HR_I32, 1, KERNEL_CONSTANT, (double)(capacity - s.rows));
    kernel_out(c, 0, dtype, s.rows * a.q_width, kernel_attended(dtype, 0.03));
}

/* ---- norms: groups of a elements */

enum { NORM_LAYER, NORM_RMS, NORM_HEADS };

static inline hr_norm_attr kernel_norm(kernel_sizes s, int32_t option)
{
    return (hr_norm_attr){ .D = s.a,
                           .groups = option == NORM_HEADS ? 4 : 1,
                           .T = 70,
                           .eps = 1e-5f,
                           .centered = option == NORM_LAYER };
}

/* Elements of a short group may be nearly equal; subtracting the mean then loses digits. */
static inline double kernel_spread(kernel_sizes s)
{
    return s.a < 3 ? 80 : s.a < 32 ? 8 : 1;
}

static inline void make_norm(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_norm_attr a = c->attr.norm = kernel_norm(s, option);
    const hr_dtype dtype = c->call.dtype;
    const int64_t count = s.rows * a.groups * a.D;
    c->run = hr_norm_run;
    c->kernel_offset = KERNEL_AT(norm.fwd);
    kernel_in(c, 0, dtype, count, KERNEL_UNIFORM, 3);
    kernel_in(c, 1, HR_F32, a.D, KERNEL_UNIFORM, 2);
    if (a.centered) kernel_in(c, 2, HR_F32, a.D, KERNEL_UNIFORM, 1);
    kernel_out(c, 0, dtype, count, kernel_rounded(dtype, kernel_spread(s)));
    kernel_out(c, 1, HR_F32, s.rows * a.groups * hr_norm_stats(&a),
               (kernel_bound){ .tolerance = 1e-5, .size = 0.1 });
}

static inline void make_norm_bwd(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_norm_attr a = c->attr.norm = kernel_norm(s, option);
    const hr_dtype dtype = c->call.dtype;
    const int64_t count = s.rows * a.groups * a.D;
    const kernel_bound sum = { .tolerance = 4e-6, .size = 64.0 * (double)a.groups };
    c->run = hr_norm_bwd_run;
    c->phases = 2;
    c->kernel_offset = KERNEL_AT(norm.bwd);
    c->scratch_bytes = hr_norm_bwd_cpu.scratch_bytes;
    c->call.clear = 6;
    kernel_in(c, 0, dtype, count, KERNEL_UNIFORM, 1);
    kernel_in(c, 1, dtype, count, KERNEL_UNIFORM, 3);
    kernel_in(c, 2, HR_F32, s.rows * a.groups * hr_norm_stats(&a), KERNEL_POSITIVE, 1);
    kernel_in(c, 3, HR_F32, a.D, KERNEL_UNIFORM, 2);
    kernel_in(c, 4, dtype, count, KERNEL_UNIFORM, 1);
    kernel_out(c, 0, dtype, count, kernel_rounded(dtype, 4));
    kernel_out(c, 1, HR_F32, a.D, sum);
    if (a.centered) kernel_out(c, 2, HR_F32, a.D, sum);
}

/* ---- magnitudes: rows of a; lengths: [a, b] of rank `rows` */

static inline void make_length(kernel_case *c, kernel_sizes s, int32_t option)
{
    (void)option;
    c->attr.length = (hr_length_attr){ s.a, s.b, s.rows, 0.5f, hr_linear_layout(c->call.dtype) };
    c->run = hr_length_run;
    c->kernel_offset = KERNEL_AT(magnitude.strip);
    kernel_weight(c, 0, s.a, s.b);
    kernel_weight(c, 1, s.a, s.rows);
    kernel_weight(c, 2, s.rows, s.b);
    kernel_out(c, 0, HR_F32, s.b, (kernel_bound){ .tolerance = 1e-5, .size = 0.1 });
}

static inline void make_magnitude(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    (void)option;
    c->attr.magnitude = (hr_magnitude_attr){ s.a, 70 };
    c->run = hr_magnitude_run;
    c->kernel_offset = KERNEL_AT(magnitude.fwd);
    kernel_in(c, 0, dtype, s.rows * s.a, KERNEL_UNIFORM, 3);
    for (int32_t i = 1; i < 4; i++) kernel_in(c, i, HR_F32, s.a, KERNEL_UNIFORM, 1);
    kernel_in(c, 4, dtype, s.rows * s.a, KERNEL_UNIFORM, 1);
    kernel_out(c, 0, dtype, s.rows * s.a, kernel_rounded(dtype, 4));
}

static inline void make_magnitude_bwd(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    (void)option;
    c->attr.magnitude = (hr_magnitude_attr){ s.a, 70 };
    c->run = hr_magnitude_bwd_run;
    c->phases = 2;
    c->kernel_offset = KERNEL_AT(magnitude.bwd);
    c->scratch_bytes = hr_magnitude_bwd_cpu.scratch_bytes;
    c->call.clear = 2;
    kernel_in(c, 0, dtype, s.rows * s.a, KERNEL_UNIFORM, 1);
    kernel_in(c, 1, dtype, s.rows * s.a, KERNEL_UNIFORM, 3);
    kernel_in(c, 2, HR_F32, s.a, KERNEL_UNIFORM, 1);
    kernel_in(c, 3, HR_F32, s.a, KERNEL_UNIFORM, 1);
    kernel_in(c, 4, dtype, s.rows * s.a, KERNEL_UNIFORM, 1);
    kernel_out(c, 0, dtype, s.rows * s.a, kernel_rounded(dtype, 4));
    kernel_out(c, 1, HR_F32, s.a, (kernel_bound){ .tolerance = 4e-6, .size = 64 });
}

/* ---- modulation: rows of a, in groups of the option if it is not 0 */

static inline hr_modulate_attr kernel_modulation(kernel_sizes s, int32_t option)
{
    return (hr_modulate_attr){ .N = s.a,
                               .R = option && s.a % option == 0 ? option : s.a,
                               .form = option ? HR_MODULATE_OUTER : HR_MODULATE_DIAGONAL,
                               .scale = 0.25f };
}

static inline void make_modulate(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    const int64_t count = s.rows * s.a;
    c->attr.modulate = kernel_modulation(s, option);
    c->run = hr_modulate_run;
    c->kernel_offset = KERNEL_AT(modulate.fwd);
    for (int32_t i = 0; i < 2; i++) kernel_in(c, i, dtype, count, KERNEL_UNIFORM, 2);
    kernel_out(c, 0, dtype, count, kernel_product(dtype, option ? s.a : 1));
}

static inline void make_modulate_bwd(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    const int64_t count = s.rows * s.a;
    c->attr.modulate = kernel_modulation(s, option);
    c->run = hr_modulate_bwd_run;
    c->kernel_offset = KERNEL_AT(modulate.bwd);
    for (int32_t i = 0; i < 3; i++) kernel_in(c, i, dtype, count, KERNEL_UNIFORM, 2);
    for (int32_t i = 0; i < 2; i++)
        kernel_out(c, i, dtype, count, kernel_product(dtype, option ? 4 * s.a : 4));
}

/* ---- passes over elements: rows of a */

static inline void make_activation(kernel_case *c, kernel_sizes s, int32_t option)
{
    static const hr_act acts[] = { HR_ACT_NONE, HR_ACT_RELU, HR_ACT_GELU, HR_ACT_GELU_TANH };
    const hr_dtype dtype = c->call.dtype;
    c->attr.linear = (hr_linear_attr){ s.a, s.a, 64, acts[option] };
    c->run = hr_activation_run;
    c->kernel_offset = KERNEL_AT(activation.stretch);
    kernel_in(c, 0, dtype, s.rows * s.a, KERNEL_UNIFORM, 6);
    kernel_out(c, 0, dtype, s.rows * s.a, kernel_rounded(dtype, 0.1));
}

static inline void make_glu(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    const int64_t count = s.rows * s.a;
    (void)option;
    c->attr.glu = (hr_glu_attr){ s.a };
    c->run = hr_glu_run;
    c->kernel_offset = KERNEL_AT(glu.fwd);
    kernel_in(c, 0, dtype, count, KERNEL_UNIFORM, 6);
    kernel_in(c, 1, dtype, count, KERNEL_UNIFORM, 6);
    kernel_out(c, 0, dtype, count, kernel_rounded(dtype, 1e-3));
}

static inline void make_glu_bwd(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    const int64_t count = s.rows * s.a;
    (void)option;
    c->attr.glu = (hr_glu_attr){ s.a };
    c->run = hr_glu_bwd_run;
    c->kernel_offset = KERNEL_AT(glu.bwd);
    for (int32_t i = 0; i < 3; i++) kernel_in(c, i, dtype, count, KERNEL_UNIFORM, 6);
    for (int32_t i = 0; i < 2; i++) kernel_out(c, i, dtype, count, kernel_rounded(dtype, 1));
}

/* option 1: no residual */
static inline void make_dropout(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    c->attr.dropout = (hr_dropout_attr){ s.a, 7, 0.25f, 4, 1 };
    c->run = hr_dropout_run;
    c->kernel_offset = KERNEL_AT(dropout.row);
    kernel_in(c, 0, dtype, s.rows * s.a, KERNEL_UNIFORM, 1);
    if (!option) kernel_in(c, 1, dtype, s.rows * s.a, KERNEL_UNIFORM, 1);
    kernel_out(c, 0, dtype, s.rows * s.a, kernel_rounded(dtype, 0.01));
}

/* Two runs of two heads with b elements or more, of which the first a are rotated. option 1: the
 * gradient, in place, as in a model. */
static inline void make_rope(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    const int32_t rotary = (int32_t)hr_max(2, s.a / 2 * 2);
    const int64_t head = hr_max(rotary, s.b), width = 4 * head;
    c->attr.rope = (hr_rope_attr){ .width = width,
                                   .T = 70,
                                   .rotary = rotary,
                                   .heads = 2,
                                   .runs = 2,
                                   .offset = { 0, 2 * head },
                                   .head_stride = head,
                                   .theta = 10000,
                                   .inverse = option };
    c->run = hr_rope_run;
    c->kernel_offset = KERNEL_AT(rope.rotate);
    kernel_in(c, 1, HR_F32, 70 * (int64_t)rotary, KERNEL_UNIFORM, 0.7);
    if (option) {
        kernel_both(c, 0, dtype, s.rows * width, KERNEL_UNIFORM, 1, kernel_rounded(dtype, 1));
        c->call.in[0] = c->call.out[0];
    } else {
        kernel_in(c, 0, dtype, s.rows * width, KERNEL_UNIFORM, 1);
        kernel_out(c, 0, dtype, s.rows * width, kernel_rounded(dtype, 1));
    }
}

/* ---- the embedding: rows of a from a table of b tokens */

static inline void make_embed(kernel_case *c, kernel_sizes s, int32_t option)
{
    (void)option;
    c->attr.embed = (hr_embed_attr){
        .V = s.b, .D = s.a, .T = 70, .positions = 70, .layout = HR_ROWS, .dtype = HR_F32
    };
    c->run = hr_embed_run;
    c->kernel_offset = KERNEL_AT(embed.fwd);
    kernel_in(c, 0, HR_I32, s.rows, KERNEL_INDEX, (double)s.b);
    kernel_in(c, 1, HR_F32, s.b * s.a, KERNEL_UNIFORM, 1);
    kernel_in(c, 2, HR_F32, 70 * s.a, KERNEL_UNIFORM, 1);
    kernel_out(c, 0, c->call.dtype, s.rows * s.a, kernel_same_bits);
}

static inline void make_embed_bwd(kernel_case *c, kernel_sizes s, int32_t option)
{
    (void)option;
    c->attr.embed = (hr_embed_attr){
        .V = s.b, .D = s.a, .T = 70, .positions = 70, .layout = HR_ROWS, .dtype = HR_F32
    };
    c->run = hr_embed_bwd_run;
    c->kernel_offset = KERNEL_AT(embed.bwd);
    kernel_in(c, 0, HR_I32, s.rows, KERNEL_INDEX, (double)s.b);
    kernel_in(c, 1, c->call.dtype, s.rows * s.a, KERNEL_UNIFORM, 1);
    kernel_both(c, 0, HR_F32, s.b * s.a, KERNEL_UNIFORM, 1, kernel_same_bits);
    kernel_both(c, 1, HR_F32, 70 * s.a, KERNEL_UNIFORM, 1, kernel_same_bits);
}

/* ---- the loss: a logits in a row */

enum { LOSS_GRADIENT, LOSS_Z, LOSS_ALONE };

static inline void make_loss(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    const kernel_bound sum = { .tolerance = 1e-5, .size = 1 };
    c->attr.loss = (hr_loss_attr){ .V = s.a, .z = option == LOSS_Z ? 0.01 : 0 };
    c->run = hr_loss_run;
    c->phases = 2;
    c->kernel_offset = KERNEL_AT(loss.row);
    c->scratch_bytes = hr_loss_cpu.scratch_bytes;
    c->call.clear = 1;
    kernel_in(c, 0, dtype, s.rows * s.a, KERNEL_UNIFORM, 10);
    kernel_add(c, false, 1, HR_I32, s.rows, KERNEL_INDEX, (double)s.a, 3);
    kernel_in(c, 2, HR_F64, 1, KERNEL_CONSTANT, 0.37);
    kernel_out(c, 0, HR_F64, option == LOSS_Z ? 2 : 1, sum);
    if (option != LOSS_ALONE)
        kernel_out(c, 1, dtype, s.rows * s.a,
                   kernel_rounded(dtype, dtype == HR_BF16 ? 1e-5 : 0.03));
}

/* ---- distances of rows of a */

static inline void make_match(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    const kernel_bound sum = { .tolerance = 1e-5, .size = 1 };
    c->attr.match = (hr_match_attr){ s.a, 0.5, option, 1, 3 };
    c->run = hr_match_run;
    c->phases = 2;
    c->kernel_offset = KERNEL_AT(match.row);
    c->scratch_bytes = hr_match_cpu.scratch_bytes;
    c->call.clear = 1;
    kernel_in(c, 0, dtype, s.rows * s.a, KERNEL_UNIFORM, 1);
    kernel_in(c, 1, dtype, s.rows * s.a, KERNEL_UNIFORM, 1);
    kernel_add(c, false, 2, HR_I32, s.rows, KERNEL_INDEX, (double)s.a, 3);
    kernel_in(c, 3, HR_F64, 1, KERNEL_CONSTANT, 0.37);
    kernel_out(c, 0, HR_F64, 3, sum);
    /* The cosine of one element is constant: its gradient is what rounding leaves. */
    kernel_out(c, 1, dtype, s.rows * s.a, kernel_rounded(dtype, s.a == 1 ? 1 : 0.03));
}

/* ---- the recurrence: a channels. Every channel keeps its sign, so that rounding cannot change
 * it. */

static inline void make_recurrence(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    const int64_t count = s.rows * s.a;
    (void)option;
    c->attr.recurrence = (hr_recurrence_attr){ s.a, 70 };
    c->run = hr_recurrence_run;
    c->kernel_offset = KERNEL_AT(recurrence.fwd);
    kernel_add(c, false, 0, dtype, count, KERNEL_COLUMNS, 1, s.a);
    kernel_in(c, 1, dtype, count, KERNEL_UNIFORM, 1);
    kernel_in(c, 2, HR_F32, s.a, KERNEL_UNIFORM, 3);
    kernel_out(c, 0, dtype, count, kernel_rounded(dtype, 2));
}

static inline void make_recurrence_bwd(kernel_case *c, kernel_sizes s, int32_t option)
{
    const hr_dtype dtype = c->call.dtype;
    const int64_t count = s.rows * s.a;
    (void)option;
    c->attr.recurrence = (hr_recurrence_attr){ s.a, 70 };
    c->run = hr_recurrence_bwd_run;
    c->phases = 2;
    c->kernel_offset = KERNEL_AT(recurrence.bwd);
    c->scratch_bytes = hr_recurrence_bwd_cpu.scratch_bytes;
    c->call.clear = 2;
    kernel_in(c, 0, dtype, count, KERNEL_UNIFORM, 1);
    kernel_add(c, false, 1, dtype, count, KERNEL_COLUMNS, 1, s.a);
    kernel_in(c, 2, HR_F32, s.a, KERNEL_UNIFORM, 3);
    kernel_out(c, 0, dtype, count, kernel_rounded(dtype, 4));
    kernel_out(c, 1, HR_F32, s.a, (kernel_bound){ .tolerance = 4e-6, .size = 64 });
}

static const kernel_entry kernel_table[] = {
    { "linear", make_linear, LINEAR_PLAIN, { 192, 512, 512 }, false },
    { "linear, few rows", make_linear, LINEAR_PLAIN, { 1, 512, 512 }, false },
    { "linear, ReLU + residual", make_linear, LINEAR_RELU, { 192, 256, 512 }, false },
    { "linear, GELU", make_linear, LINEAR_GELU, { 192, 256, 512 }, false },
    { "linear, tanh GELU", make_linear, LINEAR_GELU_TANH, { 192, 256, 512 }, false },
    { "linear_dx", make_linear_dx, LINEAR_PLAIN, { 192, 512, 512 }, false },
    { "linear_dx, ReLU", make_linear_dx, LINEAR_RELU, { 192, 512, 256 }, false },
    { "linear_dx, GELU", make_linear_dx, LINEAR_GELU, { 192, 512, 256 }, false },
    { "linear_dx, tanh GELU", make_linear_dx, LINEAR_GELU_TANH, { 192, 512, 256 }, false },
    { "linear_dw", make_linear_dw, DW_ALONE, { 192, 512, 512 }, false },
    { "linear_dw, db", make_linear_dw, DW_DB, { 192, 512, 512 }, false },
    { "linear_db", make_linear_db, 0, { 192, 0, 512 }, false },
    { "attention", make_attention, ATTENTION_DENSE, { 256, 64, 0 }, false },
    { "attention, sliding", make_attention, ATTENTION_SLIDING, { 384, 64, 0 }, false },
    { "attention, mixed", make_attention, ATTENTION_MIXED, { 512, 64, 0 }, false },
    { "attention, dropout", make_attention, ATTENTION_DROPOUT, { 256, 64, 0 }, false },
    { "attention_bwd", make_attention_bwd, ATTENTION_DENSE, { 256, 64, 0 }, false },
    { "attention_bwd, sliding", make_attention_bwd, ATTENTION_SLIDING, { 384, 64, 0 }, false },
    { "attention_bwd, mixed", make_attention_bwd, ATTENTION_MIXED, { 512, 64, 0 }, false },
    { "attention_bwd, dropout", make_attention_bwd, ATTENTION_DROPOUT, { 256, 64, 0 }, false },
    { "attention_cached, 1 row", make_attention_cached, 0, { 1, 64, 512 }, false },
    { "attention_cached, prompt", make_attention_cached, 0, { 64, 64, 256 }, false },
    { "attention_cached, sliding", make_attention_cached, 1, { 16, 64, 512 }, false },
    { "norm, layer", make_norm, NORM_LAYER, { 8, 512, 0 }, false },
    { "norm, RMS", make_norm, NORM_RMS, { 8, 512, 0 }, false },
    { "norm, heads", make_norm, NORM_HEADS, { 8, 128, 0 }, false },
    { "norm_bwd, layer", make_norm_bwd, NORM_LAYER, { 64, 512, 0 }, false },
    { "norm_bwd, RMS", make_norm_bwd, NORM_RMS, { 64, 512, 0 }, false },
    { "norm_bwd, heads", make_norm_bwd, NORM_HEADS, { 64, 128, 0 }, false },
    { "length", make_length, 0, { 16, 128, 64 }, false },
    { "magnitude", make_magnitude, 0, { 8, 512, 0 }, false },
    { "magnitude_bwd", make_magnitude_bwd, 0, { 64, 512, 0 }, false },
    { "modulate", make_modulate, 0, { 8, 512, 0 }, false },
    { "modulate, outer", make_modulate, 16, { 8, 512, 0 }, false },
    { "modulate_bwd", make_modulate_bwd, 0, { 8, 512, 0 }, false },
    { "modulate_bwd, outer", make_modulate_bwd, 16, { 8, 512, 0 }, false },
    { "activation, ReLU", make_activation, LINEAR_RELU, { 8, 512, 0 }, false },
    { "activation, GELU", make_activation, LINEAR_GELU, { 8, 512, 0 }, false },
    { "activation, tanh GELU", make_activation, LINEAR_GELU_TANH, { 8, 512, 0 }, false },
    { "glu", make_glu, 0, { 8, 512, 0 }, false },
    { "glu_bwd", make_glu_bwd, 0, { 8, 512, 0 }, false },
    { "dropout", make_dropout, 0, { 8, 512, 0 }, false },
    { "dropout, no residual", make_dropout, 1, { 8, 512, 0 }, false },
    { "rope", make_rope, 0, { 8, 128, 128 }, false },
    { "rope in place", make_rope, 1, { 8, 128, 128 }, false },
    { "rope in place, a quarter", make_rope, 1, { 8, 16, 64 }, false },
    { "embed", make_embed, 0, { 8, 512, 8 }, false },
    { "embed_bwd", make_embed_bwd, 0, { 8, 512, 8 }, false },
    { "loss", make_loss, LOSS_GRADIENT, { 8, 8192, 0 }, false },
    { "loss, z", make_loss, LOSS_Z, { 8, 8192, 0 }, false },
    { "loss, no gradient", make_loss, LOSS_ALONE, { 8, 8192, 0 }, false },
    { "match, MSE", make_match, HR_MATCH_MSE, { 8, 512, 0 }, false },
    { "match, cosine", make_match, HR_MATCH_COSINE, { 8, 512, 0 }, false },
    { "recurrence", make_recurrence, 0, { 140, 256, 0 }, false },
    { "recurrence_bwd", make_recurrence_bwd, 0, { 140, 256, 0 }, false },
    { "sumsq, 1 run", make_sumsq, 0, { 4, 1024, 0 }, true },
    { "sumsq, 2 runs", make_sumsq, 0, { 8, 1024, 0 }, true },
    { "sumsq, 16 runs", make_sumsq, 0, { 64, 1024, 0 }, true },
    { "adamw", make_adamw, 0, { 2, 1024, 0 }, true },
    { "adamw, bf16 copy", make_adamw, UPDATE_COPY, { 2, 1024, 0 }, true },
    { "adamw, int8", make_adamw, UPDATE_CODES, { 4, 1024, 0 }, true },
    { "adamw, bf16 moments", make_adamw, UPDATE_HALVES, { 4, 1024, 0 }, true },
    { "sgd", make_sgd, 0, { 2, 1024, 0 }, true },
    { "sgd, bf16 copy", make_sgd, UPDATE_COPY, { 2, 1024, 0 }, true },
    { "sgd, int8", make_sgd, UPDATE_CODES, { 4, 1024, 0 }, true },
    { "sgd, bf16 moments", make_sgd, UPDATE_HALVES, { 4, 1024, 0 }, true },
    { "lion", make_lion, 0, { 2, 1024, 0 }, true },
    { "lion, bf16 copy", make_lion, UPDATE_COPY, { 2, 1024, 0 }, true },
    { "lion, int8, bf16 copy", make_lion, UPDATE_CODES | UPDATE_COPY, { 4, 1024, 0 }, true },
    { "lion, int8", make_lion, UPDATE_CODES, { 4, 1024, 0 }, true },
    { "lion, bf16 moments", make_lion, UPDATE_HALVES, { 4, 1024, 0 }, true },
    { "adafactor, rows", make_adafactor, HR_ROWS, { 64, 256, 0 }, true },
    { "adafactor, panels", make_adafactor, HR_PANEL, { 64, 256, 0 }, true },
    { "adafactor, pairs, bf16 copy",
      make_adafactor,
      HR_PANEL_PAIR | ADAFACTOR_COPY,
      { 64, 256, 0 },
      true },
    { "adafactor, moment", make_adafactor, HR_PANEL | ADAFACTOR_MOMENT, { 64, 256, 0 }, true },
    { "dequantize, f16", make_dequantize, HR_F16, { 256, 64, 64 }, false },
    { "dequantize, e4m3", make_dequantize, HR_F8_E4M3, { 256, 64, 64 }, false },
    { "unpack, f32", make_unpack, HR_STORED_F32, { 256, 256, 256 }, false },
    { "unpack, f16", make_unpack, HR_STORED_F16, { 256, 256, 256 }, false },
    { "unpack, bf16", make_unpack, HR_STORED_BF16, { 256, 256, 256 }, false },
    { "linear_dw, strip", make_linear_dw, DW_STRIP, { 192, 512, 512 }, false },
};

enum { KERNEL_ENTRIES = sizeof kernel_table / sizeof *kernel_table };

/* Opens one entry with one dtype and size, including the results of the reference, in memory for
 * comparison or for timing. Close it with kernel_close. */
static inline void kernel_open(kernel_case *c, const kernel_entry *entry, kernel_sizes sizes,
                               hr_dtype dtype, bool timed, uint64_t seed)
{
    *c = (kernel_case){ .call = { .rows = sizes.rows, .clock = 5, .seed = 7, .dtype = dtype },
                        .phases = 1,
                        .timed = timed,
                        .drawn = seed };
    entry->make(c, sizes, entry->option);
    kernel_expect(c);
}

#endif
