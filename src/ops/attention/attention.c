/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention.c - builder functions, derivative and properties of attention. */
#include "ops/attention/attention.h"

#include <stddef.h>

#include "base/checked.h"
#include "ops/attention/attention_build.h"
#include "ops/dropout/dropout_build.h"
#include "ops/gates/gates.h"
#include "ops/list.h"

/* hr_build_attention with a KV cache: appends the new keys and values to the layer's cache
 * first. */
static int32_t build_over_cache(hr_builder *builder, const char *name, int32_t q, int32_t k,
                                int32_t v, const hr_attention_attr *attr)
{
    const int32_t *tensors = builder->caches[builder->layer];
    const hr_kv_cache cache = { tensors[0], tensors[1], attr->G, attr->head_width,
                                builder->program->tensors[tensors[0]].dims[0] / attr->G };
    hr_build_cache_append(builder, k == HR_NONE ? q : k, v, builder->position, &cache,
                          (hr_kv_cache_attr){ .k_offset = attr->k_offset,
                                              .v_offset = attr->v_offset,
                                              .k_head_stride = attr->k_head_stride,
                                              .v_head_stride = attr->v_head_stride });
    return hr_build_attention_cached(builder, name, q, builder->position, &cache, attr);
}

/* Over the keys and values of the same call, or caches of them with a row for each token. */
static int32_t build_over_rows(hr_builder *builder, const char *name, int32_t q, int32_t k,
                               int32_t v, int32_t blocks, hr_attention_attr attr, int32_t *lse_of)
{
    const hr_tensor *tensors = builder->program->tensors;
    attr.T = builder->T;
    attr.in_parts = builder->caches != NULL;
    attr.q_width = tensors[q].dims[1];
    attr.k_width = k == HR_NONE ? 0 : tensors[k].dims[1];
    attr.v_width = v == HR_NONE ? 0 : tensors[v].dims[1];
    if (!builder->training) attr.dropout = 0;
    if (attr.dropout > 0) attr.site = builder->site++;
    const int64_t width = (int64_t)attr.H * attr.head_width;
    const int32_t o = hr_build_rows(builder, name, builder->dtype, width);
    const bool keeps = builder->training || lse_of;
    const int32_t lse = keeps ? hr_build_rows(builder, "lse", HR_F32, attr.H) : HR_NONE;
    if (lse_of) *lse_of = lse;
    hr_build_mark(builder, o, HR_INTERMEDIATE_ATTENTION);
    hr_build_mark(builder, lse, HR_INTERMEDIATE_ATTENTION);
    hr_step *step = hr_build_step(builder, HR_OP_attention, &attr, sizeof attr);
    step->in[0] = q;
    step->in[1] = k;
    step->in[2] = v;
    step->in[3] = builder->separate ? builder->begins : HR_NONE;
    step->in[4] = blocks;
    step->in[5] = builder->caches ? builder->position : HR_NONE;
    step->out[0] = o;
    step->out[1] = lse;
    return o;
}

int32_t hr_build_attention(hr_builder *builder, const char *name, int32_t q, int32_t k, int32_t v,
                           hr_attention_attr attr)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    if (builder->caches) return build_over_cache(builder, name, q, k, v, &attr);
    return build_over_rows(builder, name, q, k, v, HR_NONE, attr, NULL);
}

int32_t hr_build_attention_branch(hr_builder *builder, const char *name, int32_t q, int32_t k,
                                  int32_t v, int32_t blocks, hr_attention_attr attr, int32_t *lse)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    return build_over_rows(builder, name, q, k, v, blocks, attr, lse);
}

