/* SPDX-License-Identifier: Apache-2.0 */
/* nsa_test.c - native sparse attention, operation by operation, against tensors in float64: its
 * branches, its choice of blocks and every gradient, with each instruction set and one to three
 * threads. With an argument, a folder in the format of tests/oracles/systems/nsa, against that. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bf16.h"
#include "base/random.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_scratch.h"
#include "ops/choose/choose.h"
#include "ops/compress/compress.h"
#include "ops/cpu.h"
#include "ops/cpu_run.h"
#include "ops/gates/gates.h"
#include "ops/kernels.h"
#include "ops/linear/linear.h"
#include "ops/list.h"
#include "require.h"
#include "support/oracle.h"

enum { ARRAYS_MOST = 512, OUTPUT_MOST = 5, GRADIENT_MOST = 4 }; /* exponents of the bounds */

static const char *folder = HR_ORACLES "/systems/nsa";

typedef struct {
    int64_t B, T, H, G, K, D, M, length, stride, block, count, first, local, window;
    oracle_file golden, weights;
    void *arrays[ARRAYS_MOST];
    int64_t array_bytes[ARRAYS_MOST];
    int32_t array_count, threads;
    int64_t row_first, rows; /* of a call; rows 0: those of all sequences */
    hr_dtype dtype;          /* of activations and weights in the calls; the test has all in fp32 */
    const hr_kernels *kernels;
    const char *rung;
    /* Of a random case: what the reference computed, in the order of the comparisons. */
    bool is_random, is_reference;
    float *reference[ARRAYS_MOST];
    uint16_t *blocks;
    int32_t compared;
} nsa;

/* Whether this machine has the instructions. tests/ops/nsa_emulated_test.c has all of AVX-512. */
static bool may_run(const char *rung)
{
#ifdef HR_EMULATED
    rung = "avx512";
#endif
    return hr_test_has(rung);
}

static int64_t number(const json_t *config, const char *name)
{
    return json_integer_value(json_object_get(config, name));
}

static void open_case(nsa *n)
{
    char path[512];
    json_error_t ignored;
    *n = (nsa){ .B = 0 };
    snprintf(path, sizeof path, "%s/config.json", folder);
    json_t *config = json_load_file(path, 0, &ignored);
    assert_non_null(config);
    n->B = number(config, "B");
    n->T = number(config, "T");
    n->H = number(config, "H");
    n->G = number(config, "G");
    n->K = number(config, "K");
    n->D = number(config, "D");
    n->M = number(config, "M");
    n->length = number(config, "compress_length");
    n->stride = number(config, "compress_stride");
    n->block = number(config, "select_block");
    n->count = number(config, "select_count");
    n->first = number(config, "select_first");
    n->local = number(config, "select_local");
    n->window = number(config, "window");
    json_decref(config);
    snprintf(path, sizeof path, "%s/golden.safetensors", folder);
    assert_true(oracle_open(&n->golden, path));
    snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    assert_true(oracle_open(&n->weights, path));
}

static void free_arrays(nsa *n)
{
    while (n->array_count) free(n->arrays[--n->array_count]);
}

/* Poisoned. */
static void *array(nsa *n, int64_t bytes)
{
    assert_true(n->array_count < ARRAYS_MOST);
    void *made = aligned_alloc(64, (size_t)((bytes + 63) / 64 * 64 + 64));
    memset(made, 0xff, (size_t)bytes);
    n->array_bytes[n->array_count] = bytes;
    return n->arrays[n->array_count++] = made;
}

static float *floats(nsa *n, int64_t count)
{
    return array(n, 4 * count);
}

static int64_t elements_of(const nsa *n, const char *name)
{
    const int64_t rows = n->B * n->T;
    const struct {
        const char *name;
        int64_t count;
    } all[] = { { "position", n->length * n->K },
                { "w1", n->length * n->K * n->M },
                { "b1", n->M },
                { "w2", n->M * n->K },
                { "b2", n->K },
                { "gate.w", n->D * 3 * n->H },
                { "gate.b", 3 * n->H },
                { "q", rows * n->H * n->K },
                { "k", rows * n->G * n->K },
                { "v", rows * n->G * n->K },
                { "x", rows * n->D },
                { "R", rows * n->H * n->K } };
    const char *last = strrchr(name, '.'), *part = last && name[0] == 'c' ? last + 1 : name;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, part)) return all[i].count;
    fail_msg("no tensor %s", name);
    return 0;
}

/* The same numbers in (-1, 1) at each call. */
static float *draw(nsa *n, const char *name)
{
    const int64_t count = elements_of(n, name);
    float *to = floats(n, count);
    uint64_t seed = 14695981039346656037u;
    for (const char *c = name; *c; c++) seed = (seed ^ (uint64_t)*c) * 1099511628211u;
    for (int64_t i = 0; i < count; i++)
        to[i] = (strchr(name, 'w') ? 0.1f : 1) *
                (((float)(hr_random_mix(seed + (uint64_t)i) >> 40) + 0.5f) / (float)(1 << 23) - 1);
    return to;
}

