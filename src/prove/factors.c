/* SPDX-License-Identifier: Apache-2.0 */
/* prove/factors.c - a matrix of two factors against their product as one matrix.
 *
 * The model with the factors and the model with the product M = A B are trained for a step on the
 * same tokens, from the same weights. The losses agree, and so do the gradients of all other
 * weights. The chain rule has those of the factors, here in double:
 *
 *     dA = dM B^T    dB = A^T dM */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "model/family.h"
#include "prove/matrix.h"
#include "prove/proofs.h"

/* Two programs in fp32 that add up products in another order. */
#define BOUND 1e-4

/* The two factors by their parameters: M [K, N] is A [K, R] B [R, N]. */
typedef struct {
    int32_t a, b;     /* in the factorized model */
    int32_t product;  /* in the other one */
    bool b_is_turned; /* the parameter is B^T, [N, R] */
    const char *a_name, *b_name;
} factorization;

/* decoder.a and decoder.b follow all other parameters; E and P come before them. */
static factorization factorization_of(const hr_prover *prover, int32_t params)
{
    const hr_config *config = &prover->variant;
    if (config->model.family == HR_FAMILY_WIDE)
        return (
            factorization){ params - 2, params - 1, params - 2, false, "decoder.a", "decoder.b" };
    if (hr_family_ties(config)) return (factorization){ 1, 0, 0, false, "P", "E" };
    return (factorization){ 0, 1, 0, true, "E", "P" };
}

/* What a factorization is does not depend on the size of the model, but the time of the chain rule
 * does: it is one thread. */
static void shrink(hr_config *config, bool wide)
{
    enum { LAYERS = 2, BATCH = 2, TOKENS = 128, VOCABULARY = 4096, EXPANSION = 2048 };
    config->model.n_layers = hr_min(config->model.n_layers, LAYERS);
    config->model.vocab_size = hr_min(config->model.vocab_size, VOCABULARY);
    if (wide) config->model.expansion = hr_min(hr_config_expansion(config), EXPANSION);
    config->train.batch = hr_min(config->train.batch, BATCH);
    config->train.seq_len = hr_min(config->train.seq_len, TOKENS);
}

hr_status hr_factors_prepare(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    hr_config *config = &prover->variant;
    *config = prover->base;
    const bool wide = config->model.family == HR_FAMILY_WIDE && config->model.decoder_rank;
    *applies = wide || config->model.family == HR_FAMILY_YXANUL;
    if (!*applies) {
        (void)hr_proof_declines(proof, "the model has no factorized matrix");
        return HR_OK;
    }
    if (!*config->model.from) shrink(config, wide);
    hr_prover_set_dtype(config, HR_FORMAT_FP32);
    config->model.weights = HR_WEIGHTS_COMPUTE;
    *config->train.freeze = *config->train.param_groups = 0;
    config->memory.micro_batch = config->memory.loss_chunk = 0;
    *config->memory.strategy = 0;
    config->memory.moments = config->memory.weights = HR_PLACE_HOST;
    proof->bound = BOUND;
    const hr_status status = hr_prover_draw_tokens(prover, config, err);
    if (status != HR_OK) return status;
    prover->other = *config;
    *prover->other.model.from = 0;
    if (wide) prover->other.model.decoder_rank = 0;
    else {
        prover->other.model.family = HR_FAMILY_LLAMA;
        prover->other.model.embedding_rank = 0;
        prover->other.model.tie_embeddings = hr_family_ties(config) ? HR_TIE_TRUE : HR_TIE_FALSE;
    }
    snprintf(proof->compared, sizeof proof->compared,
             "%s of rank %lld = their product as one matrix, gradients by the chain rule; fp32, "
             "%lld layers, %lld x %lld random tokens of %lld",
             wide ? "decoder.a and decoder.b" : "E and P",
             (long long)(wide ? config->model.decoder_rank : hr_config_embedding_rank(config)),
             (long long)config->model.n_layers, (long long)config->train.batch,
             (long long)config->train.seq_len, (long long)config->model.vocab_size);
    return hr_config_check(&prover->other, err);
}