int32_t hr_build_attention_cached(hr_builder *builder, const char *name, int32_t q,
                                  int32_t position, const hr_kv_cache *cache,
                                  const hr_attention_attr *attr)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const hr_attention_cached_attr cached = { .H = attr->H,
                                              .G = attr->G,
                                              .head_width = attr->head_width,
                                              .capacity = cache->capacity,
                                              .q_width = builder->program->tensors[q].dims[1],
                                              .q_offset = attr->q_offset,
                                              .q_head_stride = attr->q_head_stride,
                                              .mask = attr->mask,
                                              .scale = attr->scale };
    const int64_t width = (int64_t)attr->H * attr->head_width;
    const int32_t o = hr_build_rows(builder, name, builder->dtype, width);
    hr_build_mark(builder, o, HR_INTERMEDIATE_ATTENTION);
    hr_step *step = hr_build_step(builder, HR_OP_attention_cached, &cached, sizeof cached);
    step->in[0] = q;
    step->in[1] = cache->keys;
    step->in[2] = cache->values;
    step->in[3] = position;
    step->out[0] = o;
    return o;
}

/* Whether gates of the layer read what step `index` computes. */
static bool has_gates(const hr_program *program, int32_t index)
{
    const hr_step *step = &program->steps[index];
    for (int32_t s = index + 1; s < program->step_count; s++) {
        const hr_step *next = &program->steps[s];
        if (next->layer != step->layer) return false;
        for (int32_t i = 0; i < HR_IN_MAX && next->op == HR_OP_gates; i++)
            if (next->in[i] == step->out[0]) return true;
    }
    return false;
}

/* The branch that step `index` is of gates whose backward step is made: the step, and the number of
 * the branch. Null: its output goes elsewhere. */
static const hr_step *gates_of(const hr_program *program, int32_t index, int32_t *branch)
{
    const int32_t o = program->steps[index].out[0];
    if (!has_gates(program, index)) return NULL;
    for (int32_t s = program->step_count - 1; s >= 0; s--)
        for (int32_t b = 0; b < HR_GATES_MOST && program->steps[s].op == HR_OP_gates_bwd; b++) {
            *branch = b;
            if (program->steps[s].in[HR_GATES_BWD_X + b] == o) return &program->steps[s];
        }
    return NULL;
}

static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    const hr_step step = derive->builder->program->steps[index];
    const int32_t d_o = derive->gradient[step.out[0]];
    if (d_o == HR_NONE) return HR_OK;
    int32_t d_in[3] = { HR_NONE, HR_NONE, HR_NONE }, d_q = HR_NONE;
    bool adds[3] = { false, false, false };
    (void)err;
    for (int32_t i = 0; i < 3; i++) {
        int32_t addend = HR_NONE;
        const int32_t in = step.in[i];
        adds[i] = i > 0 && in != HR_NONE && derive->gradient[in] != HR_NONE; /* of other branches */
        if (adds[i])
            d_in[i] = hr_build_rows(derive->builder, "gradient of a branch", derive->builder->dtype,
                                    derive->builder->program->tensors[in].dims[1]);
        else if (in != HR_NONE) d_in[i] = hr_derive_emit(derive, in, i > 0 ? &addend : &d_q);
    }
    hr_step *made = hr_build_step(derive->builder, HR_OP_attention_bwd, step.attr, HR_ATTR_BYTES);
    for (int32_t i = 0; i < 3; i++) {
        made->in[i] = step.in[i];
        made->out[i] = d_in[i];
    }
    int32_t branch;
    const hr_step *gates = gates_of(derive->builder->program, index, &branch);
    ((hr_attention_attr *)made->attr)->has_dots = gates != NULL;
    made->in[3] = gates ? gates->out[HR_GATES_DOTS + branch] : step.out[0];
    made->in[4] = d_o;
    made->in[5] = gates ? gates->out[HR_GATES_SHIFTED + branch] : step.out[1];
    made->in[6] = step.in[3] != HR_NONE ? step.in[3] : step.in[4];
    made->in[7] = d_q;
    for (int32_t i = 0; i < 3; i++)
        if (adds[i]) hr_derive_add(derive, step.in[i], d_in[i]);
    return HR_OK;
}

