/* SPDX-License-Identifier: Apache-2.0 */
/* prove/masked.c - dense attention with an explicit mask.
 *
 *     s[i,j] = scale q[i].k[j], -Inf where masked,  p = softmax(s),  o[i] = sum_j p[i,j] v[j]
 *     ds[i,j] = p[i,j] (do[i].v[j] - do[i].o[i])
 *     dq[i] = scale sum_j ds[i,j] k[j]    dk[j] = scale sum_i ds[i,j] q[i]
 *     dv[j] = sum_i p[i,j] do[i]
 *
 * No memory beside the operands: a score is computed again wherever it is needed. */
#include "prove/masked.h"

#include <math.h>

#include "base/checked.h"
#include "base/element.h"
#include "model/family.h"
#include "model/layer_types.h"
#include "ops/attention/attention.h"
#include "ops/list.h"

/* A head of a tensor: element c of row i is at i * width + first + c. */
typedef struct {
    void *tensor;
    int64_t width, first;
} head;

typedef struct {
    const hr_masked_device *masked;
    const hr_call *call;
    const hr_attention_attr *attr;
    int64_t layer;
    bool backward;
} work;

bool hr_masked_sees(const hr_config *config, int64_t layer, int64_t query, int64_t key)
{
    const int64_t window = config->model.attention.window, block = config->model.attention.block;
    const int64_t tokens = config->model.attention.sliding_window;
    const int64_t query_block = query / block, key_block = key / block;
    if (key > query) return false;
    if (tokens > 0 && hr_family_kind(config, layer) == HR_LAYER_SLIDING)
        return key > query - tokens;
    const bool is_near = key_block >= query_block - window;
    const bool is_global = key_block == query_block ||
                           key_block % hr_config_attention_stride(config) == 0;
    switch (config->model.attention.pattern) {
    case HR_ATTENTION_LOCAL: return is_near;
    case HR_ATTENTION_GLOBAL: return is_global;
    case HR_ATTENTION_MIXED: return is_near || is_global;
    default: return true;
    }
}

double hr_masked_products(const hr_config *config)
{
    const double T = (double)config->train.seq_len;
    const double width = (double)(config->model.n_heads * hr_config_head_dim(config));
    const double pairs = T * (T + 1) / 2 * (double)config->train.batch;
    enum { FORWARD = 2, BACKWARD = 7 }; /* products of a head's width for each pair */
    return pairs * width * (double)config->model.n_layers * (FORWARD + BACKWARD);
}

static double get(const work *job, head h, int64_t row, int64_t c)
{
    return (double)hr_element_get(h.tensor, row * h.width + h.first + c, job->call->dtype);
}

static void set(const work *job, head h, int64_t row, const double *values)
{
    for (int64_t c = 0; c < job->attr->head_width; c++)
        hr_element_set(h.tensor, row * h.width + h.first + c, job->call->dtype, (float)values[c]);
}

static double dot(const work *job, head a, int64_t i, head b, int64_t j)
{
    double sum = 0;
    for (int64_t c = 0; c < job->attr->head_width; c++)
        sum += get(job, a, i, c) * get(job, b, j, c);
    return sum;
}

static void add(const work *job, double *sums, double factor, head h, int64_t row)
{
    for (int64_t c = 0; c < job->attr->head_width; c++) sums[c] += factor * get(job, h, row, c);
}

/* Whether query i of the sequence that begins at row `start` has selected the block of a key. */
static bool selects(const work *job, int64_t start, int64_t group, int64_t i, int64_t j)
{
    const hr_attention_attr *attr = job->attr;
    const int64_t count = attr->mask.window, row = (start + i) * attr->G + group;
    const uint16_t *blocks = (const uint16_t *)job->call->in[job->backward ? 6 : 4] + row * count;
    for (int64_t n = 0; n < count; n++)
        if (blocks[n] == j / attr->mask.block) return true;
    return false;
}

/* Whether query i sees key j. Of the branches of native sparse attention the sizes are those of the
 * operation: the recipe has one mask for each. */
static bool sees(const work *job, int64_t start, int64_t group, int64_t i, int64_t j)
{
    const hr_attention_mask *mask = &job->attr->mask;
    if (job->masked->config->model.attention.kind != HR_ATTENTION_NSA)
        return hr_masked_sees(job->masked->config, job->layer, i, j);
    if (mask->kind == HR_PATTERN_COMPRESSED)
        return (int64_t)mask->stride * j + mask->window - 1 <= i;
    if (j > i) return false;
    if (mask->kind == HR_PATTERN_SLIDING) return i - j < mask->window;
    return job->masked->selects_all || selects(job, start, group, i, j);
}

