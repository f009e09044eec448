/* SPDX-License-Identifier: Apache-2.0 */
/* The gated activation: the reference against the definition in long double, its backward pass
 * against finite differences; every instruction set against the reference, separate and in place
 * wherever the contract allows it; large gates, infinity and NaN; splits; and the builder. */
#include <stdlib.h>

#include "graph/builder.h"
#include "ops/cpu.h"
#include "ops/glu/glu.h"
#include "ops/glu/glu_build.h"
#include "ops/linear/linear_build.h"
#include "ops/list.h"
#include "ops/loss/loss_build.h"
#include "ops/passes.h"
#include "plan/lifetimes.h"
#include "plan/recompute.h"

enum { SEED = 909 };

enum { DY, GATE, UP, ARRAYS };

static long double act_at(long double x)
{
    return x / (1 + expl(-x));
}

static hr_call forward_call(const hr_kernels *kernels, const hr_glu_attr *attr, int64_t rows,
                            hr_dtype dtype, void *const in[ARRAYS], void *y)
{
    return (hr_call){ .in = { in[GATE], in[UP] },
                      .out = { y },
                      .attr = attr,
                      .kernels = kernels,
                      .rows = rows,
                      .dtype = dtype };
}

static hr_call backward_call(const hr_kernels *kernels, const hr_glu_attr *attr, int64_t rows,
                             hr_dtype dtype, void *const in[ARRAYS], void *dgate, void *dup)
{
    return (hr_call){ .in = { in[DY], in[GATE], in[UP] },
                      .out = { dgate, dup },
                      .attr = attr,
                      .kernels = kernels,
                      .rows = rows,
                      .dtype = dtype };
}

static bool near(long double got, long double expected, long double relative, long double absolute)
{
    return fabsl(got - expected) <= relative * fabsl(expected) + absolute;
}

static void the_reference_matches_the_definition_and_its_derivative(void **unused)
{
    enum { COUNT = 4001 };
    (void)unused;
    hr_kernels ref;
    hr_kernels_fill(&ref, 0);
    const hr_glu_attr attr = { COUNT };
    uint64_t state = start(SEED);
    float *dy = take_random(COUNT, HR_F32, 1, &state), *gate = take(COUNT * 4);
    float *up = take_random(COUNT, HR_F32, 1, &state), *y = take_poisoned(COUNT * 4);
    float *dgate = take_poisoned(COUNT * 4), *dup = take_poisoned(COUNT * 4);
    void *const in[ARRAYS] = { dy, gate, up };
    for (int32_t i = 0; i < COUNT; i++) gate[i] = (float)(i - COUNT / 2) / 100;
    hr_call call = forward_call(&ref, &attr, 1, HR_F32, in, y);
    run_threads(&call, hr_glu_run, 1, 1);
    call = backward_call(&ref, &attr, 1, HR_F32, in, dgate, dup);
    run_threads(&call, hr_glu_bwd_run, 1, 1);
    for (int32_t i = 0; i < COUNT; i++) {
        const long double x = gate[i], h = 1e-5L, value = act_at(x);
        const long double slope = (act_at(x + h) - act_at(x - h)) / (2 * h);
        assert_true(near(y[i], value * up[i], 1e-7L, 1e-16L));
        assert_true(near(dup[i], value * dy[i], 1e-7L, 1e-16L));
        assert_true(near(dgate[i], slope * dy[i] * up[i], 1e-7L, 1e-9L));
    }
    release_all();
}

/* Placement of an output: separate, or over an input. */
enum { APART = ARRAYS, PLACES };

static void compare_forward(const hr_kernels *fast, const hr_kernels *ref, const hr_glu_attr *attr,
                            int64_t rows, hr_dtype dtype, int32_t place)
{
    uint64_t state = start(SEED + (uint64_t)attr->N);
    const int64_t count = rows * attr->N, bytes = count * hr_dtype_bytes(dtype);
    void *in[PLACES];
    for (int32_t k = 0; k < ARRAYS; k++) in[k] = take_random(count, dtype, 6, &state);
    in[APART] = take_poisoned(bytes);
    void *expected = take_poisoned(bytes);
    hr_call call = forward_call(ref, attr, rows, dtype, in, expected);
    run_threads(&call, hr_glu_run, 1, 1);
    void *other = in[place == UP ? GATE : UP], *kept = take_copy(other, bytes);
    call = forward_call(fast, attr, rows, dtype, in, in[place]);
    run_threads(&call, hr_glu_run, 1, 3);
    assert_close(in[place], expected, count, dtype, rounding(dtype), 1e-3);
    assert_same_bits(other, kept, bytes);
    release_all();
}

