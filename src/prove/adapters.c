/* SPDX-License-Identifier: Apache-2.0 */
/* prove/adapters.c - low-rank adapters against weights that contain them.
 *
 * The model with adapters and the model whose matrices are M = W + s A B are trained for a step on
 * the same tokens. The losses agree, and the chain rule has the gradients of the adapters, here in
 * double:
 *
 *     dA = s dM B^T    dB = s A^T dM
 *
 * New adapters have a part of zeros, which gets random values first. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/random.h"
#include "checkpoint/names.h"
#include "model/adapter.h"
#include "model/family.h"
#include "prove/matrix.h"

/* Two programs in fp32 that add up products in another order. */
#define BOUND 1e-4

/* A time that does not depend on the size of the model: the chain rule is one thread. */
static void shrink(hr_config *config)
{
    enum { LAYERS = 2, BATCH = 2, TOKENS = 128, VOCABULARY = 4096 };
    config->model.n_layers = hr_min(config->model.n_layers, LAYERS);
    config->model.vocab_size = hr_min(config->model.vocab_size, VOCABULARY);
    config->train.batch = hr_min(config->train.batch, BATCH);
    config->train.seq_len = hr_min(config->train.seq_len, TOKENS);
}

hr_status hr_adapters_prepare(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    hr_config *config = &prover->variant;
    *config = prover->base;
    *applies = config->train.adapter.kind == HR_ADAPTER_LORA;
    if (!*applies) {
        (void)hr_proof_declines(proof, "the recipe trains no low-rank adapters");
        return HR_OK;
    }
    if (!*config->model.from && !*config->train.adapter.layers) shrink(config);
    hr_prover_set_dtype(config, HR_FORMAT_FP32);
    config->model.weights = HR_WEIGHTS_COMPUTE;
    config->model.dropout = config->train.adapter.dropout = 0;
    config->train.adapter.dora = false;
    *config->train.freeze = *config->train.param_groups = 0;
    config->memory.micro_batch = config->memory.loss_chunk = 0;
    *config->memory.strategy = 0;
    config->memory.moments = config->memory.weights = HR_PLACE_HOST;
    proof->bound = BOUND;
    const hr_status status = hr_prover_draw_tokens(prover, config, err);
    if (status != HR_OK) return status;
    prover->other = *config;
    *prover->other.model.from = *prover->other.train.adapter.from = 0;
    prover->other.train.adapter.kind = HR_ADAPTER_NONE;
    memset(prover->other.given, 0, sizeof prover->other.given); /* nor its other keys */
    snprintf(proof->compared, sizeof proof->compared,
             "adapters of rank %lld = weights that contain them, gradients by the chain rule; "
             "fp32, %lld layers, %lld x %lld random tokens, no dropout",
             (long long)config->train.adapter.rank, (long long)config->model.n_layers,
             (long long)config->train.batch, (long long)config->train.seq_len);
    return hr_config_check(&prover->other, err);
}

/* ---- parameters, by their names in the model with adapters */

static const char *name_of(const hr_prover *prover, int32_t p)
{
    return prover->own.params[p].name;
}

static bool is_part(const hr_prover *prover, int32_t p, const char *part)
{
    return p < prover->own.param_count && strstr(name_of(prover, p), part);
}

static bool is_a(const hr_prover *prover, int32_t p)
{
    return is_part(prover, p, ".lora_A.") || is_part(prover, p, ".lora_embedding_A");
}

static bool is_b(const hr_prover *prover, int32_t p)
{
    return is_part(prover, p, ".lora_B.") || is_part(prover, p, ".lora_embedding_B");
}

/* Whether parameter `p` has the adapter p + 1, p + 2. */
static bool is_adapted(const hr_prover *prover, int32_t p)
{
    return is_a(prover, p + 1) && !is_a(prover, p);
}

static double scale_of(const hr_prover *prover, int32_t p)
{
    const char *name = name_of(prover, p);
    return (double)hr_adapter_of(&prover->variant, 0, hr_name_layer(name), name).scale;
}

/* ---- weights */

static bool is_zero(const hr_matrix *m)
{
    for (int64_t i = 0; i < m->K * m->N; i++)
        if (m->elements[i] != 0) return false;
    return true;
}

static void fill(hr_matrix *m, uint64_t seed)
{
    for (int64_t i = 0; i < m->K * m->N; i++)
        m->elements[i] = (float)((double)(int64_t)hr_random_mix(seed + (uint64_t)i) / 0x1p63 / 16);
}