static float *input(nsa *n, const oracle_file *file, const char *name)
{
    int64_t bytes = 0;
    if (n->is_random) return draw(n, name);
    const void *from = oracle_tensor(file, "", name, &bytes);
    assert_non_null(from);
    float *to = array(n, bytes);
    memcpy(to, from, (size_t)bytes);
    return to;
}

static hr_layout layout_of(const nsa *n)
{
    return hr_linear_layout(n->dtype);
}

/* A matrix [K, N] of the file in the layout of products. */
static float *matrix(nsa *n, const char *name, int64_t K, int64_t N)
{
    const float *from = input(n, &n->weights, name);
    const int64_t elements = hr_layout_elements(layout_of(n), K, N);
    float *to = floats(n, elements);
    memset(to, 0, (size_t)(4 * elements));
    for (int64_t k = 0; k < K; k++)
        for (int64_t c = 0; c < N; c++)
            to[hr_layout_index(layout_of(n), K, N, k, c)] = from[k * N + c];
    return to;
}

/* A copy in bf16 of an array of this test, with its values or poisoned. */
static void *in_bf16(nsa *n, const void *values, bool copies)
{
    int32_t at = 0;
    while (n->arrays[at] != values) assert_true(++at < n->array_count);
    const int64_t count = n->array_bytes[at] / 4;
    hr_bf16 *made = array(n, 2 * count);
    for (int64_t i = 0; copies && i < count; i++)
        made[i] = hr_bf16_from_f32(((const float *)values)[i]);
    return made;
}

static void out_of_bf16(nsa *n, void *values, const void *from)
{
    int32_t at = 0;
    while (n->arrays[at] != values) assert_true(++at < n->array_count);
    for (int64_t i = 0; i < n->array_bytes[at] / 4; i++)
        ((float *)values)[i] = hr_bf16_to_f32(((const hr_bf16 *)from)[i]);
}

/* Runs all phases of an operation on the rows of all sequences, sums starting at zero. Operands
 * with a b in `types`, inputs before outputs, have the dtype of the case. */
static void run(nsa *n, int32_t op, const char *types, const void *attr, void *const *in,
                int32_t inputs, void *const *out, int32_t outputs)
{
    const hr_op_run *how = hr_cpu_runs[op];
    const hr_op_facts *facts = hr_cpu_backend.facts[op];
    hr_call call = { .attr = attr,
                     .kernels = n->kernels,
                     .row_first = n->row_first,
                     .rows = n->rows ? n->rows : n->B * n->T,
                     .clear = 255,
                     .dtype = n->dtype,
                     .threads = n->threads };
    const char *const out_types = strchr(types, ' ') + 1;
    const bool narrow = n->dtype == HR_BF16;
    for (int32_t i = 0; i < inputs; i++)
        call.in[i] = narrow && in[i] && types[i] == 'b' ? in_bf16(n, in[i], true) : in[i];
    for (int32_t i = 0; i < outputs; i++)
        call.out[i] = narrow && out[i] && out_types[i] == 'b' ? in_bf16(n, out[i], false) : out[i];
    const int64_t scratch = facts->scratch_bytes ? facts->scratch_bytes(attr, call.rows, n->threads)
                                                 : 0;
    call.scratch = array(n, scratch + 64);
    const int32_t phases = how->phases_of ? how->phases_of(&call) : how->phases;
    for (call.phase = 0; call.phase < phases; call.phase++)
        for (call.thread = 0; call.thread < n->threads; call.thread++) how->run(&call);
    for (int32_t i = 0; i < outputs; i++)
        if (call.out[i] != out[i]) out_of_bf16(n, out[i], call.out[i]);
}

#define TYPES_attention "bbb--- bf"
#define TYPES_attention_bwd "bbbfbf-b bbbf"
#define TYPES_compress "bfbfbf b"
#define TYPES_compress_bwd "bfbfbbb bfffff"
#define TYPES_compress_cached "bfbfbf- b"
#define TYPES_choose "bbf- -"
#define TYPES_gates "bbbb b"
#define TYPES_gates_bwd "bbbbbfff bffffff"
#define TYPES_linear "bbf- b-"
#define TYPES_linear_dx "bb--- b-"
#define TYPES_linear_dw "bb ff"

#define RUN(n, op, attr, in, out) \
    run(n, HR_OP_##op, TYPES_##op, attr, in, sizeof(in) / sizeof *(in), out, \
        sizeof(out) / sizeof *(out))

