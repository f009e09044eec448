/* SPDX-License-Identifier: Apache-2.0 */
/* Adafactor follows transformers, and its definition in double in every layout; padding stays zero,
 * threads change no bit, and a broken gradient stays visible. */
#include "base/residual.h"
#include "ops/adafactor/adafactor.h"
#include "ops/adafactor/adafactor_scratch.h"
#include "ops/cpu.h"
#include "ops/passes.h"
#include "support/oracle.h"

enum { SEED = 1804, STEPS = 4, PHASES = 4, SETS = 3 };

static const hr_layout layouts[] = { HR_ROWS, HR_PANEL, HR_PANEL_PAIR };
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* The arrays of one matrix; m and weight may be null. */
typedef struct {
    float *gradient, *master, *R, *C, *m;
    hr_bf16 *weight;
} arrays_of;

static int64_t stored(const hr_adafactor_attr *attr)
{
    return hr_layout_elements((hr_layout)attr->layout, attr->K, attr->N);
}

static int64_t place(const hr_adafactor_attr *attr, int64_t i)
{
    return hr_layout_index((hr_layout)attr->layout, attr->K, attr->N, i / attr->N, i % attr->N);
}

static float *zeros(int64_t count)
{
    return memset(take(count * 4), 0, (size_t)count * 4);
}

static arrays_of take_matrix(const hr_adafactor_attr *attr, bool copy)
{
    const int64_t count = stored(attr);
    return (arrays_of){ .gradient = zeros(count),
                        .master = zeros(count),
                        .R = zeros(attr->K),
                        .C = zeros(attr->N),
                        .m = attr->update.beta1 > 0 ? zeros(count) : NULL,
                        .weight = copy ? take_poisoned(count * 2) : NULL };
}

static void step(const hr_kernels *kernels, const hr_adafactor_attr *attr, arrays_of a,
                 double scale, double lr, int64_t clock, int32_t threads)
{
    double norm_scale[2] = { 0, scale };
    hr_adafactor_attr late = *attr; /* as if it trained from step 1,000 on */
    late.update.missed = 1000;
    const int64_t bytes = hr_adafactor_cpu.scratch_bytes(attr, 0, threads);
    hr_guard guard;
    hr_call call = { .in = { a.gradient, scale == 1 ? NULL : norm_scale, &lr },
                     .out = { a.master, a.R, a.C, a.m, a.weight },
                     .attr = &late,
                     .kernels = kernels,
                     .clock = late.update.missed + clock };
    call.scratch = memset(hr_guard_open(&guard, hr_round_up(bytes, 64)), 0xff, (size_t)bytes);
    run_threads(&call, hr_adafactor_run, PHASES, threads);
    hr_guard_close(&guard);
}

/* The same with a bf16 master; residual may be null. */
static void step_stored(const hr_kernels *kernels, hr_adafactor_attr attr, arrays_of a,
                        hr_bf16 *weight, uint16_t *residual, int64_t clock, int32_t threads)
{
    double norm_scale[2] = { 0, 0.75 }, lr = 0.1;
    hr_guard guard;
    attr.update.master = residual ? HR_MASTER_RESIDUAL : HR_MASTER_ROUNDED;
    const int64_t bytes = hr_adafactor_cpu.scratch_bytes(&attr, 0, threads);
    hr_call call = { .in = { a.gradient, norm_scale, &lr },
                     .out = { weight, a.R, a.C, a.m, NULL, residual },
                     .attr = &attr,
                     .kernels = kernels,
                     .clock = clock };
    call.scratch = memset(hr_guard_open(&guard, hr_round_up(bytes, 64)), 0xff, (size_t)bytes);
    run_threads(&call, hr_adafactor_run, PHASES, threads);
    hr_guard_close(&guard);
}

/* ---- against transformers (tests/oracles/make_optimizers.py) */

