/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNorm and RMSNorm of rows and of groups: every instruction set against the reference, the
 * reference against the equations in double and their finite differences, the same bits for every
 * split of tokens and number of threads, and the builder. */
#include "graph/builder.h"
#include "ops/cpu.h"
#include "ops/list.h"
#include "ops/norm/norm.h"
#include "ops/norm/norm_build.h"
#include "ops/passes.h"

enum { SEED = 101, SHAPE_COUNT = 4 };

/* Of rows and of groups within rows, centered and not. */
static const struct {
    int64_t groups;
    bool centered;
} shapes[SHAPE_COUNT] = { { 1, true }, { 1, false }, { 3, false }, { 2, true } };

static const hr_norm_attr *attr_of(int64_t D, int32_t shape, int64_t T)
{
    static hr_norm_attr attr;
    attr = (hr_norm_attr){ D, shapes[shape].groups, T, 1e-5f, shapes[shape].centered };
    return &attr;
}

static void compare_forward(const hr_kernels *fast, const hr_kernels *ref, int64_t rows, int64_t D,
                            int32_t shape, hr_dtype dtype, bool in_place, bool all_operands)
{
    uint64_t state = start(SEED + (uint64_t)(rows * 1000 + D));
    const hr_norm_attr *attr = attr_of(D, shape, 64);
    const int64_t groups = rows * attr->groups, stats = hr_norm_stats(attr);
    const int64_t bytes = groups * D * hr_dtype_bytes(dtype);
    void *x = take_random(groups * D, dtype, 3, &state);
    float *gain = take_random(D, HR_F32, 2, &state), *bias = take_random(D, HR_F32, 1, &state);
    void *expected = take_poisoned(bytes), *got = in_place ? x : take_poisoned(bytes);
    float *stat_expected = take_poisoned(groups * stats * 4);
    float *stat = take_poisoned(groups * stats * 4);
    hr_call call = { .in = { x, gain, all_operands && attr->centered ? bias : NULL },
                     .out = { expected, stat_expected },
                     .attr = attr,
                     .kernels = ref,
                     .rows = rows,
                     .dtype = dtype };
    run_threads(&call, hr_norm_run, 1, 1);
    call.kernels = fast;
    call.out[0] = got;
    call.out[1] = all_operands ? stat : NULL;
    run_threads(&call, hr_norm_run, 1, 2);
    /* Nearly equal elements lose digits when their mean is subtracted. */
    for (int64_t r = 0; r < groups; r++)
        assert_close(hr_element_at(got, r * D, dtype), hr_element_at(expected, r * D, dtype), D,
                     dtype, rounding(dtype),
                     attr->centered ? 1 + stat_expected[2 * r + 1] / 4 : 1e-6);
    if (all_operands) assert_close(stat, stat_expected, groups * stats, HR_F32, 1e-5, 0.1);
    release_all();
}

static void forward_agrees_with_the_reference(uint32_t mask)
{
    hr_kernels fast, ref;
    hr_kernels_fill(&fast, mask);
    hr_kernels_fill(&ref, 0);
    for (int32_t s = 0; s < SIZE_COUNT; s++)
        for (int32_t shape = 0; shape < SHAPE_COUNT; shape++)
            for (int32_t k = 0; k < 8; k++)
                for (int64_t rows = 0; rows < 4; rows += 1 + rows)
                    compare_forward(&fast, &ref, rows, odd_sizes[s], shape, activations[k & 1],
                                    k & 2, k & 4);
}

