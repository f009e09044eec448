/* SPDX-License-Identifier: Apache-2.0 */
/* The gated linear recurrence: the reference against the equations in long double, its backward
 * pass against finite differences; every instruction set against the reference, separate and in
 * place wherever the contract allows it; extreme gates and NaN; threads, splits and continued
 * sequences; and the builder. */
#include <stdlib.h>

#include "graph/builder.h"
#include "ops/cpu.h"
#include "ops/linear/linear_build.h"
#include "ops/list.h"
#include "ops/loss/loss_build.h"
#include "ops/passes.h"
#include "ops/recurrence/recurrence.h"
#include "ops/recurrence/recurrence_build.h"
#include "plan/lifetimes.h"
#include "plan/recompute.h"

enum { SEED = 1709 };

enum { DY, U, X, ARRAYS };

/* The arrays of a case. */
typedef struct {
    void *dy, *u, *x, *y, *du;
    float *alpha, *dalpha, *state;
} arrays_of;

static long double gate_at(float alpha)
{
    return 1 / (1 + expl(-(long double)alpha));
}

/* The states of one channel, from the equations. */
static void states_of(float alpha, const void *u, int64_t c, int64_t C, int64_t tokens,
                      hr_dtype dtype, long double *s)
{
    const long double a = gate_at(alpha), b = gate_at(-alpha);
    for (int64_t t = 0; t < tokens; t++)
        s[t] = a * (t ? s[t - 1] : 0) + b * (long double)hr_element_get(u, t * C + c, dtype);
}

/* Draws u, and draws again wherever rounding could change the sign of a state. */
static void *take_clear(const float *alpha, int64_t rows, int64_t C, int64_t T, hr_dtype dtype,
                        uint64_t *state)
{
    void *u = take_random(rows * C, dtype, 1, state);
    long double *s = malloc((size_t)T * sizeof *s);
    for (int64_t first = 0; first < rows; first += T)
        for (int64_t c = 0; c < C; c++) {
            const int64_t tokens = hr_min(T, rows - first);
            void *here = hr_element_at(u, first * C, dtype);
            for (bool clear = false; !clear;) {
                states_of(alpha[c], here, c, C, tokens, dtype, s);
                clear = true;
                for (int64_t t = 0; t < tokens; t++) clear &= fabsl(s[t]) > 1e-5L;
                for (int64_t t = 0; t < tokens && !clear; t++)
                    hr_element_set(here, t * C + c, dtype, (float)draw(state));
            }
        }
    free(s);
    return u;
}

static void run_forward(const hr_kernels *kernels, const hr_recurrence_attr *attr, int64_t rows,
                        hr_dtype dtype, arrays_of a, int32_t threads)
{
    hr_call call = { .in = { a.u, a.x, a.alpha },
                     .out = { a.y, a.state },
                     .attr = attr,
                     .kernels = kernels,
                     .rows = rows,
                     .dtype = dtype };
    run_threads(&call, hr_recurrence_run, 1, threads);
}

static void run_backward(const hr_kernels *kernels, const hr_recurrence_attr *attr, int64_t rows,
                         hr_dtype dtype, arrays_of a, bool clear, int32_t threads)
{
    hr_call call = { .in = { a.dy, a.u, a.alpha },
                     .out = { a.du, a.dalpha },
                     .attr = attr,
                     .kernels = kernels,
                     .rows = rows,
                     .clear = clear ? 1u << 1 : 0,
                     .dtype = dtype };
    call.scratch = take_poisoned(hr_recurrence_bwd_cpu.scratch_bytes(attr, rows, threads));
    run_threads(&call, hr_recurrence_bwd_run, 2, threads);
}

/* sum over tokens of dy[t] y[t] with x = 0 in one channel. */
static long double loss_of(float alpha, long double shift, const float *u, const float *dy,
                           int64_t c, int64_t C, int64_t T, int64_t moved, long double by)
{
    const long double a = 1 / (1 + expl(-(alpha + shift))), b = 1 / (1 + expl(alpha + shift));
    long double s = 0, loss = 0;
    for (int64_t t = 0; t < T; t++) {
        s = a * s + b * (u[t * C + c] + (t == moved ? by : 0));
        if (s > 0) loss += s * dy[t * C + c];
    }
    return loss;
}