/* Largest difference of `count` values, over the largest value of the file. */
static void compare(nsa *n, const char *name, const float *values, int64_t count, int32_t digits)
{
    int64_t bytes = 0;
    const double *golden = n->is_random ? NULL : oracle_tensor(&n->golden, "", name, &bytes);
    const float *reference = n->reference[n->compared];
    double worst = 0, largest = 0;
    if (n->is_reference) {
        n->reference[n->compared++] = memcpy(malloc((size_t)(4 * count)), values,
                                             (size_t)(4 * count));
        return;
    }
    if (n->is_random) n->compared++;
    else assert_int_equal(bytes, 8 * count);
    for (int64_t i = 0; i < count; i++) {
        const double right = n->is_random ? (double)reference[i] : golden[i];
        largest = fmax(largest, fabs(right));
        worst = fmax(worst, fabs((double)values[i] - right));
        if (isnan(values[i])) worst = INFINITY;
    }
    /* Gradients of the MLP of keys are small sums of large terms, for a shift of all keys changes
     * nothing: that of b2 is zero. */
    const bool narrow = n->dtype == HR_BF16, cancels = strstr(name, "compress_k.");
    const double bound = narrow ? cancels ? 0.15 : 0.02 : pow(10, -digits);
    const double least = narrow ? 0.25 : n->is_random ? 10 : 0.1;
    if (!(worst <= bound * fmax(largest, least)))
        fail_msg("%s, %d threads, %s: difference %g of %g", n->rung, n->threads, name, worst,
                 largest);
}

/* The elements of a matrix of gradients in file order. */
static const float *in_rows(nsa *n, const float *packed, int64_t K, int64_t N)
{
    float *rows = floats(n, K * N);
    for (int64_t k = 0; k < K; k++)
        for (int64_t c = 0; c < N; c++)
            rows[k * N + c] = packed[hr_layout_index(layout_of(n), K, N, k, c)];
    return rows;
}

static hr_attention_attr attention_attr(const nsa *n, hr_attention_mask mask)
{
    return (hr_attention_attr){ .H = (int32_t)n->H,
                                .G = (int32_t)n->G,
                                .head_width = (int32_t)n->K,
                                .T = n->T,
                                .q_width = n->H * n->K,
                                .k_width = n->G * n->K,
                                .v_width = n->G * n->K,
                                .q_head_stride = n->K,
                                .k_head_stride = n->K,
                                .v_head_stride = n->K,
                                .mask = mask,
                                .scale = (float)(1 / sqrt((double)n->K)) };
}

typedef struct {
    hr_attention_attr attr;
    float *k, *v, *o, *lse, *dots, *dq, *dk, *dv; /* dots: of the backward pass, or null: o */
    void *blocks;
} branch;

static void forward(nsa *n, branch *b, float *q)
{
    const int64_t rows = n->B * n->T;
    b->o = floats(n, rows * n->H * n->K);
    b->lse = floats(n, rows * n->H);
    void *const in[] = { q, b->k, b->v, NULL, b->blocks }, *const out[] = { b->o, b->lse };
    RUN(n, attention, &b->attr, in, out);
}

/* Adds dq to the addend, in b->dq, which may be it. */
static void backward(nsa *n, branch *b, float *q, float *grad_o, float *addend)
{
    const int64_t rows = n->B * n->T;
    if (!b->dq) b->dq = floats(n, rows * n->H * n->K);
    b->dk = floats(n, rows * b->attr.k_width);
    b->dv = floats(n, rows * b->attr.v_width);
    b->attr.has_dots = b->dots;
    void *const in[] = {
        q, b->k, b->v, b->dots ? b->dots : b->o, grad_o, b->lse, b->blocks, addend
    };
    void *const out[] = { b->dq, b->dk, b->dv };
    RUN(n, attention_bwd, &b->attr, in, out);
}

static float *sum_of(nsa *n, const float *a, const float *b, const float *c, int64_t count)
{
    float *sum = floats(n, count);
    for (int64_t i = 0; i < count; i++) sum[i] = a[i] + b[i] + (c ? c[i] : 0);
    return sum;
}

/* The weights of one MLP, and what it makes. */
typedef struct {
    const char *name;
    float *x, *position, *w1, *b1, *w2, *b2, *y;
} mlp;

static char *named(const char *prefix, const char *name, const char *part)
{
    static char whole[128];
    snprintf(whole, sizeof whole, "%s%s.%s", prefix, name, part);
    return whole;
}

static void compress(nsa *n, const hr_compress_attr *attr, mlp *m)
{
    m->position = input(n, &n->weights, named("", m->name, "position"));
    m->w1 = matrix(n, named("", m->name, "w1"), n->length * n->K, n->M);
    m->b1 = input(n, &n->weights, named("", m->name, "b1"));
    m->w2 = matrix(n, named("", m->name, "w2"), n->M, n->K);
    m->b2 = input(n, &n->weights, named("", m->name, "b2"));
    m->y = floats(n, n->B * n->T * attr->y_width);
    void *const in[] = { m->x, m->position, m->w1, m->b1, m->w2, m->b2 }, *const out[] = { m->y };
    RUN(n, compress, attr, in, out);
}