/* `over`: 0 separate, 1 dx over dy, 2 over x, 3 over addend, 4 no addend and no dbias. */
static void compare_backward(const hr_kernels *fast, const hr_kernels *ref, int64_t rows, int64_t D,
                             int32_t shape, hr_dtype dtype, int32_t over)
{
    uint64_t state = start(SEED + (uint64_t)(rows * 1000 + D));
    const hr_norm_attr *attr = attr_of(D, shape, 70);
    const int64_t groups = rows * attr->groups, stats = hr_norm_stats(attr);
    const int64_t bytes = groups * D * hr_dtype_bytes(dtype);
    void *dy = take_random(groups * D, dtype, 1, &state);
    void *x = take_random(groups * D, dtype, 3, &state);
    void *addend = take_random(groups * D, dtype, 1, &state);
    float *gain = take_random(D, HR_F32, 2, &state);
    float *stat = take_random(groups * stats, HR_F32, 1, &state);
    for (int64_t r = 0; r < groups; r++) {
        float *rstd = stat + r * stats + stats - 1;
        *rstd = 0.5f + fabsf(*rstd);
    }
    void *dx[2] = { take_poisoned(bytes), NULL };
    dx[1] = over == 1 ? dy : over == 2 ? x : over == 3 ? addend : take_poisoned(bytes);
    float *dgain[2] = { take_random(D, HR_F32, 1, &state) }, *dbias[2] = { NULL, NULL };
    dgain[1] = take_copy(dgain[0], D * 4);
    for (int32_t k = 0; k < 2 && attr->centered && over < 4; k++) dbias[k] = take_poisoned(D * 4);
    hr_call call = { .in = { dy, x, stat, gain, over == 4 ? NULL : addend },
                     .attr = attr,
                     .rows = rows,
                     .clear = 1u << 2,
                     .dtype = dtype };
    for (int32_t k = 0; k < 2; k++) {
        call.scratch = take_poisoned(hr_norm_bwd_cpu.scratch_bytes(call.attr, rows, k + 1));
        call.out[0] = dx[k];
        call.out[1] = dgain[k];
        call.out[2] = dbias[k];
        call.kernels = k == 0 ? ref : fast;
        run_threads(&call, hr_norm_bwd_run, 2, k + 1);
    }
    assert_close(dx[1], dx[0], groups * D, dtype, rounding(dtype), 4);
    assert_close(dgain[1], dgain[0], D, HR_F32, 4e-6, 64 * (double)attr->groups);
    if (dbias[0]) assert_close(dbias[1], dbias[0], D, HR_F32, 4e-6, 64 * (double)attr->groups);
    release_all();
}

static void backward_agrees_with_the_reference(uint32_t mask)
{
    hr_kernels fast, ref;
    hr_kernels_fill(&fast, mask);
    hr_kernels_fill(&ref, 0);
    const int64_t rows[] = { 0, 1, 3, 140 };
    for (int32_t s = 0; s < SIZE_COUNT; s++)
        for (int32_t shape = 0; shape < SHAPE_COUNT; shape++)
            for (int32_t k = 0; k < 4; k++)
                for (int32_t over = 0; over < 5; over++)
                    for (int32_t d = 0; d < 3; d++)
                        compare_backward(&fast, &ref, rows[k], odd_sizes[s], shape, activations[d],
                                         over);
}

typedef struct {
    void *dy, *x, *addend, *dx;
    float *gain, *stat, *dgain, *dbias;
} backward_arrays;

/* One backward pass over all rows, in calls of `call_rows` rows. */
static void run_calls(const hr_kernels *kernels, backward_arrays a, const hr_norm_attr *attr,
                      int64_t rows, int64_t call_rows, hr_dtype dtype, int32_t threads)
{
    for (int64_t first = 0; first < rows; first += call_rows) {
        const int64_t count = rows - first < call_rows ? rows - first : call_rows;
        const int64_t group = first * attr->groups, at = group * attr->D;
        hr_call call = { .in = { hr_element_at(a.dy, at, dtype), hr_element_at(a.x, at, dtype),
                                 a.stat + hr_norm_stats(attr) * group, a.gain,
                                 hr_element_at(a.addend, at, dtype) },
                         .out = { hr_element_at(a.dx, at, dtype), a.dgain, a.dbias },
                         .attr = attr,
                         .kernels = kernels,
                         .rows = count,
                         .row_first = first,
                         .clear = first == 0 ? 1u << 1 | 1u << 2 : 0,
                         .dtype = dtype };
        call.scratch = take_poisoned(hr_norm_bwd_cpu.scratch_bytes(call.attr, count, threads));
        run_threads(&call, hr_norm_bwd_run, 2, threads);
    }
}