static void the_reference_matches_the_equations_and_their_derivatives(void **unused)
{
    enum { TOKENS = 70, C = 5, ROWS = 2 * TOKENS };
    (void)unused;
    const hr_recurrence_attr attr = { C, TOKENS };
    hr_kernels ref;
    hr_kernels_fill(&ref, 0);
    uint64_t state = start(SEED);
    arrays_of a = { .alpha = take_random(C, HR_F32, 4, &state) };
    a.u = take_clear(a.alpha, ROWS, C, TOKENS, HR_F32, &state);
    a.x = take_random(ROWS * C, HR_F32, 1, &state);
    a.dy = take_random(ROWS * C, HR_F32, 1, &state);
    a.y = take_poisoned(ROWS * C * 4);
    a.du = take_poisoned(ROWS * C * 4);
    a.dalpha = take_poisoned(C * 4);
    run_forward(&ref, &attr, ROWS, HR_F32, a, 1);
    run_backward(&ref, &attr, ROWS, HR_F32, a, true, 1);
    const long double h = 1e-7L;
    for (int64_t c = 0; c < C; c++) {
        long double slope = 0;
        for (int64_t first = 0; first < ROWS; first += TOKENS) {
            const float *u = (const float *)a.u + first * C, *x = (const float *)a.x + first * C;
            const float *dy = (const float *)a.dy + first * C, *y = (float *)a.y + first * C;
            long double s[TOKENS];
            states_of(a.alpha[c], u, c, C, TOKENS, HR_F32, s);
            slope += (loss_of(a.alpha[c], h, u, dy, c, C, TOKENS, -1, 0) -
                      loss_of(a.alpha[c], -h, u, dy, c, C, TOKENS, -1, 0)) /
                     (2 * h);
            for (int64_t t = 0; t < TOKENS; t++) {
                const int64_t at = t * C + c;
                const long double du = (loss_of(a.alpha[c], 0, u, dy, c, C, TOKENS, t, h) -
                                        loss_of(a.alpha[c], 0, u, dy, c, C, TOKENS, t, -h)) /
                                       (2 * h);
                assert_true(fabsl(y[at] - (x[at] + (s[t] > 0 ? s[t] : 0))) < 1e-6L);
                assert_true(fabsl(((float *)a.du)[first * C + at] - du) < 1e-6L);
            }
        }
        assert_true(fabsl(a.dalpha[c] - slope) < 1e-5L);
    }
    release_all();
}

/* Placement of an output: separate, or over an input. */
enum { APART = ARRAYS };

static void compare(const hr_kernels *fast, const hr_kernels *ref, const hr_recurrence_attr *attr,
                    int64_t rows, hr_dtype dtype, int32_t y_over, int32_t du_over)
{
    const int64_t C = attr->C, bytes = rows * C * hr_dtype_bytes(dtype);
    uint64_t state = start(SEED + (uint64_t)(C * 1000 + rows));
    arrays_of a = { .alpha = take_random(C, HR_F32, 6, &state) }, b;
    a.u = take_clear(a.alpha, rows, C, attr->T, dtype, &state);
    a.x = take_random(rows * C, dtype, 1, &state);
    a.dy = take_random(rows * C, dtype, 1, &state);
    a.y = take_poisoned(bytes);
    a.du = take_poisoned(bytes);
    a.dalpha = take_random(C, HR_F32, 1, &state);
    b = a;
    b.u = take_copy(a.u, bytes);
    b.dalpha = take_copy(a.dalpha, C * 4);
    b.y = y_over == U ? b.u : y_over == X ? take_copy(a.x, bytes) : take_poisoned(bytes);
    if (y_over == X) b.x = b.y;
    run_forward(ref, attr, rows, dtype, a, 1);
    run_forward(fast, attr, rows, dtype, b, 3);
    assert_close(b.y, a.y, rows * C, dtype, rounding(dtype), 2);
    b.u = take_copy(a.u, bytes);
    b.du = du_over == U ? b.u : du_over == DY ? take_copy(a.dy, bytes) : take_poisoned(bytes);
    if (du_over == DY) b.dy = b.du;
    run_backward(ref, attr, rows, dtype, a, false, 1);
    run_backward(fast, attr, rows, dtype, b, false, 3);
    assert_close(b.du, a.du, rows * C, dtype, rounding(dtype), 4);
    assert_close(b.dalpha, a.dalpha, C, HR_F32, 4e-6, 64);
    release_all();
}

