/* SPDX-License-Identifier: Apache-2.0 */
/* prove/modulated.c - adapters of a token against the weights that they stand for.
 *
 * One step is trained. What the modulated products of a layer read, and the gradients of their
 * results, are noted during its backward pass. From these the change of the weights of each token
 * is computed element by element, in double, and the gradients of the adapters through it:
 *
 *     dW_t = x_t dy_t',   dA, dB from W_t = A diag(s tanh(a_t A)) B,
 *     dWi, dWa, dWb from  W_t = sum over triples of (i Wa)' (i Wb),   i = a_t Wi
 *
 * The parts of new adapters that are 0 get random values first. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/random.h"
#include "model/adapter.h"
#include "ops/list.h"
#include "prove/matrix.h"

/* The program adds up products in fp32. */
#define BOUND 1e-4

enum { NOTED_MOST = 64, OF_A = 0, OF_X, OF_DY, NOTES };

/* What was noted of the adapter of one matrix: numbers of values. */
typedef struct {
    int32_t first; /* parameter */
    int32_t index[NOTES];
    int64_t rows;
} noted;

typedef struct {
    hr_prover *prover;
    noted all[NOTED_MOST];
    int32_t count;
} notes;

/* A time that does not depend on the size of the model: the explicit changes are one thread. */
static void shrink(hr_config *config)
{
    enum { LAYERS = 2, VOCABULARY = 4096, TOKENS = 16, TOKENS_OF_LARGE = 4, LARGE = 4 << 20 };
    const bool large = config->model.d_model * config->model.d_ff > LARGE;
    config->train.batch = 1;
    config->train.seq_len = hr_min(config->train.seq_len, large ? TOKENS_OF_LARGE : TOKENS);
    if (*config->model.from) return; /* its layers and vocabulary are given */
    config->model.n_layers = hr_min(config->model.n_layers, LAYERS);
    config->model.vocab_size = hr_min(config->model.vocab_size, VOCABULARY);
    snprintf(config->train.adapter.layers, sizeof config->train.adapter.layers, "all");
}

/* The document's efficiency test: bytes of the changes of all tokens, and of what makes them, for
 * one matrix of the recipe in fp32. */
static void compare_bytes(const hr_config *recipe, char *text, int64_t bytes)
{
    char naive[64], ours[64];
    const int64_t tokens = recipe->train.batch * recipe->train.seq_len;
    const hr_config_adapter *adapter = &recipe->train.adapter;
    const int64_t width = adapter->rank * (adapter->form == HR_NPT_DIAGONAL ? 1 : adapter->triples);
    const int64_t matrix = recipe->model.d_model * recipe->model.d_ff;
    snprintf(text, (size_t)bytes, "changes of %lld tokens %s, what makes them %s",
             (long long)tokens, hr_bytes_print(tokens * matrix * 4, naive),
             hr_bytes_print(tokens * width * 4, ours));
}

hr_status hr_modulated_prepare(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    hr_config *config = &prover->variant;
    char bytes[160];
    *config = prover->base;
    *applies = config->train.adapter.kind == HR_ADAPTER_NPT;
    if (!*applies) {
        (void)hr_proof_declines(proof, "the recipe trains no NPT adapters");
        return HR_OK;
    }
    shrink(config);
    hr_prover_set_dtype(config, HR_FORMAT_FP32);
    config->model.weights = HR_WEIGHTS_COMPUTE;
    config->model.dropout = config->train.adapter.regularisation = 0;
    *config->train.param_groups = 0;
    config->memory.micro_batch = config->memory.loss_chunk = 0;
    *config->memory.strategy = 0;
    config->memory.moments = config->memory.weights = HR_PLACE_HOST;
    proof->bound = BOUND;
    compare_bytes(&prover->recipe, bytes, sizeof bytes);
    snprintf(proof->compared, sizeof proof->compared,
             "%lld layers, %lld random tokens in fp32, gradients by explicit changes; in the "
             "recipe %s",
             (long long)config->model.n_layers, (long long)config->train.seq_len, bytes);
    return hr_prover_draw_tokens(prover, config, err);
}