static void compare_splits(const hr_kernels *kernels, int64_t rows, int64_t T, int64_t call_rows,
                           int32_t shape, hr_dtype dtype, int32_t threads)
{
    uint64_t state = start(SEED);
    const hr_norm_attr *attr = attr_of(37, shape, T);
    const int64_t D = attr->D, groups = rows * attr->groups;
    const int64_t bytes = groups * D * hr_dtype_bytes(dtype);
    backward_arrays whole = {
        .dy = take_random(groups * D, dtype, 1, &state),
        .x = take_random(groups * D, dtype, 1, &state),
        .addend = take_random(groups * D, dtype, 1, &state),
        .dx = take_poisoned(bytes),
        .gain = take_random(D, HR_F32, 1, &state),
        .stat = take_random(groups * hr_norm_stats(attr), HR_F32, 1, &state),
        .dgain = take_poisoned(D * 4),
        .dbias = attr->centered ? take_poisoned(D * 4) : NULL,
    };
    backward_arrays cut = whole;
    cut.dx = take_poisoned(bytes);
    cut.dgain = take_poisoned(D * 4);
    cut.dbias = attr->centered ? take_poisoned(D * 4) : NULL;
    run_calls(kernels, whole, attr, rows, rows, dtype, 1);
    run_calls(kernels, cut, attr, rows, call_rows, dtype, threads);
    assert_same_bits(cut.dx, whole.dx, bytes);
    assert_same_bits(cut.dgain, whole.dgain, D * 4);
    if (attr->centered) assert_same_bits(cut.dbias, whole.dbias, D * 4);
    for (int64_t c = 0; c < D; c++) assert_false(isnan(whole.dgain[c]));
    release_all();
}

static void threads_and_splits_change_no_bit(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t threads = 1; threads <= THREADS_MOST; threads++)
        for (int32_t k = 0; k < 2 * SHAPE_COUNT; k++) {
            const hr_dtype dtype = activations[k & 1];
            compare_splits(&kernels, 512, 256, 512, k / 2, dtype, threads);
            compare_splits(&kernels, 512, 256, 64, k / 2, dtype, threads);
            compare_splits(&kernels, 512, 256, 192, k / 2, dtype, threads);
            compare_splits(&kernels, 505, 101, 101, k / 2, dtype, threads);
            compare_splits(&kernels, 505, 101, 202, k / 2, dtype, threads);
            compare_splits(&kernels, 60, 5, 15, k / 2, dtype, threads);
        }
}

/* Groups are rows of the forward pass: the result does not depend on which thread computes a group,
 * even if a share ends within a row. */
static void groups_are_normalised_as_separate_rows(uint32_t mask)
{
    enum { ROWS = 5, D = 12 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t k = 0; k < 2 * SHAPE_COUNT; k++) {
        uint64_t state = start(SEED);
        hr_norm_attr attr = *attr_of(D, k / 2, 64);
        const hr_dtype dtype = activations[k & 1];
        const int64_t groups = ROWS * attr.groups, stats = hr_norm_stats(&attr);
        const int64_t bytes = groups * D * hr_dtype_bytes(dtype), stat_bytes = groups * stats * 4;
        void *x = take_random(groups * D, dtype, 1, &state), *y = take_poisoned(bytes);
        float *gain = take_random(D, HR_F32, 1, &state), *stat = take_poisoned(stat_bytes);
        void *y_apart = take_poisoned(bytes), *stat_apart = take_poisoned(stat_bytes);
        hr_call call = { .in = { x, gain },
                         .out = { y, stat },
                         .attr = &attr,
                         .kernels = &kernels,
                         .rows = ROWS,
                         .dtype = dtype };
        run_threads(&call, hr_norm_run, 1, THREADS_MOST);
        attr.groups = 1;
        call.rows = groups;
        call.out[0] = y_apart;
        call.out[1] = stat_apart;
        run_threads(&call, hr_norm_run, 1, 1);
        assert_same_bits(y, y_apart, bytes);
        assert_same_bits(stat, stat_apart, stat_bytes);
        release_all();
    }
}