static void rungs_agree_with_the_reference(uint32_t mask)
{
    static const int64_t widths[] = { 1, 7, 16, 33, 128, 129, 273 };
    static const struct {
        int64_t rows, T;
    } shapes[] = { { 0, 4 }, { 1, 1 }, { 6, 3 }, { 64, 64 }, { 140, 65 }, { 200, 130 } };
    hr_kernels fast, ref;
    hr_kernels_fill(&fast, mask);
    hr_kernels_fill(&ref, 0);
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int32_t d = 0; d < 3; d++) {
                const hr_recurrence_attr attr = { widths[w], shapes[s].T };
                compare(&fast, &ref, &attr, shapes[s].rows, activations[d], APART, APART);
                compare(&fast, &ref, &attr, shapes[s].rows, activations[d], U, U);
                compare(&fast, &ref, &attr, shapes[s].rows, activations[d], X, DY);
            }
}

/* A channel with a = 0 gives max(u, 0), one with a = 1 gives 0; NaN stays in its channel and
 * sequence. */
static void extreme_gates_are_correct_and_nan_stays_in_its_channel(uint32_t mask)
{
    enum { TOKENS = 5, ROWS = 2 * TOKENS, C = 8 };
    static const float ends[C] = { -200, -INFINITY, 200, INFINITY, 0, 0, NAN, 0 };
    const hr_recurrence_attr attr = { C, TOKENS };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t d = 0; d < 3; d++) {
        const hr_dtype dtype = activations[d];
        const int64_t bytes = ROWS * C * hr_dtype_bytes(dtype);
        uint64_t state = start(SEED);
        arrays_of a = { .alpha = take_copy(ends, sizeof ends) };
        a.u = take_random(ROWS * C, dtype, 1, &state);
        a.dy = take_random(ROWS * C, dtype, 1, &state);
        a.x = take(bytes);
        a.y = take_poisoned(bytes);
        a.du = take_poisoned(bytes);
        a.dalpha = take_poisoned(C * 4);
        hr_element_set(a.u, 2 * C + 4, dtype, NAN);
        hr_element_set(a.u, 2 * C + 5, dtype, INFINITY);
        run_forward(&kernels, &attr, ROWS, dtype, a, 1);
        run_backward(&kernels, &attr, ROWS, dtype, a, true, 1);
        for (int64_t t = 0; t < ROWS; t++) {
            const double y[] = {
                hr_element_get(a.y, t * C, dtype),     hr_element_get(a.y, t * C + 1, dtype),
                hr_element_get(a.y, t * C + 2, dtype), hr_element_get(a.y, t * C + 3, dtype),
                hr_element_get(a.y, t * C + 4, dtype), hr_element_get(a.y, t * C + 5, dtype),
                hr_element_get(a.y, t * C + 6, dtype), hr_element_get(a.y, t * C + 7, dtype)
            };
            const double u = hr_element_get(a.u, t * C, dtype);
            const bool hit = t >= 2 && t < TOKENS;
            assert_true(fabs(y[0] - fmax(u, 0)) < 1e-6);
            assert_true(fabs(y[1] - fmax(hr_element_get(a.u, t * C + 1, dtype), 0)) < 1e-6);
            assert_true(y[2] < 1e-30 && y[3] < 1e-30);
            assert_true(isnan(y[4]) == hit);
            assert_true((y[5] == (double)INFINITY) == hit);
            assert_true(isnan(y[6]) && !isnan(y[7]));
        }
        assert_true(isnan(a.dalpha[4]) && isnan(a.dalpha[6]) && !isnan(a.dalpha[7]));
        assert_true(fabsf(a.dalpha[0]) < 1e-30f && fabsf(a.dalpha[2]) < 1e-30f);
        release_all();
    }
}