static void compare_mlp(nsa *n, const hr_compress_attr *attr, const mlp *m, float *dy,
                        float *addend, const char *gradient)
{
    const int64_t U = n->length * n->K, rows = n->B * n->T;
    float *dx = floats(n, rows * n->G * n->K), *position = floats(n, U);
    float *w1 = floats(n, hr_layout_elements(layout_of(n), U, n->M)), *b1 = floats(n, n->M);
    float *w2 = floats(n, hr_layout_elements(layout_of(n), n->M, n->K)), *b2 = floats(n, n->K);
    void *const in[] = { m->x, m->position, m->w1, m->b1, m->w2, dy, addend };
    void *const out[] = { dx, position, w1, b1, w2, b2 };
    RUN(n, compress_bwd, attr, in, out);
    compare(n, gradient, dx, rows * n->G * n->K, GRADIENT_MOST);
    compare(n, named("grad.", m->name, "position"), position, U, GRADIENT_MOST);
    compare(n, named("grad.", m->name, "w1"), in_rows(n, w1, U, n->M), U * n->M, GRADIENT_MOST);
    compare(n, named("grad.", m->name, "b1"), b1, n->M, GRADIENT_MOST);
    compare(n, named("grad.", m->name, "w2"), in_rows(n, w2, n->M, n->K), n->M * n->K,
            GRADIENT_MOST);
    compare(n, named("grad.", m->name, "b2"), b2, n->K, GRADIENT_MOST);
}

/* In a random case two blocks may be so close that rounding decides: the others get those of the
 * reference. */
static void compare_random_blocks(nsa *n, uint16_t *blocks)
{
    const int64_t count = n->B * n->T * n->G * n->count;
    int64_t differ = 0;
    if (n->is_reference) {
        free(n->blocks);
        n->blocks = memcpy(malloc((size_t)(2 * count)), blocks, (size_t)(2 * count));
        return;
    }
    for (int64_t i = 0; i < count; i++) differ += blocks[i] != n->blocks[i];
    assert_in_range(differ, 0, count / (n->dtype == HR_BF16 ? 50 : 1000));
    memcpy(blocks, n->blocks, (size_t)(2 * count));
}

static void compare_blocks(nsa *n, uint16_t *blocks)
{
    int64_t bytes = 0;
    if (n->is_random) {
        compare_random_blocks(n, blocks);
        return;
    }
    const int64_t *golden = oracle_tensor(&n->golden, "", "selected_blocks", &bytes);
    assert_int_equal(bytes, 8 * n->B * n->T * n->G * n->count);
    for (int64_t i = 0; i < n->B * n->T * n->G * n->count; i++) {
        const int64_t found = blocks[i] == HR_ATTENTION_NO_BLOCK ? -1 : blocks[i];
        if (found != golden[i])
            fail_msg("%s: block %lld of query %lld is %lld, not %lld", n->rung,
                     (long long)(i % n->count), (long long)(i / n->count / n->G), (long long)found,
                     (long long)golden[i]);
    }
}