/* Replaces the part of zeros of new adapters; from[p] is the number of its values. */
static hr_status fill_zeros(hr_prover *prover, int32_t *from, hr_region *room, hr_error *err)
{
    hr_status status = HR_OK;
    for (int32_t p = 0; p < prover->own.param_count && status == HR_OK; p++) {
        hr_matrix m;
        from[p] = p;
        if (!is_a(prover, p) && !is_b(prover, p)) continue;
        room->used = 0;
        status = hr_matrix_read(&prover->values, p, room, &m, err);
        if (status != HR_OK || !is_zero(&m)) continue;
        fill(&m, (uint64_t)p << 32);
        status = hr_values_append(&prover->values, m.K, m.N, m.elements, &from[p], err);
    }
    return status;
}

/* M = W + s A B of parameter `p`. */
static hr_status add_product(hr_prover *prover, int32_t p, const int32_t *from, hr_region *room,
                             int32_t *index, hr_error *err)
{
    hr_matrix m, a, b;
    const double scale = scale_of(prover, p);
    room->used = 0;
    hr_status status = hr_matrix_read(&prover->values, p, room, &m, err);
    if (status == HR_OK) status = hr_matrix_read(&prover->values, from[p + 1], room, &a, err);
    if (status == HR_OK) status = hr_matrix_read(&prover->values, from[p + 2], room, &b, err);
    if (status != HR_OK) return status;
    if (a.K != m.K || b.N != m.N)
        return hr_fail(err, HR_USAGE, "%s is also the output head, which has no adapter of its own",
                       name_of(prover, p));
    for (int64_t k = 0; k < m.K; k++)
        for (int64_t n = 0; n < m.N; n++) {
            double sum = 0;
            for (int64_t r = 0; r < a.N; r++)
                sum += hr_matrix_at(&a, k, r) * hr_matrix_at(&b, r, n);
            m.elements[k * m.N + n] = (float)(hr_matrix_at(&m, k, n) + scale * sum);
        }
    return hr_values_append(&prover->values, m.K, m.N, m.elements, index, err);
}

/* The values of the model without adapters: of each parameter, or the product with its adapter. */
static hr_status make_products(hr_prover *prover, const int32_t *from, int32_t *products,
                               hr_region *room, hr_error *err)
{
    hr_status status = HR_OK;
    int32_t count = 0;
    for (int32_t p = 0; p < prover->own.param_count && status == HR_OK; p++) {
        if (is_a(prover, p) || is_b(prover, p)) continue;
        products[count] = p;
        if (is_adapted(prover, p))
            status = add_product(prover, p, from, room, &products[count], err);
        count++;
    }
    return status;
}

/* ---- comparing */

/* Compares the gradients of the adapter of parameter `p`, which is `other` without adapters. */
static hr_status compare_adapter(hr_prover *prover, int32_t p, int32_t other, const int32_t *from,
                                 hr_region *room, hr_error *err)
{
    hr_matrix m, a, b, seen, expected;
    const double scale = scale_of(prover, p);
    room->used = 0;
    hr_status status = hr_matrix_read_gradient(&prover->second, other, room, &m, err);
    if (status == HR_OK) status = hr_matrix_read(&prover->values, from[p + 1], room, &a, err);
    if (status == HR_OK) status = hr_matrix_read(&prover->values, from[p + 2], room, &b, err);
    if (status == HR_OK) status = hr_matrix_read_gradient(&prover->own, p + 1, room, &seen, err);
    if (status == HR_OK) status = hr_matrix_take(room, a.K, a.N, &expected, err);
    if (status != HR_OK) return status;
    for (int64_t k = 0; k < m.K; k++)
        for (int64_t r = 0; r < a.N; r++) {
            double sum = 0;
            for (int64_t n = 0; n < m.N; n++)
                sum += hr_matrix_at(&m, k, n) * hr_matrix_at(&b, r, n);
            expected.elements[k * a.N + r] = (float)(scale * sum);
        }
    hr_matrix_compare(prover, name_of(prover, p + 1), &expected, &seen);
    status = hr_matrix_read_gradient(&prover->own, p + 2, room, &seen, err);
    if (status == HR_OK) status = hr_matrix_take(room, b.K, b.N, &expected, err);
    if (status != HR_OK) return status;
    memset(expected.elements, 0, (size_t)(b.K * b.N) * sizeof(float));
    for (int64_t r = 0; r < b.K; r++)
        for (int64_t n = 0; n < b.N; n++) {
            double sum = 0;
            for (int64_t k = 0; k < m.K; k++)
                sum += hr_matrix_at(&a, k, r) * hr_matrix_at(&m, k, n);
            expected.elements[r * b.N + n] = (float)(scale * sum);
        }
    hr_matrix_compare(prover, name_of(prover, p + 2), &expected, &seen);
    return HR_OK;
}