static void compare_backward(const hr_kernels *fast, const hr_kernels *ref, const hr_glu_attr *attr,
                             int64_t rows, hr_dtype dtype, int32_t dgate, int32_t dup)
{
    uint64_t state = start(SEED + (uint64_t)attr->N);
    const int64_t count = rows * attr->N, bytes = count * hr_dtype_bytes(dtype);
    void *in[PLACES], *kept[ARRAYS], *expected[2];
    for (int32_t k = 0; k < ARRAYS; k++) in[k] = take_random(count, dtype, 6, &state);
    for (int32_t k = 0; k < ARRAYS; k++) kept[k] = take_copy(in[k], bytes);
    for (int32_t k = 0; k < 2; k++) expected[k] = take_poisoned(bytes);
    in[APART] = take_poisoned(bytes);
    void *const to[2] = { in[dgate], dup == APART ? take_poisoned(bytes) : in[dup] };
    hr_call call = backward_call(ref, attr, rows, dtype, in, expected[0], expected[1]);
    run_threads(&call, hr_glu_bwd_run, 1, 1);
    call = backward_call(fast, attr, rows, dtype, in, to[0], to[1]);
    run_threads(&call, hr_glu_bwd_run, 1, 3);
    /* A derivative is a sum that crosses zero, of products up to 36. */
    assert_close(to[0], expected[0], count, dtype, rounding(dtype), dtype == HR_BF16 ? 1e-3 : 10);
    assert_close(to[1], expected[1], count, dtype, rounding(dtype), 1e-3);
    for (int32_t k = 0; k < ARRAYS; k++)
        if (k != dgate && k != dup) assert_same_bits(in[k], kept[k], bytes);
    release_all();
}

static void every_placement_of_outputs_matches_the_reference(uint32_t mask)
{
    hr_kernels fast, ref;
    hr_kernels_fill(&fast, mask);
    hr_kernels_fill(&ref, 0);
    for (int32_t s = 0; s < SIZE_COUNT; s++)
        for (int32_t k = 0; k < 2; k++)
            for (int64_t rows = 0; rows < 8; rows += 1 + 2 * rows) {
                const hr_glu_attr attr = { odd_sizes[s] };
                const hr_dtype dtype = activations[k];
                for (int32_t place = GATE; place < PLACES; place++)
                    compare_forward(&fast, &ref, &attr, rows, dtype, place);
                for (int32_t both = 0; both < PLACES * PLACES; both++) {
                    const int32_t dgate = both / PLACES, dup = both % PLACES;
                    if (dgate == dup && dup != APART) continue;
                    compare_backward(&fast, &ref, &attr, rows, dtype, dgate, dup);
                }
            }
}

/* With dy and up at 1, y and dup are act, and dgate is its derivative. The error of act is
 * relative, down to the smallest values. */
static void act_has_a_small_relative_and_its_derivative_a_small_absolute_error(uint32_t mask)
{
    enum { COUNT = 100003 };
    hr_kernels kernels, ref;
    hr_kernels_fill(&kernels, mask);
    hr_kernels_fill(&ref, 0);
    const hr_glu_attr attr = { COUNT };
    const double width = 90, relative = 4e-6;
    float *ones = take(COUNT * 4), *gate = take(COUNT * 4), *got[3], *expected[3];
    void *const in[ARRAYS] = { ones, gate, ones };
    uint64_t state = start(SEED);
    for (int32_t i = 0; i < COUNT; i++) {
        ones[i] = 1;
        gate[i] = (float)(width * draw(&state));
    }
    for (int32_t k = 0; k < 2; k++) {
        float **out = k ? got : expected;
        for (int32_t j = 0; j < 3; j++) out[j] = take_poisoned(COUNT * 4);
        hr_call call = forward_call(k ? &kernels : &ref, &attr, 1, HR_F32, in, out[0]);
        run_threads(&call, hr_glu_run, 1, 1);
        call = backward_call(call.kernels, &attr, 1, HR_F32, in, out[1], out[2]);
        run_threads(&call, hr_glu_bwd_run, 1, 1);
    }
    for (int32_t i = 0; i < COUNT; i++) {
        assert_true(near(got[0][i], expected[0][i], relative, 2e-35L));
        assert_true(near(got[1][i], expected[1][i], 0, 5e-7L));
        assert_true(near(got[2][i], expected[2][i], relative, 2e-35L));
    }
    release_all();
}