/* Any split is allowed; the sums then agree up to rounding, and the scratch suffices. */
static void any_split_fits_in_its_scratch(void **unused)
{
    (void)unused;
    hr_kernels kernels;
    hr_kernels_fill(&kernels, 0);
    const int64_t D = 2;
    for (int64_t T = 1; T < 200; T += 13)
        for (int64_t rows = 1; rows < 300; rows += 23)
            for (int64_t first = 0; first < 2 * T; first += 7) {
                uint64_t state = start(SEED);
                const hr_norm_attr *attr = attr_of(D, (int32_t)(first % SHAPE_COUNT), T);
                const int64_t groups = rows * attr->groups, stats = hr_norm_stats(attr);
                float sums[2][2] = { { NAN, NAN }, { NAN, NAN } };
                float *dy = take_random(groups * D, HR_F32, 1, &state);
                float *stat = take_random(groups * stats, HR_F32, 1, &state);
                hr_call call = { .in = { dy, dy, stat, take_random(D, HR_F32, 1, &state) },
                                 .out = { dy, sums[0], attr->centered ? sums[1] : NULL },
                                 .attr = attr,
                                 .kernels = &kernels,
                                 .rows = rows,
                                 .row_first = first,
                                 .clear = 6 };
                double dgain = 0, dbias = 0;
                for (int64_t r = 0; r < groups; r++) {
                    const double mean = attr->centered ? stat[2 * r] : 0;
                    dgain += dy[r * D] * (dy[r * D] - mean) * stat[(r + 1) * stats - 1];
                    dbias += dy[r * D];
                }
                call.scratch = take_poisoned(hr_norm_bwd_cpu.scratch_bytes(call.attr, rows, 1));
                run_threads(&call, hr_norm_bwd_run, 2, 1);
                assert_true(fabs(sums[0][0] - dgain) < 1e-3);
                if (attr->centered) assert_true(fabs(sums[1][0] - dbias) < 1e-3);
                release_all();
            }
}

/* A block of 64 tokens has one sum of D, or two, for any number of groups. */
static void scratch_has_the_size_of_the_block_sums(void **unused)
{
    (void)unused;
    const int64_t D = 20, T = 130, rows = 2 * T + 65, blocks = 3 + 3 + 2 + 2;
    for (int32_t shape = 0; shape < SHAPE_COUNT; shape++)
        for (int32_t threads = 1; threads <= THREADS_MOST; threads++)
            assert_int_equal(hr_norm_bwd_cpu.scratch_bytes(attr_of(D, shape, T), rows, threads),
                             blocks * D * 4 * (shapes[shape].centered ? 2 : 1));
}

enum { ROWS = 5, WIDTH = 11, MOST = ROWS * WIDTH * 3 };

/* The equations of norm.h in double. */
typedef struct {
    double x[MOST], gain[WIDTH], bias[WIDTH], weight[MOST];
} operands;