int64_t hr_attention_pairs(const hr_attention_mask *mask, int64_t length)
{
    const bool columns = mask->kind == HR_PATTERN_GLOBAL || mask->kind == HR_PATTERN_MIXED;
    const int64_t window = mask->kind == HR_PATTERN_GLOBAL ? 0 : mask->window;
    if (mask->kind == HR_PATTERN_DENSE) return length * (length + 1) / 2;
    if (mask->kind == HR_PATTERN_SLIDING) {
        const int64_t seen = hr_min(window, length);
        return seen * (seen + 1) / 2 + (length - seen) * seen;
    }
    int64_t pairs = 0;
    if (mask->kind == HR_PATTERN_SELECTED) {
        const int64_t all = hr_min(length, window * mask->block);
        const int64_t own = mask->block * (mask->block + 1) / 2; /* of the blocks of queries */
        return all * (all + 1) / 2 + (length - all) * (window - 1) * mask->block +
               (length - all) / mask->block * own;
    }
    if (mask->kind == HR_PATTERN_COMPRESSED) {
        const int64_t keys = hr_attention_keys_seen(mask, length - 1);
        return keys * (length - mask->window + 1) - keys * (keys - 1) / 2 * mask->stride;
    }
    for (int64_t first = 0; first < length; first += mask->block) {
        const int64_t rows = hr_min(mask->block, length - first), block = first / mask->block;
        const int64_t near = hr_max(block - window, 0); /* the first block of the window */
        int64_t before = block - near;
        if (columns) before += (near + mask->stride - 1) / mask->stride;
        pairs += rows * before * mask->block + rows * (rows + 1) / 2;
    }
    return pairs;
}

/* Keys before a part of a sequence depend on its place: the mean of all parts. */
int64_t hr_attention_scores(const hr_attention_attr *attr, int64_t rows)
{
    if (attr->in_parts)
        return (int64_t)((double)hr_attention_pairs(&attr->mask, attr->T) * (double)attr->H /
                         (double)attr->T * (double)rows);
    const int64_t whole = rows / attr->T, rest = rows % attr->T;
    const int64_t pairs = whole * hr_attention_pairs(&attr->mask, attr->T) +
                          (rest ? hr_attention_pairs(&attr->mask, rest) : 0);
    return pairs * attr->H;
}

int64_t hr_attention_cached_scores(const hr_attention_cached_attr *attr, int64_t rows)
{
    const bool slides = attr->mask.kind == HR_PATTERN_SLIDING;
    const int64_t seen = slides ? hr_min(attr->mask.window, attr->capacity) : attr->capacity;
    return rows * seen * attr->H;
}

static int64_t flops(const void *attr, int64_t rows)
{
    const hr_attention_attr *shape = attr;
    return 4 * hr_attention_scores(shape, rows) * shape->head_width;
}

static int64_t flops_backward(const void *attr, int64_t rows)
{
    const hr_attention_attr *shape = attr;
    return 10 * hr_attention_scores(shape, rows) * shape->head_width;
}

static int64_t flops_cached(const void *attr, int64_t rows)
{
    const hr_attention_cached_attr *shape = attr;
    return 4 * hr_attention_cached_scores(shape, rows) * shape->head_width;
}

/* Fused, q has the keys of all tokens too. */
static bool has_parts(const void *attr)
{
    return ((const hr_attention_attr *)attr)->k_width > 0;
}

static int64_t into_parts(hr_step *step)
{
    ((hr_attention_attr *)step->attr)->in_parts = true;
    return 0;
}

static int64_t into_parts_backward(hr_step *step)
{
    hr_attention_attr *attr = (hr_attention_attr *)step->attr;
    attr->in_parts = true;
    return attr->G * hr_attention_sum_count(attr, attr->T);
}

const hr_op hr_attention_op = { .name = "attention",
                                .in = "rSSRRW",
                                .out = "rR",
                                .derivative = derivative,
                                .has_parts = has_parts,
                                .into_parts = into_parts,
                                .flops = flops };

const hr_op hr_attention_bwd_op = { .name = "attention_bwd",
                                    .in = "rSSrrrRR",
                                    .out = "rSSA",
                                    .reuse = { 1 << 7 },
                                    .has_parts = has_parts,
                                    .into_parts = into_parts_backward,
                                    .flops = flops_backward };

const hr_op hr_attention_cached_op = { .name = "attention_cached",
                                       .in = "rwww",
                                       .out = "r",
                                       .flops = flops_cached };