/* The keys of a sequence of so many tokens. */
static int64_t keys_of(const work *job, int64_t tokens)
{
    const hr_attention_mask *mask = &job->attr->mask;
    if (mask->kind != HR_PATTERN_COMPRESSED) return tokens;
    return tokens < mask->window ? 0 : (tokens - mask->window) / mask->stride + 1;
}

/* The score of a query and a key of the sequence that begins at row `start`. */
static double score(const work *job, int64_t start, int64_t group, head q, int64_t i, head k,
                    int64_t j)
{
    if (!sees(job, start, group, i, j)) return (double)-INFINITY;
    return (double)job->attr->scale * dot(job, q, start + i, k, start + j);
}

/* ---- operands */

static head query_of(const work *job, void *tensor, int64_t h)
{
    return (head){ tensor, job->attr->q_width, job->attr->q_offset + h * job->attr->q_head_stride };
}

/* A head of compressed keys or values, of which a sequence has fewer rows than tokens. */
static head compressed_of(const work *job, void *tensor, int64_t width, int64_t start,
                          int64_t group)
{
    const int64_t K = job->attr->head_width, row = job->attr->G * K;
    return (head){ tensor, row, group * K + start * (width - row) };
}

/* Keys and values of a fused tensor lie beside its queries. `tensors` are three operands. */
static head key_of(const work *job, void *const *tensors, int64_t start, int64_t group)
{
    const hr_attention_attr *attr = job->attr;
    if (attr->mask.kind == HR_PATTERN_COMPRESSED)
        return compressed_of(job, tensors[1], attr->k_width, start, group);
    return (head){ tensors[1] ? tensors[1] : tensors[0], tensors[1] ? attr->k_width : attr->q_width,
                   attr->k_offset + group * attr->k_head_stride };
}

static head value_of(const work *job, void *const *tensors, int64_t start, int64_t group)
{
    const hr_attention_attr *attr = job->attr;
    if (attr->mask.kind == HR_PATTERN_COMPRESSED)
        return compressed_of(job, tensors[2], attr->v_width, start, group);
    return (head){ tensors[2] ? tensors[2] : tensors[0], tensors[2] ? attr->v_width : attr->q_width,
                   attr->v_offset + group * attr->v_head_stride };
}

static head output_of(const work *job, void *tensor, int64_t h)
{
    const int64_t width = job->attr->head_width;
    return (head){ tensor, job->attr->H * width, h * width };
}

/* ---- forward */

/* The sum of exponentials grows with the largest score so far: one pass over the keys. */
static void forward_row(const work *job, int64_t start, int64_t i, int64_t h)
{
    double sums[HR_ATTENTION_HEAD_MAX] = { 0 }, most = (double)-INFINITY, total = 0;
    const int64_t group = h / (job->attr->H / job->attr->G), H = job->attr->H;
    void *const *in = job->call->in;
    const head q = query_of(job, in[0], h), k = key_of(job, in, start, group),
               v = value_of(job, in, start, group);
    const int64_t keys = keys_of(job, i + 1);
    for (int64_t j = 0; j < keys; j++) {
        const double s = score(job, start, group, q, i, k, j), above = fmax(most, s);
        const double fade = most == above ? 1 : exp(most - above), p = exp(s - above);
        if (isinf(above)) continue;
        total = total * fade + p;
        for (int64_t c = 0; c < job->attr->head_width && fade < 1; c++) sums[c] *= fade;
        if (p > 0) add(job, sums, p, v, start + j);
        most = above;
    }
    for (int64_t c = 0; c < job->attr->head_width; c++) sums[c] /= keys ? total : 1;
    set(job, output_of(job, job->call->out[0], h), start + i, sums);
    float *lse = job->call->out[1];
    if (lse) lse[(start + i) * H + h] = keys ? (float)(most + log(total)) : 0;
}

/* ---- backward */

/* What the scores of a head's backward pass are made of. */
typedef struct {
    head q, k, v, o, grad_o;
    const float *lse, *dots;
    int64_t start, h, group;
} slopes;