/* The arrays of a call that starts at element `at` of `whole`. */
static arrays_of part_at(arrays_of whole, int64_t at, hr_dtype dtype)
{
    arrays_of part = whole;
    part.dy = hr_element_at(whole.dy, at, dtype);
    part.u = hr_element_at(whole.u, at, dtype);
    part.x = hr_element_at(whole.x, at, dtype);
    part.y = hr_element_at(whole.y, at, dtype);
    part.du = hr_element_at(whole.du, at, dtype);
    return part;
}

static void compare_splits(const hr_kernels *kernels, int64_t T, int64_t sequences,
                           int64_t call_sequences, hr_dtype dtype, int32_t threads)
{
    enum { C = 273 };
    const hr_recurrence_attr attr = { C, T };
    const int64_t rows = T * sequences, bytes = rows * C * hr_dtype_bytes(dtype);
    uint64_t state = start(SEED);
    arrays_of whole = { .alpha = take_random(C, HR_F32, 3, &state),
                        .u = take_random(rows * C, dtype, 1, &state),
                        .x = take_random(rows * C, dtype, 1, &state),
                        .dy = take_random(rows * C, dtype, 1, &state),
                        .y = take_poisoned(bytes),
                        .du = take_poisoned(bytes),
                        .dalpha = take_poisoned(C * 4) };
    arrays_of cut = whole;
    cut.y = take_poisoned(bytes);
    cut.du = take_poisoned(bytes);
    cut.dalpha = take_poisoned(C * 4);
    run_forward(kernels, &attr, rows, dtype, whole, 1);
    run_backward(kernels, &attr, rows, dtype, whole, true, 1);
    for (int64_t first = 0; first < rows; first += call_sequences * T) {
        const int64_t count = hr_min(call_sequences * T, rows - first);
        const arrays_of a = part_at(cut, first * C, dtype);
        run_forward(kernels, &attr, count, dtype, a, threads);
        run_backward(kernels, &attr, count, dtype, a, first == 0, threads);
    }
    assert_same_bits(cut.y, whole.y, bytes);
    assert_same_bits(cut.du, whole.du, bytes);
    assert_same_bits(cut.dalpha, whole.dalpha, C * 4);
    for (int64_t c = 0; c < C; c++) assert_false(isnan(whole.dalpha[c]));
    release_all();
}

static void threads_and_micro_batches_change_no_bit(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t threads = 1; threads <= THREADS_MOST; threads++)
        for (int32_t d = 0; d < 3; d++) {
            compare_splits(&kernels, 128, 4, 4, activations[d], threads);
            compare_splits(&kernels, 128, 4, 1, activations[d], threads);
            compare_splits(&kernels, 70, 5, 2, activations[d], threads);
            compare_splits(&kernels, 3, 7, 3, activations[d], threads);
        }
}

/* A sequence in pieces of any length, each continuing the state of the previous one. */
static void a_state_continues_a_sequence_across_calls(uint32_t mask)
{
    enum { C = 150, TOKENS = 90 };
    static const int64_t ends[] = { 1, 2, 33, 33, 64, 90 };
    /* shorter than the sequence: with a state the number of rows counts, not T */
    const hr_recurrence_attr attr = { C, 16 };
    const hr_recurrence_attr whole_attr = { C, TOKENS };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t d = 0; d < 3; d++) {
        const hr_dtype dtype = activations[d];
        const int64_t bytes = TOKENS * C * hr_dtype_bytes(dtype);
        uint64_t state = start(SEED);
        arrays_of whole = { .alpha = take_random(C, HR_F32, 3, &state),
                            .u = take_random(TOKENS * C, dtype, 1, &state),
                            .x = take_random(TOKENS * C, dtype, 1, &state),
                            .y = take_poisoned(bytes) };
        arrays_of cut = whole;
        cut.y = take_poisoned(bytes);
        cut.state = take_poisoned(C * 4);
        run_forward(&kernels, &whole_attr, TOKENS, dtype, whole, 1);
        int64_t first = 0;
        hr_call clear = { .out = { cut.state }, .attr = &attr, .kernels = &kernels };
        run_threads(&clear, hr_recurrence_clear_run, 1, 2);
        for (size_t k = 0; k < sizeof ends / sizeof *ends; first = ends[k++])
            run_forward(&kernels, &attr, ends[k] - first, dtype, part_at(cut, first * C, dtype), 3);
        assert_same_bits(cut.y, whole.y, bytes);
        release_all();
    }
}