static const float *golden_of(const oracle_file *golden, const char *set, const char *what,
                              const char *tensor, int64_t *count)
{
    char name[64];
    int64_t bytes = 0;
    snprintf(name, sizeof name, "%s%s%s.%s", set, *set ? "." : "", what, tensor);
    const float *values = oracle_tensor(golden, "", name, &bytes);
    assert_non_null(values);
    *count = bytes / 4;
    return values;
}

static void assert_near(const float *got, const float *expected, int64_t count, float tolerance)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(got[i] - expected[i]) <= tolerance))
            fail_msg("element %lld is %.9g, not %.9g", (long long)i, (double)got[i],
                     (double)expected[i]);
}

static void follow(const hr_kernels *kernels, const oracle_file *golden, const json_t *rates,
                   const char *set, const char *tensor, hr_adafactor_attr attr)
{
    int64_t count = 0, all = 0, bytes = 0;
    const double *scales = oracle_tensor(golden, "", "scales", &bytes);
    const float *start_of = golden_of(golden, "", "start", tensor, &count);
    const float *gradients = golden_of(golden, "", "gradients", tensor, &all);
    const float *after = golden_of(golden, set, "after", tensor, &all);
    const arrays_of a = take_matrix(&attr, false);
    assert_int_equal(count, attr.K * attr.N);
    assert_int_equal(all, count * (int64_t)json_array_size(rates));
    for (int64_t i = 0; i < count; i++) a.master[place(&attr, i)] = start_of[i];
    for (int64_t t = 0; t * count < all; t++) {
        double scale;
        memcpy(&scale, scales + t, sizeof scale);
        for (int64_t i = 0; i < count; i++) a.gradient[place(&attr, i)] = gradients[t * count + i];
        step(kernels, &attr, a, scale, json_number_value(json_array_get(rates, (size_t)t)), t, 2);
        for (int64_t i = 0; i < count; i++)
            assert_near(&a.master[place(&attr, i)], &after[t * count + i], 1, 1e-5f);
    }
    const float *second = golden_of(golden, set, attr.K == 1 ? "second" : "columns", tensor, &all);
    assert_int_equal(all, attr.N);
    assert_near(a.C, second, all, 2e-9f);
    if (attr.K > 1) {
        const float *rows = golden_of(golden, set, "rows", tensor, &all);
        assert_int_equal(all, attr.K);
        assert_near(a.R, rows, all, 2e-9f);
    }
    if (!a.m) return;
    const float *moment = golden_of(golden, set, "moment", tensor, &all);
    for (int64_t i = 0; i < count; i++) assert_near(&a.m[place(&attr, i)], moment + i, 1, 1e-7f);
}

static void weights_and_states_follow_transformers(uint32_t mask)
{
    static const char *const sets[SETS] = { "fixed", "relative", "moment" };
    hr_kernels kernels;
    oracle_file golden = { 0 };
    hr_kernels_fill(&kernels, mask);
    json_t *json = json_load_file(HR_ORACLES "/optimizers/adafactor/golden.json", 0, NULL);
    assert_true(json &&
                oracle_open(&golden, HR_ORACLES "/optimizers/adafactor/golden.safetensors"));
    for (int32_t s = 0; s < SETS; s++) {
        const json_t *set = json_object_get(json_object_get(json, "sets"), sets[s]);
        const json_t *rates = json_object_get(set, "lr");
        hr_adafactor_attr attr = {
            .K = 12,
            .N = 25,
            .eps1 = json_number_value(json_object_get(json, "eps1")),
            .eps2 = json_number_value(json_object_get(json, "eps2")),
            .clip_threshold = json_number_value(json_object_get(json, "clip_threshold")),
            .decay_rate = json_number_value(json_object_get(json, "decay_rate")),
            .update = { .beta1 = json_number_value(json_object_get(set, "beta1")),
                        .decay = json_number_value(
                            json_object_get(json_object_get(set, "weight_decay"), "w")),
                        .lr_scale = 1 },
            .scale_parameter = json_is_true(json_object_get(set, "scale_parameter")),
            .relative_step = json_is_true(json_object_get(set, "relative_step")),
        };
        for (int32_t l = 0; l < LAYOUTS; l++) {
            attr.layout = (uint8_t)layouts[l];
            attr.update.elements = stored(&attr);
            follow(&kernels, &golden, rates, sets[s], "w", attr);
            release_all();
        }
        attr.K = 1;
        attr.N = 37;
        attr.layout = HR_ROWS;
        attr.update.decay = 0;
        attr.update.elements = stored(&attr);
        follow(&kernels, &golden, rates, sets[s], "v", attr);
        release_all();
    }
    json_decref(json);
    oracle_close(&golden);
}