static void expect(const operands *o, const hr_norm_attr *attr, double y[MOST])
{
    for (int64_t g = 0; g < ROWS * attr->groups; g++) {
        const double *x = o->x + g * WIDTH;
        double mean = 0, square = 0;
        for (int32_t c = 0; c < WIDTH; c++) mean += x[c] / WIDTH;
        if (!attr->centered) mean = 0;
        for (int32_t c = 0; c < WIDTH; c++) square += (x[c] - mean) * (x[c] - mean) / WIDTH;
        for (int32_t c = 0; c < WIDTH; c++)
            y[g * WIDTH + c] = (x[c] - mean) / sqrt(square + attr->eps) * o->gain[c] + o->bias[c];
    }
}

static double objective(const operands *o, const hr_norm_attr *attr)
{
    double y[MOST], sum = 0;
    expect(o, attr, y);
    for (int64_t i = 0; i < ROWS * attr->groups * WIDTH; i++) sum += o->weight[i] * y[i];
    return sum;
}

static void assert_slopes(operands *o, const hr_norm_attr *attr, double *place, const float *got,
                          int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const double kept = place[i], step = 1e-5;
        place[i] = kept + step;
        double slope = objective(o, attr);
        place[i] = kept - step;
        slope = (slope - objective(o, attr)) / (2 * step);
        place[i] = kept;
        if (fabs(slope - got[i]) > 2e-6 * (1 + fabs(slope)))
            fail_msg("%lld of %lld: %.9g, slope %.9g", (long long)i, (long long)count, got[i],
                     slope);
    }
}

static void gradient_of_shape(int32_t shape)
{
    hr_kernels ref;
    hr_kernels_fill(&ref, 0);
    uint64_t state = start(SEED);
    const hr_norm_attr *attr = attr_of(WIDTH, shape, 3);
    const int64_t groups = ROWS * attr->groups, count = groups * WIDTH;
    float *x = take_random(count, HR_F32, 1, &state);
    float *gain = take_random(WIDTH, HR_F32, 1, &state);
    float *bias = take_random(WIDTH, HR_F32, 1, &state);
    float *weight = take_random(count, HR_F32, 1, &state);
    float *y = take_poisoned(count * 4), *dx = take_poisoned(count * 4);
    float *stat = take_poisoned(groups * hr_norm_stats(attr) * 4);
    float dgain[WIDTH], dbias[WIDTH];
    operands o = { .bias = { 0 } };
    double y_expected[MOST];
    for (int64_t i = 0; i < count; i++) o.x[i] = x[i];
    for (int64_t i = 0; i < count; i++) o.weight[i] = weight[i];
    for (int32_t c = 0; c < WIDTH; c++) o.gain[c] = gain[c];
    for (int32_t c = 0; c < WIDTH && attr->centered; c++) o.bias[c] = bias[c];

    hr_call call = { .in = { x, gain, attr->centered ? bias : NULL },
                     .out = { y, stat },
                     .attr = attr,
                     .kernels = &ref,
                     .rows = ROWS,
                     .clear = 6 };
    run_threads(&call, hr_norm_run, 1, 1);
    expect(&o, attr, y_expected);
    for (int64_t i = 0; i < count; i++) assert_true(fabs(y[i] - y_expected[i]) < 1e-6);
    memcpy(call.in, (void *[]){ weight, x, stat, gain, NULL }, 5 * sizeof(void *));
    memcpy(call.out, (void *[]){ dx, dgain, attr->centered ? dbias : NULL }, 3 * sizeof(void *));
    call.scratch = take_poisoned(hr_norm_bwd_cpu.scratch_bytes(attr, ROWS, 1));
    run_threads(&call, hr_norm_bwd_run, 2, 1);
    assert_slopes(&o, attr, o.x, dx, count);
    assert_slopes(&o, attr, o.gain, dgain, WIDTH);
    if (attr->centered) assert_slopes(&o, attr, o.bias, dbias, WIDTH);
    release_all();
}

static void the_gradient_matches_finite_differences_of_the_equations(void **unused)
{
    (void)unused;
    for (int32_t shape = 0; shape < SHAPE_COUNT; shape++) gradient_of_shape(shape);
}