static void run_case(nsa *n)
{
    const int64_t rows = n->B * n->T, A = n->H * n->K;
    float *q = input(n, &n->golden, "q"), *k = input(n, &n->golden, "k");
    float *v = input(n, &n->golden, "v"), *x = input(n, &n->golden, "x");
    float *R = input(n, &n->golden, "R");
    float *gate_w = matrix(n, "gate.w", n->D, 3 * n->H), *gate_b = input(n, &n->weights, "gate.b");
    hr_compress_attr shape = { .G = (int32_t)n->G,
                               .head_width = (int32_t)n->K,
                               .length = (int32_t)n->length,
                               .stride = (int32_t)n->stride,
                               .hidden = (int32_t)n->M,
                               .T = n->T };
    shape.y_width = hr_compress_width(&shape);
    mlp keys = { .name = "compress_k", .x = k }, values = { .name = "compress_v", .x = v };
    compress(n, &shape, &keys);
    compress(n, &shape, &values);
    const hr_choose_attr choice = { .H = (int32_t)n->H,
                                    .G = (int32_t)n->G,
                                    .head_width = (int32_t)n->K,
                                    .T = n->T,
                                    .q_width = A,
                                    .q_head_stride = n->K,
                                    .k_width = shape.y_width,
                                    .length = (int32_t)n->length,
                                    .stride = (int32_t)n->stride,
                                    .block = (int32_t)n->block,
                                    .count = (int32_t)n->count,
                                    .first = (int32_t)n->first,
                                    .local = (int32_t)n->local,
                                    .scale = (float)(1 / sqrt((double)n->K)) };
    branch compressed = { .attr = attention_attr(n, hr_choose_mask(&choice)),
                          .k = keys.y,
                          .v = values.y };
    compressed.attr.k_width = compressed.attr.v_width = shape.y_width;
    forward(n, &compressed, q);
    compare(n, "out.compressed", compressed.o, rows * A, OUTPUT_MOST);
    uint16_t *blocks = array(n, 2 * rows * n->G * n->count);
    for (int known = 0; known < 2; known++) {
        void *const chosen[] = { q, keys.y, known ? compressed.lse : NULL };
        void *const out[] = { blocks };
        RUN(n, choose, &choice, chosen, out);
        compare_blocks(n, blocks);
    }
    branch selected = { .attr = attention_attr(n, (hr_attention_mask){ HR_PATTERN_SELECTED,
                                                                       (int32_t)n->block,
                                                                       (int32_t)n->count, 1 }),
                        .k = k,
                        .v = v,
                        .blocks = blocks };
    forward(n, &selected, q);
    compare(n, "out.selected", selected.o, rows * A, OUTPUT_MOST);
    branch window = { .attr = attention_attr(
                          n, (hr_attention_mask){ HR_PATTERN_SLIDING, 64, (int32_t)n->window, 1 }),
                      .k = k,
                      .v = v };
    forward(n, &window, q);
    compare(n, "out.window", window.o, rows * A, OUTPUT_MOST);
    const hr_linear_attr gate = { .K = n->D, .N = 3 * n->H, .T = n->T };
    float *z = floats(n, rows * 3 * n->H), *o = floats(n, rows * A);
    void *const gate_in[] = { x, gate_w, gate_b, NULL }, *const gate_out[] = { z, NULL };
    RUN(n, linear, &gate, gate_in, gate_out);
    branch *const of[] = { &compressed, &selected, &window };
    const hr_gates_attr gates = { (int32_t)n->H, (int32_t)n->K, 3 };
    void *const sum_in[] = { z, compressed.o, selected.o, window.o }, *const sum_out[] = { o };
    RUN(n, gates, &gates, sum_in, sum_out);
    compare(n, "out", o, rows * A, OUTPUT_MOST);
    float *dz = floats(n, rows * 3 * n->H);
    void *in[] = { R, z, NULL, NULL, NULL, NULL, NULL, NULL };
    void *out[] = { dz, NULL, NULL, NULL, NULL, NULL, NULL };
    for (int32_t i = 0; i < 3; i++) {
        in[HR_GATES_BWD_X + i] = of[i]->o;
        in[HR_GATES_LSE + i] = out[HR_GATES_SHIFTED + i] = of[i]->lse;
        out[HR_GATES_DOTS + i] = of[i]->dots = floats(n, rows * n->H);
    }
    RUN(n, gates_bwd, &gates, in, out);
    float *dx = floats(n, rows * n->D), *db = floats(n, 3 * n->H);
    float *dw = floats(n, hr_layout_elements(layout_of(n), n->D, 3 * n->H));
    void *const dx_in[] = { dz, gate_w, NULL, NULL, NULL }, *const dx_out[] = { dx, NULL };
    RUN(n, linear_dx, &gate, dx_in, dx_out);
    void *const dw_in[] = { x, dz }, *const dw_out[] = { dw, db };
    RUN(n, linear_dw, &gate, dw_in, dw_out);
    compare(n, "grad.x", dx, rows * n->D, GRADIENT_MOST);
    compare(n, "grad.gate.w", in_rows(n, dw, n->D, 3 * n->H), n->D * 3 * n->H, GRADIENT_MOST);
    compare(n, "grad.gate.b", db, 3 * n->H, GRADIENT_MOST);
    backward(n, &compressed, q, R, NULL);
    backward(n, &selected, q, R, compressed.dq);
    window.dq = selected.dq;
    backward(n, &window, q, R, window.dq);
    compare(n, "grad.q", window.dq, rows * A, GRADIENT_MOST);
    const int64_t width = n->G * n->K;
    compare_mlp(n, &shape, &keys, compressed.dk,
                sum_of(n, selected.dk, window.dk, NULL, rows * width), "grad.k");
    compare_mlp(n, &shape, &values, compressed.dv,
                sum_of(n, selected.dv, window.dv, NULL, rows * width), "grad.v");
}

static void every_tensor_is_that_of_the_oracle_on_every_rung(void **state)
{
    static const char *const names[] = { "ref", "avx2", "avx512" };
    static hr_kernels kernels;
    static nsa n;
    (void)state;
    open_case(&n);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (i > 0 && !may_run(names[i])) continue;
        hr_kernels_fill(&kernels, i > 0 ? (uint32_t)hr_cpu_mask_of(names[i]) : 0);
        n.kernels = &kernels;
        n.rung = names[i];
        for (n.threads = 1; n.threads <= 7; n.threads += 3) {
            run_case(&n);
            free_arrays(&n);
        }
    }
    oracle_close(&n.golden);
    oracle_close(&n.weights);
}

/* Longer sequences than a chunk of queries, a range of keys and a tile of each: `names` in a
 * dtype beside the reference in fp32. */