/* Gates at which exp overflows or underflows, at the largest floats, infinite and NaN. */
static void large_gates_give_the_limits_and_nan_stays_nan(uint32_t mask)
{
    static const float gates[] = { 0,       -0.f,  1e-40f, -1e-40f,  16.5f,     -16.5f,   86.5f,
                                   -86.5f,  87.5f, -87.5f, 89,       -89,       128,      -128,
                                   1e5f,    -1e5f, 1e38f,  -1e38f,   FLT_MAX,   -FLT_MAX, 9.875f,
                                   -9.875f, 10,    -10,    INFINITY, -INFINITY, NAN };
    static const float others[] = { 0.75f, -0.5f, 0, NAN };
    enum { GATES = sizeof gates / sizeof *gates, OTHERS = 4, COUNT = GATES * OTHERS * OTHERS };
    hr_kernels fast, ref;
    hr_kernels_fill(&fast, mask);
    hr_kernels_fill(&ref, 0);
    for (int32_t k = 0; k < 2; k++) {
        const hr_glu_attr attr = { COUNT };
        const hr_dtype dtype = activations[k];
        const int64_t bytes = COUNT * hr_dtype_bytes(dtype);
        void *in[ARRAYS], *out[2][3];
        for (int32_t i = 0; i < ARRAYS; i++) in[i] = take(bytes);
        for (int32_t i = 0; i < COUNT; i++) {
            hr_element_set(in[GATE], i, dtype, gates[i % GATES]);
            hr_element_set(in[UP], i, dtype, others[i / GATES % OTHERS]);
            hr_element_set(in[DY], i, dtype, others[i / GATES / OTHERS]);
        }
        for (int32_t side = 0; side < 2; side++) {
            void **o = out[side];
            for (int32_t i = 0; i < 3; i++) o[i] = take_poisoned(bytes);
            hr_call call = forward_call(side ? &fast : &ref, &attr, 1, dtype, in, o[0]);
            run_threads(&call, hr_glu_run, 1, 1);
            call = backward_call(call.kernels, &attr, 1, dtype, in, o[1], o[2]);
            run_threads(&call, hr_glu_bwd_run, 1, 1);
        }
        for (int32_t i = 0; i < 3; i++)
            assert_close(out[1][i], out[0][i], COUNT, dtype, rounding(dtype), 1e-6);
        for (int32_t i = 0; i < COUNT; i++) { /* the reference itself */
            const double x = hr_element_get(in[GATE], i, dtype);
            const double dy = hr_element_get(in[DY], i, dtype);
            const double up = hr_element_get(in[UP], i, dtype);
            const double y = hr_element_get(out[0][0], i, dtype);
            const double dgate = hr_element_get(out[0][1], i, dtype);
            assert_true(isnan(y) == (isnan(x) || isnan(up) || (x == (double)INFINITY && up == 0)));
            assert_true(isnan(dgate) == (isnan(x) || isnan(up) || isnan(dy)));
            if (x < -128) assert_true(isnan(y) || y == 0);
            if (x < -128) assert_true(isnan(dgate) || dgate == 0);
            if (x >= 128) assert_true(isnan(dgate) || dgate == (double)(float)(dy * up));
        }
        release_all();
    }
}