/* ---- the builder */

enum { WIDTH = 16, LENGTH = 8, REGION_BYTES = 1 << 20 };

/* A layer x -> u -> y with a loss above it. */
typedef struct {
    void *memory;
    hr_region region;
    hr_program program;
    hr_builder builder;
    hr_error err;
    int32_t section, first, x, u, y;
} built;

static void build(built *m, bool second_reader)
{
    *m = (built){ .memory = malloc(REGION_BYTES) };
    m->region = hr_region_over(m->memory, REGION_BYTES);
    assert_int_equal(
        hr_program_place(&m->region, &hr_cpu_backend, 32, 64, 4, 8, &m->program, &m->err), HR_OK);
    hr_builder *b = &m->builder;
    *b = (hr_builder){ .program = &m->program,
                       .dtype = HR_BF16,
                       .rows = 2 * LENGTH,
                       .T = LENGTH,
                       .training = true,
                       .layer = HR_NONE,
                       .err = &m->err };
    const hr_param_shape matrix = { .K = WIDTH, .N = WIDTH };
    const hr_param_shape vector = { .kind = HR_PARAM_VECTOR, .K = WIDTH };
    const int32_t w_first = hr_build_param(b, matrix, "w_first");
    const int32_t w_in = hr_build_param(b, matrix, "w_in");
    const int32_t alpha = hr_build_param(b, vector, "alpha");
    m->section = hr_build_known_loop_open(b, HR_LOOP_STEP, 1);
    const int32_t ids = hr_build_rows(b, "ids", HR_I32, 1);
    const int32_t loss = hr_build_fixed(b, "loss sum", HR_ROLE_SUM, HR_F64, HR_ROWS, 1, 0, 0);
    const int32_t given = hr_build_rows(b, "given", HR_BF16, WIDTH);
    hr_step *step = hr_build_step(b, HR_OP_batch, 0, 0);
    step->out[0] = ids;
    step->out[1] = given;
    b->direction = HR_DIR_FORWARD;
    m->first = m->program.step_count;
    m->x = hr_build_linear(b, "x", given, w_first, HR_NONE, HR_ACT_NONE, HR_NONE);
    b->layer = 0;
    b->block = HR_BLOCK_ATTENTION;
    m->u = hr_build_linear(b, "u", m->x, w_in, HR_NONE, HR_ACT_NONE, HR_NONE);
    hr_build_mark(b, m->u, HR_INTERMEDIATE_UP);
    m->y = hr_build_recurrence(b, "y", m->u, m->x, alpha);
    if (second_reader) m->y = hr_build_recurrence(b, "z", m->u, m->y, alpha);
    b->layer = HR_NONE;
    b->block = HR_BLOCK_HEAD;
    hr_build_loss(b, m->y, ids, HR_NONE, 0, loss);
    assert_int_equal(hr_build_status(b), HR_OK);
}

static hr_status derive(built *m)
{
    const hr_status status = hr_build_derivative(&m->builder, m->first, m->program.step_count - 1,
                                                 &m->region, &m->err);
    hr_build_loop_close(&m->builder);
    return status;
}

/* The single step of an operation in a direction; null: none. */
static const hr_step *only(const built *m, int32_t op, hr_direction direction)
{
    const hr_step *found = NULL;
    for (int32_t s = 0; s < m->program.step_count; s++) {
        const hr_step *step = &m->program.steps[s];
        if (step->op != op || step->direction != direction) continue;
        assert_null(found);
        found = step;
    }
    return found;
}