static void compare_longer(hr_dtype dtype, const char *const *names, size_t count)
{
    static const nsa cases[] = {
        { .B = 1,
          .T = 1300,
          .H = 4,
          .G = 2,
          .K = 24,
          .M = 20,
          .length = 32,
          .stride = 16,
          .block = 64,
          .count = 6,
          .first = 1,
          .local = 2,
          .window = 100 },
        { .B = 2,
          .T = 600,
          .H = 6,
          .G = 1,
          .K = 80,
          .M = 8,
          .length = 16,
          .stride = 16,
          .block = 128,
          .count = 3,
          .first = 1,
          .local = 1,
          .window = 700 },
        { .B = 1,
          .T = 530,
          .H = 2,
          .G = 2,
          .K = 16,
          .M = 33,
          .length = 24,
          .stride = 8,
          .block = 8,
          .count = 9,
          .first = 2,
          .local = 3,
          .window = 1 },
    };
    static hr_kernels kernels;
    static nsa n;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        n = cases[c];
        n.D = 16;
        n.kernels = &kernels;
        n.is_random = n.is_reference = true;
        n.threads = 1;
        hr_kernels_fill(&kernels, 0);
        run_case(&n);
        free_arrays(&n);
        n.is_reference = false;
        n.dtype = dtype;
        for (size_t i = 0; i < count; i++) {
            if (strcmp(names[i], "ref") && !may_run(names[i])) continue;
            hr_kernels_fill(&kernels, (uint32_t)hr_cpu_mask_of(names[i]));
            n.rung = names[i];
            for (n.threads = 1; n.threads <= 7; n.threads += 3) {
                n.compared = 0;
                run_case(&n);
                free_arrays(&n);
            }
        }
        for (int32_t i = 0; i < ARRAYS_MOST; i++) free(n.reference[i]);
        free(n.blocks);
    }
}

static void rungs_agree_with_the_reference_on_longer_sequences(void **state)
{
    static const char *const names[] = { "avx2", "avx512" };
    (void)state;
    compare_longer(HR_F32, names, 2);
}

static void rungs_agree_with_the_reference_in_bf16(void **state)
{
    static const char *const names[] = { "ref", "avx2", "avx512", "avx512bf16", "amx" };
    (void)state;
    compare_longer(HR_BF16, names, 5);
}

/* What later tokens are changes no bit of what earlier ones see, branch by branch. */
static void no_branch_sees_the_future(void **state)
{
    static hr_kernels kernels;
    static nsa n;
    enum { SEEN = 401 };
    (void)state;
    hr_kernels_fill(&kernels, hr_cpu_detect());
    n = (nsa){ .B = 1,
               .T = 530,
               .H = 4,
               .G = 2,
               .K = 16,
               .D = 16,
               .M = 8,
               .length = 16,
               .stride = 8,
               .block = 32,
               .count = 4,
               .first = 1,
               .local = 2,
               .window = 50,
               .kernels = &kernels,
               .threads = 2,
               .is_random = true };
    const int64_t A = n.H * n.K, width = n.G * n.K;
    const hr_compress_attr shape = { 2, 16, 16, 8, 8, n.T, 4 };
    const hr_choose_attr choice = { 4,  2, 16, n.T, A, 0, n.K,  shape.y_width,
                                    16, 8, 32, 4,   1, 2, 0.25f };
    float *o[2][3];
    uint16_t *chosen[2];
    for (int changed = 0; changed < 2; changed++) {
        float *q = draw(&n, "q"), *k = draw(&n, "k"), *v = draw(&n, "v");
        for (int64_t i = changed ? SEEN * A : n.T * A; i < n.T * A; i++) q[i] += 1;
        for (int64_t i = changed ? SEEN * width : n.T * width; i < n.T * width; i++)
            k[i] = -k[i], v[i] += 2;
        mlp keys = { .name = "compress_k", .x = k }, values = { .name = "compress_v", .x = v };
        compress(&n, &shape, &keys);
        compress(&n, &shape, &values);
        branch of[3] = {
            { .attr = attention_attr(&n, hr_choose_mask(&choice)), .k = keys.y, .v = values.y },
            { .attr = attention_attr(&n, (hr_attention_mask){ HR_PATTERN_SELECTED, 32, 4, 1 }),
              .k = k,
              .v = v },
            { .attr = attention_attr(&n, (hr_attention_mask){ HR_PATTERN_SLIDING, 1, 50, 1 }),
              .k = k,
              .v = v }
        };
        of[0].attr.k_width = of[0].attr.v_width = shape.y_width;
        chosen[changed] = array(&n, 2 * n.T * n.G * n.count);
        of[1].blocks = chosen[changed];
        for (int i = 0; i < 3; i++) {
            void *const in[] = { q, keys.y, of[0].lse }, *const out[] = { chosen[changed] };
            if (i == 1) RUN(&n, choose, &choice, in, out);
            forward(&n, &of[i], q);
            o[changed][i] = of[i].o;
        }
    }
    assert_memory_equal(chosen[0], chosen[1], (size_t)(2 * SEEN * n.G * n.count));
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(o[0][i], o[1][i], (size_t)(4 * SEEN * A));
        assert_memory_not_equal(o[0][i], o[1][i], (size_t)(4 * n.T * A));
    }
    free_arrays(&n);
}