static void extreme_rows_are_normalised_correctly(uint32_t mask)
{
    enum { D = 33 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    float x[D], gain[D], bias[D], y[D], stat[2];
    const float values[] = { 0, 1e30f, -1e30f, 1e-41f, FLT_MIN, 3 };
    for (int32_t c = 0; c < D; c++) {
        gain[c] = 2;
        bias[c] = (float)c;
    }
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        for (int32_t c = 0; c < D; c++) x[c] = values[k];
        kernels.norm.fwd(x, gain, bias, y, stat, 1, attr_of(D, 0, 64), HR_F32);
        for (int32_t c = 0; c < D; c++) {
            const bool finite = isfinite(y[c]);
            assert_true(finite);
            if (fabsf(values[k]) < 1) assert_true(fabsf(y[c] - bias[c]) < 1e-4f);
        }
    }
    const float rms_values[] = { 0, 1e18f, -1e18f, 1e-41f, FLT_MIN, 3 };
    for (size_t k = 0; k < sizeof rms_values / sizeof *rms_values; k++) {
        for (int32_t c = 0; c < D; c++) x[c] = rms_values[k];
        kernels.norm.fwd(x, gain, NULL, y, stat, 1, attr_of(D, 1, 64), HR_F32);
        for (int32_t c = 0; c < D; c++) {
            const double value = rms_values[k];
            const double expected = 2 * value / sqrt(value * value + 1e-5f);
            assert_true(fabs(y[c] - expected) < 1e-5);
        }
    }
    x[D - 1] = NAN;
    for (int32_t shape = 0; shape < 2; shape++) {
        kernels.norm.fwd(x, gain, NULL, y, stat, 1, attr_of(D, shape, 64), HR_F32);
        for (int32_t c = 0; c < D; c++) assert_true(isnan(y[c]));
    }
}

/* A program with one norm of x [rows, width] with a gain of D. */
typedef struct {
    _Alignas(64) char memory[1 << 16];
    hr_region region;
    hr_program program;
    hr_builder builder;
    hr_error err;
    int32_t x, gain, bias;
} scene;

static void open_scene(scene *s, int64_t width, int64_t D, bool training)
{
    s->region = hr_region_over(s->memory, sizeof s->memory);
    assert_int_equal(
        hr_program_place(&s->region, &hr_cpu_backend, 8, 16, 4, 4, &s->program, &s->err), HR_OK);
    s->builder = (hr_builder){ .program = &s->program,
                               .dtype = HR_BF16,
                               .rows = 128,
                               .T = 64,
                               .training = training,
                               .layer = HR_NONE,
                               .err = &s->err };
    const hr_param_shape vector = { .kind = HR_PARAM_VECTOR, .K = D };
    s->gain = hr_build_param(&s->builder, vector, "gain");
    s->bias = hr_build_param(&s->builder, vector, "bias");
    s->x = hr_build_rows(&s->builder, "x", HR_BF16, width);
}