static void threads_and_splits_change_no_bit(uint32_t mask)
{
    enum { ROWS = 20, N = 45, COUNT = ROWS * N };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t k = 0; k < 2; k++) {
        const hr_glu_attr attr = { N };
        const hr_dtype dtype = activations[k];
        const int64_t bytes = COUNT * hr_dtype_bytes(dtype);
        uint64_t state = start(SEED);
        void *in[ARRAYS], *whole[3], *cut[3];
        for (int32_t i = 0; i < ARRAYS; i++) in[i] = take_random(COUNT, dtype, 6, &state);
        for (int32_t i = 0; i < 3; i++) whole[i] = take_poisoned(bytes);
        for (int32_t i = 0; i < 3; i++) cut[i] = take_poisoned(bytes);
        hr_call call = forward_call(&kernels, &attr, ROWS, dtype, in, whole[0]);
        run_threads(&call, hr_glu_run, 1, 1);
        call = backward_call(&kernels, &attr, ROWS, dtype, in, whole[1], whole[2]);
        run_threads(&call, hr_glu_bwd_run, 1, 1);
        for (int64_t first = 0; first < ROWS; first += 3) {
            void *part[ARRAYS], *out[3];
            for (int32_t i = 0; i < ARRAYS; i++) part[i] = hr_element_at(in[i], first * N, dtype);
            for (int32_t i = 0; i < 3; i++) out[i] = hr_element_at(cut[i], first * N, dtype);
            const int64_t rows = hr_min(3, ROWS - first);
            call = forward_call(&kernels, &attr, rows, dtype, part, out[0]);
            run_threads(&call, hr_glu_run, 1, THREADS_MOST);
            call = backward_call(&kernels, &attr, rows, dtype, part, out[1], out[2]);
            run_threads(&call, hr_glu_bwd_run, 1, THREADS_MOST);
        }
        for (int32_t i = 0; i < 3; i++) assert_same_bits(cut[i], whole[i], bytes);
        release_all();
    }
}

/* ---- the builder */

enum { WIDTH = 16, TOKENS = 8, REGION_BYTES = 1 << 20 };

/* A layer of x -> gate, up -> y -> out, with a loss above it. */
typedef struct {
    void *memory;
    hr_region region;
    hr_program program;
    hr_builder builder;
    hr_error err;
    int32_t section, first, gate, up, y;
} built;

static int32_t weight(built *m, const char *name)
{
    return hr_build_param(&m->builder, (hr_param_shape){ .K = WIDTH, .N = WIDTH }, "%s", name);
}

static int32_t product(built *m, const char *name, int32_t x, int32_t w, int32_t onto)
{
    return hr_build_linear(&m->builder, name, x, w, HR_NONE, HR_ACT_NONE, onto);
}

/* `second_reader`: what is also added to the output, so that it has two readers: 0 nothing, 1 the
 * gate, 2 up. */