/* ---- notes */

static noted *note_of(notes *all, int32_t first)
{
    int32_t i = 0;
    while (i < all->count && all->all[i].first != first) i++;
    if (i == NOTED_MOST) return NULL;
    if (i == all->count)
        all->all[all->count++] = (noted){ .first = first, .index = { HR_NONE, HR_NONE, HR_NONE } };
    return &all->all[i];
}

/* What operand of a product with a part of an adapter is worth a note, when the gradient of that
 * part is computed: its rows, or the gradients of its results. */
static int32_t kind_of(const hr_program *program, int32_t p, int32_t gradient)
{
    const hr_param *param = &program->params[p];
    const int32_t part = p - program->params[param->adapts].adapter;
    if (part == 1) return OF_DY; /* B, Wb */
    if (part == 2) return OF_X;  /* Wa */
    if (param->rule.form == HR_ADAPTER_OUTER) return OF_A;
    return gradient == param->gradient ? OF_X : OF_A; /* A has two uses, the last one first */
}

static void look(void *context, const hr_executor *executor, int32_t s)
{
    notes *all = context;
    hr_prover *prover = all->prover;
    hr_tracer *tracer = &prover->tracer;
    const hr_program *program = executor->program;
    const hr_step *step = &program->steps[s];
    if (step->op != HR_OP_linear_dw || executor->clock > 0) return;
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        const int32_t root = hr_tensor_root(program, step->out[0]);
        if (param->adapts == HR_NONE || (root != param->gradient && root != param->gradient_again))
            continue;
        const int32_t kind = kind_of(program, p, root), operand = step->in[kind == OF_DY];
        noted *n = note_of(all, program->params[param->adapts].adapter);
        if (!n || n->index[kind] != HR_NONE) return;
        n->rows = program->tensors[operand].dims[0];
        tracer->status = hr_values_append(
            &prover->values, n->rows, program->tensors[operand].dims[1],
            hr_executor_address(executor, operand), &n->index[kind], &tracer->err);
        return;
    }
}

/* ---- explicit changes */

/* The adapter of a matrix: its parts, what it read, and their gradients in double. */
typedef struct {
    hr_matrix a, x, dy, part[3];
    double *gradient[3];
    double scale, *m, *dm; /* [r] of a token: m, and its gradient */
    double *va, *vb, *dva, *dvb, *inner, *dinner;
    int64_t r;
} explicit;

static void add_diagonal(explicit *e, int64_t t)
{
    const int64_t K = e->x.N, N = e->dy.N, r = e->r;
    for (int64_t c = 0; c < r; c++) {
        double u = 0;
        for (int64_t k = 0; k < e->a.N; k++)
            u += hr_matrix_at(&e->a, t, k) * hr_matrix_at(&e->part[0], k, c);
        e->m[c] = tanh(u);
        e->dm[c] = 0;
    }
    for (int64_t k = 0; k < K; k++)
        for (int64_t n = 0; n < N; n++) {
            const double change = hr_matrix_at(&e->x, t, k) * hr_matrix_at(&e->dy, t, n);
            for (int64_t c = 0; c < r; c++) {
                const double of_a = hr_matrix_at(&e->part[0], k, c);
                const double of_b = hr_matrix_at(&e->part[1], c, n), m = e->scale * e->m[c];
                e->gradient[0][k * r + c] += change * m * of_b;
                e->gradient[1][c * N + n] += change * m * of_a;
                e->dm[c] += change * of_a * of_b;
            }
        }
    for (int64_t c = 0; c < r; c++) {
        const double du = e->scale * e->dm[c] * (1 - e->m[c] * e->m[c]);
        for (int64_t k = 0; k < e->a.N; k++)
            e->gradient[0][k * r + c] += hr_matrix_at(&e->a, t, k) * du;
    }
}