static void the_builder_counts_groups_and_saves_statistics(void **unused)
{
    (void)unused;
    static const struct {
        int64_t width, D, stat_bytes;
        bool centered, bias, training;
    } cases[] = { { 96, 96, 8, true, true, true },     { 96, 96, 8, true, false, true },
                  { 96, 96, 4, false, false, true },   { 96, 12, 32, false, false, true },
                  { 256, 128, 16, true, false, true }, { 96, 12, 0, false, false, false } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static scene s;
        open_scene(&s, cases[i].width, cases[i].D, cases[i].training);
        const int32_t bias = cases[i].bias ? s.bias : HR_NONE;
        const int32_t y = cases[i].centered
                              ? hr_build_norm(&s.builder, "y", s.x, s.gain, bias, 1e-6)
                              : hr_build_rms_norm(&s.builder, "y", s.x, s.gain, 1e-6);
        assert_int_equal(hr_build_status(&s.builder), HR_OK);
        assert_int_equal(s.program.step_count, 1);
        const hr_step *step = &s.program.steps[0];
        const hr_norm_attr *attr = (const hr_norm_attr *)step->attr;
        const hr_tensor *tensors = s.program.tensors;
        const int64_t groups = cases[i].width / cases[i].D;
        assert_int_equal(step->op, HR_OP_norm);
        assert_true(step->in[0] == s.x && step->in[1] == s.gain && step->in[2] == bias);
        assert_true(attr->D == cases[i].D && attr->groups == groups && attr->T == 64);
        assert_true(attr->centered == cases[i].centered && attr->eps == 1e-6f);
        assert_int_equal(step->out[0], y);
        assert_int_equal(tensors[y].dims[1], cases[i].width);
        assert_int_equal(tensors[y].intermediates, groups == 1 ? 1 << HR_INTERMEDIATE_NORM : 0);
        if (cases[i].training)
            assert_int_equal(tensors[step->out[1]].row_bytes, cases[i].stat_bytes);
        else assert_int_equal(step->out[1], HR_NONE);
    }
}

static void the_derivative_has_the_attributes_and_no_bias_without_one(void **unused)
{
    (void)unused;
    for (int32_t centered = 0; centered < 2; centered++) {
        static scene s;
        int32_t gradient[16], param[16];
        for (int32_t t = 0; t < 16; t++) gradient[t] = param[t] = HR_NONE;
        open_scene(&s, 96, 12, true);
        param[s.gain] = 0;
        param[s.bias] = 1;
        const int32_t y = centered ? hr_build_norm(&s.builder, "y", s.x, s.gain, s.bias, 1e-6)
                                   : hr_build_rms_norm(&s.builder, "y", s.x, s.gain, 1e-6);
        gradient[y] = hr_build_rows(&s.builder, "dy", HR_BF16, 96);
        hr_derive derive = { .builder = &s.builder, .gradient = gradient, .param = param };
        assert_int_equal(hr_op_table[HR_OP_norm]->derivative(&derive, 0, &s.err), HR_OK);
        assert_int_equal(s.program.step_count, 2);
        const hr_step *forward = &s.program.steps[0], *step = &s.program.steps[1];
        const hr_tensor *tensors = s.program.tensors;
        assert_int_equal(step->op, HR_OP_norm_bwd);
        assert_memory_equal(step->attr, forward->attr, sizeof(hr_norm_attr));
        assert_true(step->in[0] == gradient[y] && step->in[1] == s.x);
        assert_true(step->in[2] == forward->out[1] && step->in[3] == s.gain);
        assert_int_equal(step->out[0], gradient[s.x]);
        assert_int_equal(tensors[step->out[0]].dims[1], 96);
        assert_int_equal(tensors[step->out[1]].dims[0], 12);
        assert_int_equal(step->out[2] != HR_NONE, centered);
    }
}

ON_RUNGS(forward_agrees_with_the_reference)
ON_RUNGS(backward_agrees_with_the_reference)
ON_RUNGS(threads_and_splits_change_no_bit)
ON_RUNGS(groups_are_normalised_as_separate_rows)
ON_RUNGS(extreme_rows_are_normalised_correctly)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(forward_agrees_with_the_reference),
        TEST_RUNGS(backward_agrees_with_the_reference),
        TEST_RUNGS(threads_and_splits_change_no_bit),
        TEST_RUNGS(groups_are_normalised_as_separate_rows),
        TEST_RUNGS(extreme_rows_are_normalised_correctly),
        cmocka_unit_test(any_split_fits_in_its_scratch),
        cmocka_unit_test(scratch_has_the_size_of_the_block_sums),
        cmocka_unit_test(the_gradient_matches_finite_differences_of_the_equations),
        cmocka_unit_test(the_builder_counts_groups_and_saves_statistics),
        cmocka_unit_test(the_derivative_has_the_attributes_and_no_bias_without_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