/* ---- matrices */

/* Element (r, n) of B, whichever way it is stored. */
static double b_at(const hr_matrix *b, bool is_turned, int64_t r, int64_t n)
{
    return is_turned ? hr_matrix_at(b, n, r) : hr_matrix_at(b, r, n);
}

static void multiply(const hr_matrix *a, const hr_matrix *b, bool b_is_turned, hr_matrix *m)
{
    for (int64_t k = 0; k < m->K; k++)
        for (int64_t n = 0; n < m->N; n++) {
            double sum = 0;
            for (int64_t r = 0; r < a->N; r++)
                sum += hr_matrix_at(a, k, r) * b_at(b, b_is_turned, r, n);
            m->elements[k * m->N + n] = (float)sum;
        }
}

/* ---- comparing */

/* The gradients of the factors by the chain rule. */
static hr_status compare_factors(hr_prover *prover, const factorization *f, hr_region *region,
                                 hr_error *err)
{
    hr_matrix m, a, b, seen, expected;
    hr_status status = hr_matrix_read_gradient(&prover->second, f->product, region, &m, err);
    if (status == HR_OK) status = hr_matrix_read(&prover->values, f->a, region, &a, err);
    if (status == HR_OK) status = hr_matrix_read(&prover->values, f->b, region, &b, err);
    const int64_t kept = region->used, R = status == HR_OK ? a.N : 0;
    if (status == HR_OK) status = hr_matrix_read_gradient(&prover->own, f->a, region, &seen, err);
    if (status == HR_OK) status = hr_matrix_take(region, m.K, R, &expected, err);
    if (status != HR_OK) return status;
    for (int64_t k = 0; k < m.K; k++)
        for (int64_t r = 0; r < R; r++) {
            double sum = 0;
            for (int64_t n = 0; n < m.N; n++)
                sum += hr_matrix_at(&m, k, n) * b_at(&b, f->b_is_turned, r, n);
            expected.elements[k * R + r] = (float)sum;
        }
    hr_matrix_compare(prover, f->a_name, &expected, &seen);
    region->used = kept;
    status = hr_matrix_read_gradient(&prover->own, f->b, region, &seen, err);
    if (status == HR_OK) status = hr_matrix_take(region, b.K, b.N, &expected, err);
    if (status != HR_OK) return status;
    for (int64_t n = 0; n < m.N; n++)
        for (int64_t r = 0; r < R; r++) {
            double sum = 0;
            for (int64_t k = 0; k < m.K; k++)
                sum += hr_matrix_at(&a, k, r) * hr_matrix_at(&m, k, n);
            expected.elements[f->b_is_turned ? n * b.N + r : r * b.N + n] = (float)sum;
        }
    hr_matrix_compare(prover, f->b_name, &expected, &seen);
    return HR_OK;
}

static hr_status compare_others(hr_prover *prover, const int32_t *from, const factorization *f,
                                hr_region *region, hr_error *err)
{
    hr_status status = HR_OK;
    for (int32_t p = 0; p < prover->second.param_count && status == HR_OK; p++) {
        hr_matrix expected, seen;
        if (p == f->product) continue;
        const int64_t kept = region->used;
        status = hr_matrix_read_gradient(&prover->second, p, region, &expected, err);
        if (status == HR_OK)
            status = hr_matrix_read_gradient(&prover->own, from[p], region, &seen, err);
        if (status == HR_OK)
            hr_matrix_compare(prover, prover->own.params[from[p]].name, &expected, &seen);
        region->used = kept;
    }
    return status;
}

/* ---- the proof */

/* Memory for the product, the factors and two gradients with their padding: no hr_matrix has more
 * elements than the product has, or the largest other parameter, both of them with padding to
 * panels. */