/* One triple: columns [first, first + r) of Wi and Wa, rows of Wb. */
static void add_triple(explicit *e, int64_t t, int64_t first)
{
    const int64_t K = e->x.N, M = e->dy.N, r = e->r, N = e->part[0].N;
    memset(e->va, 0, (size_t)K * sizeof(double));
    memset(e->dva, 0, (size_t)K * sizeof(double));
    memset(e->vb, 0, (size_t)M * sizeof(double));
    memset(e->dvb, 0, (size_t)M * sizeof(double));
    for (int64_t c = 0; c < r; c++) {
        e->inner[c] = e->dinner[c] = 0;
        for (int64_t k = 0; k < e->a.N; k++)
            e->inner[c] += hr_matrix_at(&e->a, t, k) * hr_matrix_at(&e->part[0], k, first + c);
        for (int64_t k = 0; k < K; k++)
            e->va[k] += e->inner[c] * hr_matrix_at(&e->part[2], k, first + c);
        for (int64_t n = 0; n < M; n++)
            e->vb[n] += e->inner[c] * hr_matrix_at(&e->part[1], first + c, n);
    }
    for (int64_t k = 0; k < K; k++)
        for (int64_t n = 0; n < M; n++) {
            const double change = e->scale * hr_matrix_at(&e->x, t, k) * hr_matrix_at(&e->dy, t, n);
            e->dva[k] += change * e->vb[n];
            e->dvb[n] += change * e->va[k];
        }
    for (int64_t c = 0; c < r; c++) {
        for (int64_t k = 0; k < K; k++) {
            e->gradient[2][k * N + first + c] += e->inner[c] * e->dva[k];
            e->dinner[c] += hr_matrix_at(&e->part[2], k, first + c) * e->dva[k];
        }
        for (int64_t n = 0; n < M; n++) {
            e->gradient[1][(first + c) * M + n] += e->inner[c] * e->dvb[n];
            e->dinner[c] += hr_matrix_at(&e->part[1], first + c, n) * e->dvb[n];
        }
        for (int64_t k = 0; k < e->a.N; k++)
            e->gradient[0][k * N + first + c] += hr_matrix_at(&e->a, t, k) * e->dinner[c];
    }
}

static bool take_doubles(explicit *e, int32_t parts, hr_region *room)
{
    bool taken = true;
    for (int32_t i = 0; i < parts; i++) {
        e->gradient[i] = hr_region_take(room, e->part[i].K * e->part[i].N, sizeof(double));
        taken &= e->gradient[i] != NULL;
    }
    double **const vectors[] = { &e->m,   &e->dm,  &e->va,    &e->vb,
                                 &e->dva, &e->dvb, &e->inner, &e->dinner };
    const int64_t most = hr_max(hr_max(e->x.N, e->dy.N), e->part[0].N);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        taken &= (*vectors[i] = hr_region_take(room, most, sizeof(double))) != NULL;
    return taken;
}

static hr_status compare(hr_prover *prover, const noted *n, const int32_t *from, hr_region *room,
                         hr_error *err)
{
    const hr_config_adapter *adapter = &prover->variant.train.adapter;
    const bool diagonal = adapter->form == HR_NPT_DIAGONAL;
    const int32_t parts = diagonal ? 2 : 3;
    explicit e = { .scale = diagonal ? adapter->scale : 1, .r = adapter->rank };
    hr_matrix *const rows[NOTES] = { &e.a, &e.x, &e.dy };
    hr_status status = HR_OK;
    room->used = 0;
    for (int32_t i = 0; i < NOTES && status == HR_OK; i++) {
        if (n->index[i] == HR_NONE)
            return hr_fail(err, HR_FAILURE, "the proof saw no backward pass of %s",
                           prover->own.params[n->first].name);
        status = hr_matrix_read(&prover->values, n->index[i], room, rows[i], err);
    }
    for (int32_t i = 0; i < parts && status == HR_OK; i++)
        status = hr_matrix_read(&prover->values, from[n->first + i], room, &e.part[i], err);
    if (status != HR_OK) return status;
    if (!take_doubles(&e, parts, room))
        return hr_fail(err, HR_FAILURE, "out of memory for the gradients of an adapter");
    for (int64_t t = 0; t < n->rows; t++) {
        if (diagonal) add_diagonal(&e, t);
        for (int64_t j = 0; j < adapter->triples && !diagonal; j++) add_triple(&e, t, j * e.r);
    }
    for (int32_t i = 0; i < parts && status == HR_OK; i++) {
        hr_matrix seen, expected = e.part[i];
        for (int64_t k = 0; k < expected.K * expected.N; k++)
            expected.elements[k] = (float)e.gradient[i][k];
        status = hr_matrix_read_gradient(&prover->own, n->first + i, room, &seen, err);
        if (status == HR_OK)
            hr_matrix_compare(prover, prover->own.params[n->first + i].name, &expected, &seen);
    }
    return status;
}