/* What a sequence gives when its keys and values come to caches a few rows at a time. */
static void caches_give_what_whole_sequences_give(void **state)
{
    static const int32_t pieces[] = { 5, 1, 64, 1, 130, 3, 200, 1, 1, 124 };
    static hr_kernels kernels;
    static nsa n;
    (void)state;
    hr_kernels_fill(&kernels, hr_cpu_detect());
    n = (nsa){ .B = 1,
               .T = 530,
               .H = 4,
               .G = 2,
               .K = 24,
               .D = 16,
               .M = 8,
               .length = 16,
               .stride = 8,
               .block = 32,
               .count = 4,
               .first = 1,
               .local = 2,
               .window = 50,
               .kernels = &kernels,
               .rung = "cached",
               .threads = 3,
               .is_random = true };
    const int64_t A = n.H * n.K, width = n.G * n.K;
    hr_compress_attr shape = { 2, 24, 16, 8, 8, n.T, 0 };
    shape.y_width = hr_compress_width(&shape);
    const hr_choose_attr choice = { 4,  2, 24, n.T, A, 0, n.K,  shape.y_width,
                                    16, 8, 32, 4,   1, 2, 0.25f };
    float *q = draw(&n, "q"), *k = draw(&n, "k"), *v = draw(&n, "v");
    mlp keys = { .name = "compress_k", .x = k }, values = { .name = "compress_v", .x = v };
    compress(&n, &shape, &keys);
    compress(&n, &shape, &values);
    branch of[3] = {
        { .attr = attention_attr(&n, hr_choose_mask(&choice)), .k = keys.y, .v = values.y },
        { .attr = attention_attr(&n, (hr_attention_mask){ HR_PATTERN_SELECTED, 32, 4, 1 }),
          .k = k,
          .v = v },
        { .attr = attention_attr(&n, (hr_attention_mask){ HR_PATTERN_SLIDING, 1, 50, 1 }),
          .k = k,
          .v = v }
    };
    of[0].attr.k_width = of[0].attr.v_width = shape.y_width;
    forward(&n, &of[0], q);
    uint16_t *blocks = array(&n, 2 * n.T * n.G * n.count);
    void *const chosen_in[] = { q, keys.y, of[0].lse }, *const chosen_out[] = { blocks };
    RUN(&n, choose, &choice, chosen_in, chosen_out);
    of[1].blocks = blocks;
    forward(&n, &of[1], q);
    forward(&n, &of[2], q);

    float *k_cache = floats(&n, n.T * width), *v_cache = floats(&n, n.T * width);
    float *kc = floats(&n, n.T * shape.y_width), *vc = floats(&n, n.T * shape.y_width);
    int32_t position = 0;
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; position += pieces[p++]) {
        const mlp *mlps[] = { &keys, &values };
        n.rows = pieces[p];
        memcpy(k_cache + position * width, k + position * width, (size_t)(4 * n.rows * width));
        memcpy(v_cache + position * width, v + position * width, (size_t)(4 * n.rows * width));
        for (int i = 0; i < 2; i++) {
            const mlp *m = mlps[i];
            void *const in[] = {
                i ? v_cache : k_cache, m->position, m->w1, m->b1, m->w2, m->b2, &position
            };
            void *const out[] = { i ? vc : kc };
            RUN(&n, compress_cached, &shape, in, out);
        }
        float *lse = floats(&n, n.rows * n.H), *o[3];
        uint16_t *chosen = array(&n, 2 * n.rows * n.G * n.count);
        for (int i = 0; i < 3; i++) {
            hr_attention_attr attr = of[i].attr;
            void *const in[] = { q + position * A,       i ? k_cache : kc, i ? v_cache : vc, NULL,
                                 i == 1 ? chosen : NULL, &position };
            void *const out[] = { o[i] = floats(&n, n.rows * A), i ? NULL : lse };
            void *const choose_in[] = { in[0], kc, lse, &position }, *const choose_out[] = {
                chosen
            };
            attr.in_parts = true;
            if (i == 1) RUN(&n, choose, &choice, choose_in, choose_out);
            RUN(&n, attention, &attr, in, out);
            for (int64_t at = 0; at < n.rows * A; at++)
                if (!(fabsf(o[i][at] - of[i].o[position * A + at]) < 1e-5f))
                    fail_msg("branch %d, position %d + %lld: %g is not %g", i, position,
                             (long long)(at / A), (double)o[i][at],
                             (double)of[i].o[position * A + at]);
        }
        assert_memory_equal(chosen, blocks + position * n.G * n.count,
                            (size_t)(2 * n.rows * n.G * n.count));
    }
    assert_int_equal(position, n.T);
    free_arrays(&n);
}