/* ---- against the definition */

/* The same arrays in double, row-major. */
typedef struct {
    double *w, *R, *C, *m, *u;
} exact;

static exact take_exact(const hr_adafactor_attr *attr)
{
    const int64_t bytes = attr->K * attr->N * 8;
    return (exact){ memset(take(bytes), 0, (size_t)bytes), memset(take(bytes), 0, (size_t)bytes),
                    memset(take(bytes), 0, (size_t)bytes), memset(take(bytes), 0, (size_t)bytes),
                    memset(take(bytes), 0, (size_t)bytes) };
}

static void average(double *state, int64_t count, double keep, double eps)
{
    for (int64_t i = 0; i < count; i++) state[i] = keep * state[i] + (1 - keep) * eps;
}

static void step_in_double(const hr_adafactor_attr *attr, arrays_of a, exact e, double scale,
                           double lr, double t)
{
    const int64_t K = attr->K, N = attr->N;
    const double keep = 1 - pow(t, attr->decay_rate);
    double mean = 0, moved = 0, size = 0;
    average(e.R, K, keep, attr->eps1);
    average(e.C, N, keep, attr->eps1);
    for (int64_t i = 0; i < K * N; i++) {
        const double g = scale * a.gradient[place(attr, i)];
        e.R[i / N] += (1 - keep) * g * g / (double)N;
        e.C[i % N] += (1 - keep) * g * g / (double)K;
        size += e.w[i] * e.w[i] / (double)(K * N);
    }
    for (int64_t k = 0; k < K; k++) mean += e.R[k] / (double)K;
    for (int64_t i = 0; i < K * N; i++) {
        e.u[i] = scale * a.gradient[place(attr, i)] / sqrt(e.R[i / N] * e.C[i % N] / mean);
        moved += e.u[i] * e.u[i] / (double)(K * N);
    }
    double rate = attr->update.lr_scale * (attr->relative_step ? fmin(lr, 1 / sqrt(t)) : lr);
    if (attr->scale_parameter) rate *= fmax(attr->eps2, sqrt(size));
    for (int64_t i = 0; i < K * N; i++) {
        const double u = rate * e.u[i] / fmax(1, sqrt(moved) / attr->clip_threshold);
        e.m[i] = attr->update.beta1 * e.m[i] + (1 - attr->update.beta1) * u;
        e.w[i] = e.w[i] * (1 - rate * attr->update.decay) - e.m[i];
    }
}

static void compare(const hr_kernels *kernels, hr_adafactor_attr attr, bool copy, int32_t threads,
                    uint64_t *state)
{
    const arrays_of a = take_matrix(&attr, copy);
    const exact e = take_exact(&attr);
    const int64_t count = attr.K * attr.N;
    for (int64_t i = 0; i < count; i++) e.w[i] = a.master[place(&attr, i)] = (float)draw(state);
    for (int64_t t = 1; t <= STEPS; t++) {
        for (int64_t i = 0; i < count; i++)
            a.gradient[place(&attr, i)] = (float)(draw(state) * (1 + (double)(i / attr.N % 7)));
        step_in_double(&attr, a, e, 0.75, 0.9, (double)t);
        step(kernels, &attr, a, 0.75, 0.9, t - 1, threads);
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = place(&attr, i);
        if (!(fabs(a.master[at] - e.w[i]) <= 3e-5 * (1 + fabs(e.w[i]))))
            fail_msg("[%lld, %lld] element %lld is %.9g, not %.9g", (long long)attr.K,
                     (long long)attr.N, (long long)i, (double)a.master[at], e.w[i]);
        if (copy) assert_int_equal(a.weight[at], hr_bf16_from_f32(a.master[at]));
        a.master[at] = a.gradient[at] = 0;
        if (a.m) a.m[at] = 0;
    }
    for (int64_t i = 0; i < stored(&attr); i++) /* padding */
        assert_true(a.master[i] == 0 && (!a.m || a.m[i] == 0));
    release_all();
}