/* ---- the proof */

static hr_status open_room(hr_prover *prover, hr_region *room, hr_error *err)
{
    enum { PARTS = 20 };
    int64_t most = 0;
    for (int32_t i = 0; i < prover->values.count; i++) {
        const int64_t *dims = prover->values.dims[i];
        if (dims[0] * dims[1] < most) continue;
        most = (dims[0] + 16) * (dims[1] + 16);
    }
    return hr_memory_region_open(prover->memory, "explicit changes",
                                 PARTS * most * (int64_t)sizeof(float) + 65536, room, err);
}

/* Replaces the parts of zeros of new adapters; from[p] is the number of the values of each. */
static hr_status fill_zeros(hr_prover *prover, int32_t *from, hr_error *err)
{
    hr_region room = { 0 };
    hr_status status = open_room(prover, &room, err);
    for (int32_t p = 0; p < prover->own.param_count && status == HR_OK; p++) {
        hr_matrix m;
        bool zero = true;
        from[p] = p;
        room.used = 0;
        if (!prover->own.params[p].trained) continue;
        status = hr_matrix_read(&prover->values, p, &room, &m, err);
        for (int64_t i = 0; i < m.K * m.N && status == HR_OK; i++) zero &= m.elements[i] == 0;
        if (status != HR_OK || !zero) continue;
        for (int64_t i = 0; i < m.K * m.N; i++)
            m.elements[i] = (float)((double)(int64_t)hr_random_mix(((uint64_t)p << 32) +
                                                                   (uint64_t)i) /
                                    0x1p63 / 16);
        status = hr_values_append(&prover->values, m.K, m.N, m.elements, &from[p], err);
    }
    hr_memory_region_close(prover->memory, &room);
    return status;
}

hr_status hr_modulated_run(hr_prover *prover, hr_proof *proof, hr_error *err)
{
    hr_values *values = &prover->values;
    hr_region room = { 0 };
    const int64_t kept = prover->region.used;
    proof->steps = 1;
    values->count = 0;
    values->from = NULL;
    notes all = { .prover = prover };
    hr_status status = hr_prover_trace(prover, &prover->variant, &prover->own, 1, false, values,
                                       err);
    if (status != HR_OK) return status;
    int32_t *from = hr_region_take(&prover->region, 2 * values->count, sizeof *from);
    if (!from) return hr_fail(err, HR_FAILURE, "out of memory for %d parameters", values->count);
    status = fill_zeros(prover, from, err);
    if (status == HR_OK) {
        values->from = from;
        prover->look = look;
        prover->looking = &all;
        status = hr_prover_trace_from(prover, &prover->variant, &prover->own, values, err);
        prover->look = NULL;
    }
    prover->tracer.found = (hr_difference){ .tensors = 0 };
    if (status == HR_OK) status = open_room(prover, &room, err);
    for (int32_t i = 0; i < all.count && status == HR_OK; i++)
        status = compare(prover, &all.all[i], from, &room, err);
    if (room.base) hr_memory_region_close(prover->memory, &room);
    values->from = NULL;
    prover->region.used = kept;
    return status;
}