static void build(built *m, int32_t second_reader)
{
    *m = (built){ .memory = malloc(REGION_BYTES) };
    m->region = hr_region_over(m->memory, REGION_BYTES);
    assert_int_equal(
        hr_program_place(&m->region, &hr_cpu_backend, 32, 64, 4, 8, &m->program, &m->err), HR_OK);
    hr_builder *b = &m->builder;
    *b = (hr_builder){ .program = &m->program,
                       .dtype = HR_BF16,
                       .rows = TOKENS,
                       .T = TOKENS,
                       .training = true,
                       .layer = HR_NONE,
                       .err = &m->err };
    const int32_t w[] = { weight(m, "w_gate"), weight(m, "w_up"), weight(m, "w_down") };
    m->section = hr_build_known_loop_open(b, HR_LOOP_STEP, 1);
    const int32_t ids = hr_build_rows(b, "ids", HR_I32, 1);
    const int32_t loss = hr_build_fixed(b, "loss sum", HR_ROLE_SUM, HR_F64, HR_ROWS, 1, 0, 0);
    const int32_t x = hr_build_rows(b, "x", HR_BF16, WIDTH);
    hr_step *step = hr_build_step(b, HR_OP_batch, 0, 0);
    step->out[0] = ids;
    step->out[1] = x;
    b->direction = HR_DIR_FORWARD;
    b->layer = 0;
    b->block = HR_BLOCK_MLP;
    m->first = m->program.step_count;
    m->gate = hr_build_mark(b, product(m, "gate", x, w[0], HR_NONE), HR_INTERMEDIATE_GATE);
    m->up = hr_build_mark(b, product(m, "up", x, w[1], HR_NONE), HR_INTERMEDIATE_UP);
    m->y = hr_build_glu(b, "y", m->gate, m->up);
    const int32_t onto[] = { HR_NONE, m->gate, m->up };
    const int32_t out = product(m, "out", m->y, w[2], onto[second_reader]);
    b->layer = HR_NONE;
    b->block = HR_BLOCK_HEAD;
    hr_build_loss(b, out, ids, HR_NONE, 0, loss);
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

static void one_step_writes_both_gradients_in_place(void **unused)
{
    (void)unused;
    built m;
    build(&m, 0);
    assert_int_equal(m.program.tensors[m.y].intermediates, 1 << HR_INTERMEDIATE_ACTIVATION);
    assert_int_equal(derive(&m), HR_OK);
    const hr_step *bwd = only(&m, HR_OP_glu_bwd, HR_DIR_BACKWARD);
    assert_non_null(bwd);
    assert_string_equal(m.program.tensors[bwd->in[DY]].name, "d.y");
    assert_int_equal(bwd->in[GATE], m.gate);
    assert_int_equal(bwd->in[UP], m.up);
    assert_string_equal(m.program.tensors[bwd->out[0]].name, "d.gate");
    assert_string_equal(m.program.tensors[bwd->out[1]].name, "d.up");
    const hr_glu_attr *attr = (const hr_glu_attr *)bwd->attr;
    assert_true(attr->N == WIDTH);
    for (int32_t k = 0; k < 2; k++) { /* the cost model counts exponentials */
        int64_t items[HR_ITEMS_MAX] = { 0 };
        (k ? hr_glu_bwd_cpu : hr_glu_cpu).items(bwd, true, 5, items);
        assert_true(items[0] == 5 * WIDTH && !items[1]);
    }
    hr_plan plan = { .process = { .threads = 1, .rung = "ref", .page_bytes = 4096 } };
    assert_int_equal(hr_lifetimes(&m.program, &m.region, &plan, &m.err), HR_OK);
    const int32_t dgate = storage_of(&plan, bwd->out[0]), dup = storage_of(&plan, bwd->out[1]);
    int32_t taken = 0;
    for (int32_t i = 0; i < ARRAYS; i++) {
        const int32_t input = storage_of(&plan, bwd->in[i]);
        taken += (input == dgate) + (input == dup);
    }
    assert_int_not_equal(dgate, dup);
    assert_int_equal(taken, 2);
    free(m.memory);
}

/* If y is not saved, it is recomputed from gate and up, without a product. */
static void a_dropped_output_is_recomputed_from_gate_and_up(void **unused)
{
    (void)unused;
    built m;
    build(&m, 0);
    assert_int_equal(derive(&m), HR_OK);
    const hr_intermediates dropped[1] = { 1 << HR_INTERMEDIATE_ACTIVATION };
    assert_int_equal(hr_recompute(&m.program, m.section, dropped, 0, &m.region, &m.err), HR_OK);
    const hr_step *again = only(&m, HR_OP_glu, HR_DIR_RECOMPUTED);
    assert_non_null(again);
    assert_null(only(&m, HR_OP_linear, HR_DIR_RECOMPUTED));
    assert_int_equal(again->in[0], m.gate);
    assert_int_equal(again->in[1], m.up);
    assert_string_equal(m.program.tensors[again->out[0]].name, "again.y");
    int32_t readers = 0;
    for (int32_t s = 0; s < m.program.step_count; s++)
        if (m.program.steps[s].direction == HR_DIR_BACKWARD) {
            const int32_t *in = m.program.steps[s].in;
            for (int32_t i = 0; i < HR_IN_MAX; i++) {
                assert_int_not_equal(in[i], m.y);
                readers += in[i] == again->out[0];
            }
        }
    assert_int_equal(readers, 1); /* the gradient of the weight that y is multiplied with */
    free(m.memory);
}

static void a_second_reader_is_an_error_with_a_sentence(void **unused)
{
    (void)unused;
    for (int32_t reader = 1; reader <= 2; reader++) {
        built m;
        build(&m, reader);
        assert_int_equal(derive(&m), HR_FAILURE);
        assert_string_equal(m.err.message, "step 3 (glu): a gate and what it lets through may have "
                                           "one reader each");
        free(m.memory);
    }
}

ON_RUNGS(every_placement_of_outputs_matches_the_reference)
ON_RUNGS(act_has_a_small_relative_and_its_derivative_a_small_absolute_error)
ON_RUNGS(large_gates_give_the_limits_and_nan_stays_nan)
ON_RUNGS(threads_and_splits_change_no_bit)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_matches_the_definition_and_its_derivative),
        TEST_RUNGS(every_placement_of_outputs_matches_the_reference),
        TEST_RUNGS(act_has_a_small_relative_and_its_derivative_a_small_absolute_error),
        TEST_RUNGS(large_gates_give_the_limits_and_nan_stays_nan),
        TEST_RUNGS(threads_and_splits_change_no_bit),
        cmocka_unit_test(one_step_writes_both_gradients_in_place),
        cmocka_unit_test(a_dropped_output_is_recomputed_from_gate_and_up),
        cmocka_unit_test(a_second_reader_is_an_error_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