static const int64_t shapes[][2] = { { 1, 1 },   { 1, 40 },   { 40, 1 },   { 16, 16 },  { 17, 33 },
                                     { 35, 15 }, { 64, 100 }, { 600, 20 }, { 9001, 17 } };
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const hr_adafactor_attr plain = { .eps1 = 1e-30,
                                         .eps2 = 1e-3,
                                         .clip_threshold = 0.9,
                                         .decay_rate = -0.8,
                                         .update = { .decay = 0.1, .lr_scale = 0.5 } };

static hr_adafactor_attr attr_of(int32_t shape, int32_t layout)
{
    hr_adafactor_attr attr = plain;
    attr.K = shapes[shape][0];
    attr.N = shapes[shape][1];
    attr.layout = (uint8_t)layouts[layout];
    attr.update.elements = stored(&attr);
    return attr;
}

static void updates_follow_their_definition(uint32_t mask)
{
    hr_kernels kernels;
    uint64_t state = start(SEED);
    hr_kernels_fill(&kernels, mask);
    for (int32_t s = 0; s < SHAPES; s++)
        for (int32_t l = 0; l < LAYOUTS; l++) {
            hr_adafactor_attr attr = attr_of(s, l);
            compare(&kernels, attr, false, 1, &state);
            attr.relative_step = true;
            attr.update.beta1 = 0.8;
            compare(&kernels, attr, true, 3, &state);
            attr.scale_parameter = true;
            attr.update.beta1 = 0;
            compare(&kernels, attr, true, 2, &state);
        }
}

static void threads_change_no_bit(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t s = 0; s < SHAPES; s++)
        for (int32_t l = 0; l < LAYOUTS; l++) {
            hr_adafactor_attr attr = attr_of(s, l);
            attr.scale_parameter = attr.relative_step = true;
            attr.update.beta1 = 0.9;
            arrays_of kept = { 0 };
            for (int32_t threads = 1; threads <= THREADS_MOST; threads++) {
                const arrays_of a = take_matrix(&attr, true);
                uint64_t state = start(SEED);
                memset(a.weight, 0, (size_t)stored(&attr) * 2);
                for (int64_t i = 0; i < attr.K * attr.N; i++) {
                    a.master[place(&attr, i)] = (float)draw(&state);
                    a.gradient[place(&attr, i)] = (float)draw(&state);
                }
                for (int64_t t = 0; t < 2; t++) step(&kernels, &attr, a, 1, 0.1, t, threads);
                if (threads == 1) kept = a;
                assert_same_bits(a.master, kept.master, stored(&attr) * 4);
                assert_same_bits(a.m, kept.m, stored(&attr) * 4);
                assert_same_bits(a.weight, kept.weight, stored(&attr) * 2);
                assert_same_bits(a.R, kept.R, attr.K * 4);
                assert_same_bits(a.C, kept.C, attr.N * 4);
            }
            release_all();
        }
}