static int32_t storage_of(const hr_plan *plan, int32_t tensor)
{
    return plan->buffers[plan->buffer_of_tensor[tensor]].storage;
}

/* No state is saved. The gradient of u reuses the storage of u, and the gradient of the stream that
 * of y until the product adds to it. */
static void only_the_input_is_saved_for_backward(void **unused)
{
    (void)unused;
    built m;
    build(&m, false);
    assert_int_equal(derive(&m), HR_OK);
    const hr_step *bwd = only(&m, HR_OP_recurrence_bwd, HR_DIR_BACKWARD);
    assert_non_null(bwd);
    assert_int_equal(bwd->in[1], m.u);
    assert_string_equal(m.program.tensors[bwd->out[0]].name, "d.u");
    assert_string_equal(m.program.tensors[bwd->out[1]].name, "grad alpha");
    int32_t products = 0;
    for (int32_t s = 0; s < m.program.step_count; s++) {
        const hr_step *step = &m.program.steps[s];
        if (step->op != HR_OP_linear_dx || step->in[0] != bwd->out[0]) continue;
        assert_int_equal(step->in[2], bwd->in[0]); /* the addend */
        products++;
    }
    assert_int_equal(products, 1);
    for (int32_t k = 0; k < 2; k++) {
        const hr_op_facts *op = k ? &hr_recurrence_bwd_cpu : &hr_recurrence_cpu;
        assert_true(op->row_quantum(bwd->attr) == LENGTH);
        assert_true(op->pieces(bwd->attr, 2 * LENGTH) == 2);
    }
    hr_plan plan = { .process = { .threads = 1, .rung = "ref", .page_bytes = 4096 } };
    assert_int_equal(hr_lifetimes(&m.program, &m.region, &plan, &m.err), HR_OK);
    assert_int_equal(storage_of(&plan, bwd->out[0]), storage_of(&plan, m.u));
    free(m.memory);
}

static void the_input_may_be_recomputed(void **unused)
{
    (void)unused;
    built m;
    build(&m, false);
    assert_int_equal(derive(&m), HR_OK);
    const hr_intermediates dropped[1] = { 1 << HR_INTERMEDIATE_UP };
    assert_int_equal(hr_recompute(&m.program, m.section, dropped, 0, &m.region, &m.err), HR_OK);
    const hr_step *again = only(&m, HR_OP_linear, HR_DIR_RECOMPUTED);
    assert_non_null(again);
    assert_null(only(&m, HR_OP_recurrence, HR_DIR_RECOMPUTED));
    assert_int_equal(again->in[0], m.x);
    assert_int_equal(only(&m, HR_OP_recurrence_bwd, HR_DIR_BACKWARD)->in[1], again->out[0]);
    free(m.memory);
}

static void a_second_reader_is_an_error_with_a_sentence(void **unused)
{
    (void)unused;
    built m;
    build(&m, true);
    assert_int_equal(derive(&m), HR_FAILURE);
    assert_non_null(strstr(m.err.message, "what a recurrence runs over may have one reader"));
    free(m.memory);
}

ON_RUNGS(rungs_agree_with_the_reference)
ON_RUNGS(extreme_gates_are_correct_and_nan_stays_in_its_channel)
ON_RUNGS(threads_and_micro_batches_change_no_bit)
ON_RUNGS(a_state_continues_a_sequence_across_calls)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_matches_the_equations_and_their_derivatives),
        TEST_RUNGS(rungs_agree_with_the_reference),
        TEST_RUNGS(extreme_gates_are_correct_and_nan_stays_in_its_channel),
        TEST_RUNGS(threads_and_micro_batches_change_no_bit),
        TEST_RUNGS(a_state_continues_a_sequence_across_calls),
        cmocka_unit_test(only_the_input_is_saved_for_backward),
        cmocka_unit_test(the_input_may_be_recomputed),
        cmocka_unit_test(a_second_reader_is_an_error_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