static int64_t room_bytes(const hr_prover *prover, const factorization *f)
{
    const int64_t *a = prover->values.dims[f->a], *b = prover->values.dims[f->b];
    const int64_t product = (f->b_is_turned ? b[0] : b[1]) * a[0];
    int64_t most = hr_max(product, hr_max(a[0] * a[1], b[0] * b[1]));
    for (int32_t p = 0; p < prover->own.param_count; p++)
        most = hr_max(most, prover->own.params[p].gradient.bytes / (int64_t)sizeof(float));
    most = most / 15 * 16 + 16 * (hr_max(a[0], b[0]) + hr_max(a[1], b[1]));
    return 6 * most * (int64_t)sizeof(float) + 4096;
}

static hr_status open_room(hr_prover *prover, const factorization *f, hr_region *region,
                           hr_error *err)
{
    char needed[64], budget[64];
    const int64_t bytes = room_bytes(prover, f), most = prover->base.memory.budget;
    const int64_t process = hr_memory_bytes_with(prover->memory, bytes);
    if (most && process > most)
        return hr_fail(err, HR_NO_FIT, "the chain rule needs a process of %s, the budget is %s",
                       hr_bytes_print(process, needed), hr_bytes_print(most, budget));
    return hr_memory_region_open(prover->memory, "chain rule", bytes, region, err);
}

static hr_status add_product(hr_prover *prover, const factorization *f, hr_region *region,
                             int32_t *index, hr_error *err)
{
    hr_matrix a, b, m;
    region->used = 0;
    hr_status status = hr_matrix_read(&prover->values, f->a, region, &a, err);
    if (status == HR_OK) status = hr_matrix_read(&prover->values, f->b, region, &b, err);
    if (status == HR_OK) status = hr_matrix_take(region, a.K, f->b_is_turned ? b.K : b.N, &m, err);
    if (status != HR_OK) return status;
    multiply(&a, &b, f->b_is_turned, &m);
    status = hr_values_append(&prover->values, m.K, m.N, m.elements, index, err);
    return status;
}

/* The map from the parameters of the model with the product to those of the factorized one. */
static int32_t *map_params(hr_prover *prover, const factorization *f, int32_t params,
                           int32_t product, hr_region *region)
{
    int32_t *from = hr_region_take(region, params, sizeof *from);
    for (int32_t p = 0; from && p < params - 1; p++) from[p] = f->product == 0 ? p + 1 : p;
    if (from) from[f->product] = product;
    prover->values.from = from;
    return from;
}

hr_status hr_factors_run(hr_prover *prover, hr_proof *proof, hr_error *err)
{
    hr_region room = { 0 };
    hr_values *values = &prover->values;
    int32_t product = 0;
    proof->steps = 1;
    values->count = 0;
    hr_status status = hr_prover_trace(prover, &prover->variant, &prover->own, 1, false, values,
                                       err);
    if (status != HR_OK) return status;
    const int32_t params = values->count;
    const factorization f = factorization_of(prover, params);
    status = open_room(prover, &f, &room, err);
    if (status == HR_OK) status = add_product(prover, &f, &room, &product, err);
    hr_memory_region_close(prover->memory, &room);
    if (status != HR_OK) return status;
    const int64_t kept = prover->region.used;
    const int32_t *from = map_params(prover, &f, params, product, &prover->region);
    if (!from) return hr_fail(err, HR_FAILURE, "out of memory for %d parameters", params);
    status = hr_prover_trace_from(prover, &prover->other, &prover->second, values, err);
    if (status == HR_OK) status = open_room(prover, &f, &room, err);
    if (status == HR_OK) {
        hr_tracer *w = &prover->tracer;
        w->found = (hr_difference){ .tensors = -1 }; /* the loss is none */
        hr_difference_add(&w->found, fabs(prover->own.loss[0] - prover->second.loss[0]),
                          prover->second.loss[0], "loss of step 1");
        status = compare_factors(prover, &f, &room, err);
        room.used = 0;
        if (status == HR_OK) status = compare_others(prover, from, &f, &room, err);
    }
    hr_memory_region_close(prover->memory, &room);
    prover->region.used = kept;
    return status;
}