/* Compares the gradient of a parameter that is trained whole in both. */
static hr_status compare_whole(hr_prover *prover, int32_t p, int32_t other, hr_region *room,
                               hr_error *err)
{
    hr_matrix expected, seen;
    room->used = 0;
    hr_status status = hr_matrix_read_gradient(&prover->second, other, room, &expected, err);
    if (status == HR_OK) status = hr_matrix_read_gradient(&prover->own, p, room, &seen, err);
    if (status == HR_OK) hr_matrix_compare(prover, name_of(prover, p), &expected, &seen);
    return status;
}

static hr_status compare_all(hr_prover *prover, const int32_t *from, hr_region *room, hr_error *err)
{
    hr_difference *found = &prover->tracer.found;
    hr_status status = HR_OK;
    int32_t other = 0;
    *found = (hr_difference){ .tensors = -1 }; /* the loss is none */
    hr_difference_add(found, fabs(prover->own.loss[0] - prover->second.loss[0]),
                      prover->second.loss[0], "loss of step 1");
    for (int32_t p = 0; p < prover->own.param_count && status == HR_OK; p++) {
        if (is_a(prover, p) || is_b(prover, p)) continue;
        if (is_adapted(prover, p)) status = compare_adapter(prover, p, other, from, room, err);
        else if (prover->own.params[p].gradient.bytes)
            status = compare_whole(prover, p, other, room, err);
        other++;
    }
    return status;
}

/* ---- the proof */

/* Memory for a matrix, its gradient with padding, its adapter, and gradients of that. */
static hr_status open_room(hr_prover *prover, hr_region *room, hr_error *err)
{
    enum { PARTS = 6 };
    int64_t most = 0;
    char needed[64], budget[64];
    for (int32_t i = 0; i < prover->values.count; i++) {
        const int64_t *dims = prover->values.dims[i];
        most = hr_max(most, (dims[0] + 2) * hr_round_up(dims[1], HR_PANEL_WIDTH));
    }
    const int64_t bytes = PARTS * most * (int64_t)sizeof(float) + 4096;
    const int64_t limit = prover->base.memory.budget;
    const int64_t process = hr_memory_bytes_with(prover->memory, bytes);
    if (limit && process > limit)
        return hr_fail(err, HR_NO_FIT, "the chain rule needs a process of %s, the budget is %s",
                       hr_bytes_print(process, needed), hr_bytes_print(limit, budget));
    return hr_memory_region_open(prover->memory, "chain rule", bytes, room, err);
}

/* Runs the model with adapters that are not zero, and the one with their products. */
static hr_status run_both(hr_prover *prover, int32_t *from, int32_t *products, hr_error *err)
{
    hr_region room = { 0 };
    hr_values *values = &prover->values;
    hr_status status = open_room(prover, &room, err);
    if (status == HR_OK) status = fill_zeros(prover, from, &room, err);
    if (status == HR_OK) status = make_products(prover, from, products, &room, err);
    hr_memory_region_close(prover->memory, &room);
    if (status != HR_OK) return status;
    values->from = from;
    status = hr_prover_trace_from(prover, &prover->variant, &prover->own, values, err);
    values->from = products;
    if (status == HR_OK)
        status = hr_prover_trace_from(prover, &prover->other, &prover->second, values, err);
    if (status == HR_OK) status = open_room(prover, &room, err);
    if (status == HR_OK) status = compare_all(prover, from, &room, err);
    hr_memory_region_close(prover->memory, &room);
    return status;
}

hr_status hr_adapters_run(hr_prover *prover, hr_proof *proof, hr_error *err)
{
    hr_values *values = &prover->values;
    const int64_t kept = prover->region.used;
    proof->steps = 1;
    values->count = 0;
    values->from = NULL;
    hr_status status = hr_prover_trace(prover, &prover->variant, &prover->own, 1, false, values,
                                       err);
    if (status != HR_OK) return status;
    int32_t *from = hr_region_take(&prover->region, values->count, sizeof *from);
    int32_t *products = hr_region_take(&prover->region, values->count, sizeof *products);
    if (!from || !products)
        return hr_fail(err, HR_FAILURE, "out of memory for %d parameters", values->count);
    status = run_both(prover, from, products, err);
    values->from = NULL;
    prover->region.used = kept;
    return status;
}