static slopes slopes_of(const work *job, int64_t start, int64_t h)
{
    void *const *in = job->call->in;
    const int64_t group = h / (job->attr->H / job->attr->G);
    return (slopes){ .q = query_of(job, in[0], h),
                     .k = key_of(job, in, start, group),
                     .v = value_of(job, in, start, group),
                     .o = output_of(job, in[3], h),
                     .dots = job->attr->has_dots ? in[3] : NULL,
                     .grad_o = output_of(job, in[4], h),
                     .lse = in[5],
                     .start = start,
                     .h = h,
                     .group = group };
}

/* Returns p[i,j], and sets ds[i,j]. */
static double slope(const work *job, const slopes *s, int64_t i, int64_t j, double delta,
                    double *ds)
{
    const double lse = (double)s->lse[(s->start + i) * job->attr->H + s->h];
    const double p = exp(score(job, s->start, s->group, s->q, i, s->k, j) - lse);
    *ds = p > 0 ? p * (dot(job, s->grad_o, s->start + i, s->v, s->start + j) - delta) : 0;
    return p;
}

static double delta_of(const work *job, const slopes *s, int64_t i)
{
    if (s->dots) return (double)s->dots[(s->start + i) * job->attr->H + s->h];
    return dot(job, s->grad_o, s->start + i, s->o, s->start + i);
}

static void backward_query(const work *job, int64_t start, int64_t i, int64_t h)
{
    double sums[HR_ATTENTION_HEAD_MAX] = { 0 }, ds;
    const slopes s = slopes_of(job, start, h);
    const double delta = delta_of(job, &s, i);
    const int64_t keys = keys_of(job, i + 1);
    const head addend = query_of(job, job->call->in[7], h);
    if (addend.tensor) add(job, sums, 1, addend, start + i);
    for (int64_t j = 0; j < keys; j++) {
        (void)slope(job, &s, i, j, delta, &ds);
        add(job, sums, (double)job->attr->scale * ds, s.k, start + j);
    }
    set(job, query_of(job, job->call->out[0], h), start + i, sums);
}

static void backward_key(const work *job, int64_t start, int64_t j, int64_t group, int64_t T)
{
    double dk[HR_ATTENTION_HEAD_MAX] = { 0 }, dv[HR_ATTENTION_HEAD_MAX] = { 0 }, ds;
    const int64_t heads = job->attr->H / job->attr->G;
    for (int64_t h = group * heads; h < (group + 1) * heads; h++) {
        const slopes s = slopes_of(job, start, h);
        for (int64_t i = j; i < T; i++) { /* no key is seen before its own number */
            const double p = slope(job, &s, i, j, delta_of(job, &s, i), &ds);
            if (!(p > 0)) continue;
            add(job, dk, (double)job->attr->scale * ds, s.q, start + i);
            add(job, dv, p, s.grad_o, start + i);
        }
    }
    set(job, key_of(job, job->call->out, start, group), start + j, dk);
    set(job, value_of(job, job->call->out, start, group), start + j, dv);
}

/* ---- device */

/* A thread takes rows in turn, so that the long ones at the end of a sequence are spread. */
static void compute(void *context, int32_t thread, int32_t threads)
{
    const work *job = context;
    const int64_t T = job->attr->T, rows = job->call->rows;
    for (int64_t row = thread; row < rows; row += threads) {
        const int64_t start = row / T * T, length = hr_min(T, rows - start);
        for (int64_t h = 0; h < job->attr->H; h++)
            if (job->backward) backward_query(job, start, row - start, h);
            else forward_row(job, start, row - start, h);
        const bool is_key = row - start < keys_of(job, length);
        for (int64_t g = 0; g < job->attr->G && job->backward && is_key; g++)
            backward_key(job, start, row - start, g, length);
    }
}

static void launch(const hr_device *device, const hr_program *program, int32_t step,
                   const hr_call *call)
{
    const hr_masked_device *masked = (const hr_masked_device *)device;
    const hr_step *described = &program->steps[step];
    const bool forward = described->op == HR_OP_attention;
    if (!forward && described->op != HR_OP_attention_bwd) {
        masked->inner->launch(masked->inner, program, step, call);
        return;
    }
    work job = { .masked = masked,
                 .call = call,
                 .attr = call->attr,
                 .layer = described->layer,
                 .backward = !forward };
    hr_pool_run(masked->pool, compute, &job);
}

const hr_device *hr_masked_device_open(hr_masked_device *masked, const hr_config *config,
                                       bool selects_all, const hr_device *inner, hr_pool *pool)
{
    *masked = (hr_masked_device){ { inner->backend, launch }, inner, pool, config, selects_all };
    return &masked->device;
}