/* With residuals a bf16 master has the bits of an fp32 one; alone it is near. */
static void stored_masters_are_updated_as_fp32(uint32_t mask)
{
    hr_kernels kernels;
    uint64_t state = start(SEED);
    hr_kernels_fill(&kernels, mask);
    for (int32_t i = 0; i < 4 * SHAPES; i++) {
        hr_adafactor_attr attr = attr_of(i / 4, 2);
        attr.update.beta1 = i & 1 ? 0.8 : 0;
        attr.scale_parameter = i & 2;
        const arrays_of whole = take_matrix(&attr, true), kept = take_matrix(&attr, false);
        float *before = zeros(stored(&attr));
        hr_bf16 *weight = memset(take(stored(&attr) * 2), 0, (size_t)stored(&attr) * 2);
        const int64_t halves = hr_residual_halves(stored(&attr), false);
        const hr_residual residual = { .codes = memset(take(halves * 2), 0, (size_t)halves * 2) };
        for (int64_t e = 0; e < attr.K * attr.N; e++) {
            const int64_t at = place(&attr, e);
            whole.master[at] = (float)draw(&state);
            whole.gradient[at] = kept.gradient[at] = (float)draw(&state);
            hr_residual_put(weight, residual, at, whole.master[at]);
        }
        hr_residual_finish(weight, residual, stored(&attr));
        for (int64_t t = 0; t < 2; t++) {
            step(&kernels, &attr, whole, 0.75, 0.1, t, 1);
            step_stored(&kernels, attr, kept, weight, residual.codes, t, 3);
        }
        for (int64_t e = 0; e < attr.K * attr.N; e++) {
            const int64_t at = place(&attr, e);
            const float value = hr_residual_value(weight, residual, at),
                        whole_value = whole.master[at];
            assert_same_bits(&value, &whole_value, 4);
            assert_int_equal(weight[at], whole.weight[at]);
            weight[at] = whole.weight[at];
            before[at] = whole.master[at];
        }
        step(&kernels, &attr, whole, 0.75, 0.1, 2, 2);
        step_stored(&kernels, attr, kept, weight, NULL, 2, 2);
        for (int64_t e = 0; e < attr.K * attr.N; e++) {
            const int64_t at = place(&attr, e);
            const double got = (double)hr_bf16_to_f32(weight[at]), whole_value = whole.master[at];
            const double size = fabs(whole_value) + fabs((double)before[at]);
            assert_true(fabs(got - whole_value) <= size / 100);
        }
        release_all();
    }
}

/* Whatever the size of a gradient, the root mean square of a first step is the rate; NaN and
 * infinity stay visible. */
static void extreme_gradients_move_weights_by_the_rate(uint32_t mask)
{
    static const double sizes[] = { 1e-12, 1e-6, 1, 1e6, 1e15 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    hr_adafactor_attr attr = { .K = 30,
                               .N = 20,
                               .layout = HR_PANEL_PAIR,
                               .eps1 = 1e-30,
                               .clip_threshold = 1e-3,
                               .decay_rate = -0.8,
                               .update.lr_scale = 1 };
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        const arrays_of a = take_matrix(&attr, false);
        uint64_t state = start(SEED);
        double moved = 0;
        for (int64_t i = 0; i < attr.K * attr.N; i++)
            a.gradient[place(&attr, i)] = (float)(sizes[n] * (2 + draw(&state)));
        step(&kernels, &attr, a, 1, 10, 0, 2);
        for (int64_t i = 0; i < attr.K * attr.N; i++)
            moved += pow(a.master[place(&attr, i)], 2) / (double)(attr.K * attr.N);
        assert_true(fabs(sqrt(moved) - 0.01) <= 1e-6);
        a.gradient[place(&attr, 77)] = n % 2 ? NAN : INFINITY;
        step(&kernels, &attr, a, 1, 10, 1, 2);
        assert_true(isnan(a.master[place(&attr, 77)]));
        release_all();
    }
}

ON_RUNGS(weights_and_states_follow_transformers)
ON_RUNGS(updates_follow_their_definition)
ON_RUNGS(threads_change_no_bit)
ON_RUNGS(stored_masters_are_updated_as_fp32)
ON_RUNGS(extreme_gradients_move_weights_by_the_rate)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(weights_and_states_follow_transformers),
        TEST_RUNGS(updates_follow_their_definition),
        TEST_RUNGS(threads_change_no_bit),
        TEST_RUNGS(stored_masters_are_updated_as_fp32),
        TEST_RUNGS(extreme_gradients_move_weights_by_the_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