/* Random blocks of each query: ascending, with its own. */
static void draw_blocks(const nsa *n, uint16_t *blocks)
{
    uint64_t state = 5;
    for (int64_t t = 0; t < n->T; t++) {
        const int64_t own = t / n->block;
        int64_t at = 0;
        for (int64_t i = n->count - 1; i > 0; i--) { /* one of each part of the earlier ones */
            const int64_t first = own * (n->count - 1 - i) / (n->count - 1);
            const int64_t last = own * (n->count - i) / (n->count - 1);
            if (first == last) continue;
            blocks[t * n->count + at++] = (uint16_t)(first + (int64_t)(hr_random_mix(++state) %
                                                                       (uint64_t)(last - first)));
        }
        blocks[t * n->count + at++] = (uint16_t)own;
        while (at < n->count) blocks[t * n->count + at++] = HR_ATTENTION_NO_BLOCK;
    }
}

static float *slice(nsa *n, const float *from, int64_t row, int64_t width)
{
    return memcpy(floats(n, n->rows * width), from + row * width, (size_t)(4 * n->rows * width));
}

/* Several chunks of queries of a long sequence go over blocks together, in parts of any length. */
static void compare_parts(int64_t heads, int64_t width, int64_t block, hr_dtype dtype)
{
    static const int64_t pieces[] = { 1024, 3072, 20480, 2048, 38912, 300 };
    static hr_kernels kernels;
    static nsa n;
    hr_kernels_fill(&kernels, hr_cpu_detect());
    n = (nsa){ .B = 1,
               .T = 65536 + 300,
               .H = heads,
               .G = 1,
               .K = width,
               .block = block,
               .count = 4,
               .kernels = &kernels,
               .threads = 1,
               .dtype = dtype,
               .is_random = true };
    const int64_t A = n.H * n.K;
    branch whole = { .attr = attention_attr(
                         &n, (hr_attention_mask){ HR_PATTERN_SELECTED, block, 4, 1 }),
                     .k = draw(&n, "k"),
                     .v = draw(&n, "v"),
                     .blocks = array(&n, 2 * n.T * n.count) };
    float *q = draw(&n, "q"), *grad_o = draw(&n, "R");
    draw_blocks(&n, whole.blocks);
    whole.dots = memcpy(floats(&n, n.T * n.H), draw(&n, "k"), (size_t)(4 * n.T * n.H));
    forward(&n, &whole, q);
    backward(&n, &whole, q, grad_o, NULL);
    branch parts = whole;
    parts.attr.in_parts = true;
    parts.dk = floats(&n, n.T * n.K);
    parts.dv = floats(&n, n.T * n.K);
    float *sums = floats(&n, 2 * n.T * attention_padded(n.K));
    n.threads = 3;
    for (int64_t p = 0; n.row_first < n.T; p++) {
        const int64_t row = n.row_first;
        n.rows = hr_min(pieces[p], n.T - row);
        float *part_q = slice(&n, q, row, A), *part_grad = slice(&n, grad_o, row, A);
        parts.o = floats(&n, n.rows * A);
        parts.dq = floats(&n, n.rows * A);
        parts.lse = floats(&n, n.rows * n.H);
        void *const in[] = { part_q, parts.k, parts.v, NULL, (uint16_t *)whole.blocks + row * 4 };
        void *const out[] = { parts.o, parts.lse };
        RUN(&n, attention, &parts.attr, in, out);
        void *const back[] = { part_q,    parts.k,   parts.v, slice(&n, whole.dots, row, n.H),
                               part_grad, parts.lse, in[4],   NULL };
        void *const to[] = { parts.dq, parts.dk, parts.dv, sums };
        RUN(&n, attention_bwd, &parts.attr, back, to);
        assert_memory_equal(parts.o, whole.o + row * A, (size_t)(4 * n.rows * A));
        assert_memory_equal(parts.lse, whole.lse + row * n.H, (size_t)(4 * n.rows * n.H));
        assert_memory_equal(parts.dq, whole.dq + row * A, (size_t)(4 * n.rows * A));
        n.row_first += n.rows;
    }
    assert_memory_equal(parts.dk, whole.dk, (size_t)(4 * n.T * n.K));
    assert_memory_equal(parts.dv, whole.dv, (size_t)(4 * n.T * n.K));
    free_arrays(&n);
}

static void parts_of_a_long_sequence_have_the_bits_of_the_whole(void **state)
{
    (void)state;
    compare_parts(2, 8, 64, HR_F32);
#ifndef HR_EMULATED /* takes minutes */
    compare_parts(2, 8, 64, HR_BF16);
    compare_parts(1, 136, 256, HR_BF16); /* a block has more queries than the kernel takes */
#endif
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tensor_is_that_of_the_oracle_on_every_rung),
        cmocka_unit_test(rungs_agree_with_the_reference_on_longer_sequences),
        cmocka_unit_test(rungs_agree_with_the_reference_in_bf16),
        cmocka_unit_test(no_branch_sees_the_future),
        cmocka_unit_test(caches_give_what_whole_sequences_give),
        cmocka_unit_test(parts_of_a_long_sequence_have_the_bits_of_the_whole),
    };
    if (count > 1) folder = arguments[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
