/* SPDX-License-Identifier: Apache-2.0 */
/* The update: sums of squares are bit-identical with every instruction set; AdamW, Adam, SGD
 * and Lion against their definitions in double, over several steps, and Lion against PyTorch;
 * padding stays zero. */
#include "ops/cpu.h"
#include "ops/passes.h"
#include "ops/update/update.h"
#include "support/oracle.h"

enum { SEED = 606, STEPS = 5 };
enum { ADAMW, ADAM, SGD, LION, KINDS };

static hr_run_fn *const runs[KINDS] = { hr_adamw_run, hr_adamw_run, hr_sgd_run, hr_lion_run };

/* SGD and Lion have one state. */
static bool has_one_state(int32_t kind)
{
    return kind >= SGD;
}

static double sumsq_of(const hr_kernels *kernels, float *gradient, int64_t elements,
                       int32_t threads)
{
    const hr_sumsq_attr attr = { elements };
    double part = NAN;
    hr_call call = { .in = { gradient },
                     .out = { &part },
                     .scratch = take_poisoned(hr_sumsq_cpu.scratch_bytes(&attr, 0, threads)),
                     .attr = &attr,
                     .kernels = kernels,
                     .clear = 1 };
    run_threads(&call, hr_sumsq_run, 2, threads);
    return part;
}

static void sums_of_squares_have_the_bits_of_the_reference(uint32_t mask)
{
    hr_kernels fast, ref;
    hr_kernels_fill(&fast, mask);
    hr_kernels_fill(&ref, 0);
    const int64_t long_sizes[] = { 0, 4095, 4096, 4097, 3 * 4096 + 17, 100003 };
    for (size_t s = 0; s < SIZE_COUNT + sizeof long_sizes / sizeof *long_sizes; s++) {
        uint64_t state = start(SEED);
        const int64_t elements = s < SIZE_COUNT ? odd_sizes[s] : long_sizes[s - SIZE_COUNT];
        float *gradient = take_random(elements, HR_F32, 1e-3, &state);
        const double expected = sumsq_of(&ref, gradient, elements, 1);
        long double exact = 0;
        for (int64_t i = 0; i < elements; i++) exact += (long double)gradient[i] * gradient[i];
        assert_true(fabsl(expected - exact) <= 1e-13L * exact);
        for (int32_t threads = 1; threads <= THREADS_MOST; threads++) {
            const double got = sumsq_of(&fast, gradient, elements, threads);
            assert_same_bits(&got, &expected, sizeof got);
        }
        release_all();
    }
}

static void sums_of_squares_of_extreme_gradients_are_correct(uint32_t mask)
{
    enum { ELEMENTS = 33 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    float gradient[ELEMENTS] = { 1e30f, -1e-41f };
    const double expected = (double)gradient[0] * gradient[0];
    assert_true(fabs(sumsq_of(&kernels, gradient, ELEMENTS, 1) - expected) < 1e-9 * expected);
    gradient[ELEMENTS - 1] = NAN;
    assert_true(isnan(sumsq_of(&kernels, gradient, ELEMENTS, 1)));
    release_all();
}

static void clipping_scales_exactly_to_the_limit(void **unused)
{
    (void)unused;
    const struct {
        double parts[3], limit, norm, scale;
    } cases[] = { { { 9, 0, 16 }, 1, 5, 1 / (5 + 1e-6) },
                  { { 9, 0, 16 }, 10, 5, 1 },
                  { { 9, 0, 16 }, 0, 5, 1 },
                  { { 9, 0, 16 }, -1, 5, 1 },
                  { { 0, 0, 0 }, 1, 0, 1 },
                  { { INFINITY, 0, 0 }, 1, INFINITY, 0 } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const hr_clip_attr attr = { 3, cases[k].limit };
        double norm_scale[2] = { NAN, NAN };
        hr_call call = { .in = { (void *)cases[k].parts }, .out = { norm_scale }, .attr = &attr };
        run_threads(&call, hr_clip_run, 1, 3);
        assert_true(norm_scale[0] == cases[k].norm);
        assert_true(norm_scale[1] == cases[k].scale);
    }
    double part = NAN, norm_scale[2];
    const hr_clip_attr attr = { 1, 1 };
    hr_call call = { .in = { &part }, .out = { norm_scale }, .attr = &attr };
    run_threads(&call, hr_clip_run, 1, 1);
    assert_true(isnan(norm_scale[0]) && isnan(norm_scale[1]));
}

typedef struct {
    float *gradient, *master, *m, *v;
    hr_bf16 *weight;
} update_arrays;

static update_arrays take_arrays(int64_t elements)
{
    uint64_t state = start(SEED + (uint64_t)elements);
    return (update_arrays){ .gradient = take_random(elements, HR_F32, 1e-2, &state),
                            .master = take_random(elements, HR_F32, 1, &state),
                            .m = take(elements * 4),
                            .v = take(elements * 4),
                            .weight = take_poisoned(elements * 2) };
}

static hr_call call_of(const hr_kernels *kernels, const hr_update_attr *attr, update_arrays a,
                       double *norm_scale, double *lr, int32_t kind)
{
    const bool one = has_one_state(kind);
    hr_call call = { .in = { a.gradient, norm_scale, lr },
                     .out = { a.master, a.m, one ? (void *)a.weight : a.v, one ? NULL : a.weight },
                     .attr = attr,
                     .kernels = kernels };
    return call;
}

/* One step of the definition in ops/update/update.h, on doubles. */
static void step_in_double(const hr_update_attr *attr, double lr, double scale, double t,
                           int32_t kind, float gradient, double *w, double *m, double *v)
{
    const bool pull = kind == SGD || kind == ADAM;
    const double g = scale * gradient + (pull ? attr->decay * *w : 0);
    if (kind == LION) {
        const double c = attr->beta1 * *m + (1 - attr->beta1) * g;
        *m = attr->beta2 * *m + (1 - attr->beta2) * g;
        *w = *w * (1 - lr * attr->decay) - lr * ((c > 0) - (c < 0));
        return;
    }
    if (kind == SGD) {
        *m = attr->beta1 * *m + g;
        *w -= lr * *m;
        return;
    }
    *m = attr->beta1 * *m + (1 - attr->beta1) * g;
    *v = attr->beta2 * *v + (1 - attr->beta2) * g * g;
    const double root = sqrt(*v / (1 - pow(attr->beta2, t)));
    *w = *w * (pull ? 1 : 1 - lr * attr->decay) -
         lr * (*m / (1 - pow(attr->beta1, t))) / (root + attr->eps);
}

/* Gradients change sign and magnitude from step to step. */
static void compare_definition(const hr_kernels *kernels, int64_t elements, int32_t kind,
                               bool with_copy, int32_t threads)
{
    const hr_update_attr attr = { .elements = elements,
                                  .beta1 = 0.9,
                                  .beta2 = 0.95,
                                  .eps = 1e-8,
                                  .decay = 0.1,
                                  .lr_scale = 0.625,
                                  .decoupled = kind == ADAMW,
                                  .missed = elements };
    update_arrays a = take_arrays(elements);
    if (!with_copy) a.weight = NULL;
    double norm_scale[2] = { 7, 0.37 }, lr = 1e-3, *w = take(elements * 8), *m = take(elements * 8);
    double *v = take(elements * 8);
    for (int64_t i = 0; i < elements; i++) w[i] = a.master[i];
    for (int64_t step = 0; step < STEPS; step++) {
        hr_call call = call_of(kernels, &attr, a, norm_scale, &lr, kind);
        call.clock = attr.missed + step;
        for (int64_t i = 0; i < elements; i++) {
            a.gradient[i] *= (i + step) % 3 == 0 ? -0.7f : 1.1f;
            step_in_double(&attr, attr.lr_scale * lr, norm_scale[1], (double)step + 1, kind,
                           a.gradient[i], &w[i], &m[i], &v[i]);
        }
        run_threads(&call, runs[kind], 1, threads);
        for (int64_t i = 0; i < elements; i++) {
            assert_true(fabs(a.master[i] - w[i]) <= 3e-7 * (fabs(w[i]) + 0.1));
            assert_true(fabs(a.m[i] - m[i]) <= 2e-6 * (fabs(m[i]) + 0.01));
            if (!has_one_state(kind)) assert_true(fabs(a.v[i] - v[i]) <= 2e-6 * v[i] + 1e-12);
            if (with_copy) assert_int_equal(a.weight[i], hr_bf16_from_f32(a.master[i]));
        }
    }
    release_all();
}

static void updates_follow_their_definition(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t k = 0; k < 2 * KINDS; k++) {
        for (int32_t s = 0; s < SIZE_COUNT; s++)
            compare_definition(&kernels, odd_sizes[s], k % KINDS, k / KINDS, 2);
        compare_definition(&kernels, 0, k % KINDS, k / KINDS, 2);
        compare_definition(&kernels, 3 * 4096 + 17, k % KINDS, k / KINDS, 3);
    }
}

/* 1 to 4 threads, and with 1 thread also no scale instead of a scale of 1. */
static void threads_and_a_scale_of_one_change_no_bit(uint32_t mask)
{
    enum { ELEMENTS = 5 * 4096 + 19 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    const hr_update_attr attr = { ELEMENTS, 0.9, 0.999, 1e-8, 0.01, 1, true };
    double norm_scale[2] = { 0.1, 1 }, lr = 3e-4;
    for (int32_t kind = 0; kind < KINDS; kind++) {
        update_arrays whole = take_arrays(ELEMENTS);
        hr_call call = call_of(&kernels, &attr, whole, NULL, &lr, kind);
        run_threads(&call, runs[kind], 1, 1);
        for (int32_t threads = 1; threads <= THREADS_MOST; threads++) {
            update_arrays shared = take_arrays(ELEMENTS);
            call = call_of(&kernels, &attr, shared, norm_scale, &lr, kind);
            run_threads(&call, runs[kind], 1, threads);
            assert_same_bits(shared.master, whole.master, ELEMENTS * 4);
            assert_same_bits(shared.m, whole.m, ELEMENTS * 4);
            assert_same_bits(shared.v, whole.v, ELEMENTS * 4);
            assert_same_bits(shared.weight, whole.weight, ELEMENTS * 2);
        }
        release_all();
    }
}

static void padding_stays_zero(uint32_t mask)
{
    enum { ELEMENTS = 35 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    const hr_update_attr attr = { ELEMENTS, 0.9, 0.999, 1e-8, 0.1, 1, false };
    double lr = 1e-3;
    for (int32_t kind = 0; kind < KINDS; kind++) {
        update_arrays a = take_arrays(ELEMENTS);
        memset(a.gradient, 0, ELEMENTS * 4);
        memset(a.master, 0, ELEMENTS * 4);
        hr_call call = call_of(&kernels, &attr, a, NULL, &lr, kind);
        run_threads(&call, runs[kind], 1, 1);
        for (int64_t i = 0; i < ELEMENTS; i++)
            assert_true(a.master[i] == 0 && a.m[i] == 0 && a.v[i] == 0 &&
                        hr_bf16_to_f32(a.weight[i]) == 0);
        release_all();
    }
}

static void extreme_gradients_move_a_weight_by_at_most_the_rate(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    const float gradients[] = { 1e18f, -1e18f, 1e-41f, 1e-30f, 0 };
    for (size_t k = 0; k < sizeof gradients / sizeof *gradients; k++) {
        const hr_update_attr attr = { 1, 0.9, 0.95, 1e-8, 0, 1, true };
        float gradient = gradients[k], w = 1, m = 0, v = 0;
        double lr = 1e-2;
        update_arrays a = { &gradient, &w, &m, &v, NULL };
        hr_call call = call_of(&kernels, &attr, a, NULL, &lr, ADAMW);
        run_threads(&call, hr_adamw_run, 1, 1);
        assert_true(fabsf(w - 1) <= 1.001e-2f);
        if (fabsf(gradient) > 1) assert_true(fabsf(w - 1) >= 0.999e-2f);
    }
}

/* Lion takes the sign alone, however small the gradient; a broken one stays visible. */
static void lion_moves_a_weight_by_the_rate_or_not_at_all(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    const struct {
        float gradient, move;
    } cases[] = { { 1e18f, -1 }, { -1e18f, 1 },     { 1e-30f, -1 }, { -2e-37f, 1 },
                  { 0, 0 },      { INFINITY, NAN }, { NAN, NAN } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const hr_update_attr attr = { 1, 0.9, 0.99, 1e-8, 0, 1, true };
        float gradient = cases[k].gradient, w = 1, m = 0;
        double lr = 0.25;
        update_arrays a = { &gradient, &w, &m, NULL, NULL };
        hr_call call = call_of(&kernels, &attr, a, NULL, &lr, LION);
        run_threads(&call, hr_lion_run, 1, 1);
        if (isnan(cases[k].move)) assert_true(isnan(w) && !isfinite(m));
        else assert_true(w == 1 + 0.25f * cases[k].move);
    }
}

static float *copy_of_tensor(const oracle_file *file, const char *prefix, const char *name,
                             int64_t *count)
{
    int64_t bytes = 0;
    const void *found = oracle_tensor(file, prefix, name, &bytes);
    assert_non_null(found);
    *count = bytes / (int64_t)sizeof(float);
    return memcpy(take(bytes), found, (size_t)bytes);
}

/* tests/oracles/make_optimizers.py: given gradients, clipped, with falling rates. */
static void lion_follows_pytorch(uint32_t mask)
{
    hr_kernels kernels;
    oracle_file golden = { 0 };
    static const char *const names[] = { "w", "v" };
    hr_kernels_fill(&kernels, mask);
    json_t *json = json_load_file(HR_ORACLES "/optimizers/lion/golden.json", 0, NULL);
    assert_true(json && oracle_open(&golden, HR_ORACLES "/optimizers/lion/golden.safetensors"));
    const json_t *rates = json_object_get(json, "lr"),
                 *decays = json_object_get(json, "weight_decay");
    for (int32_t n = 0; n < 2; n++) {
        int64_t elements, all, bytes;
        const double *scales = oracle_tensor(&golden, "", "scales", &bytes);
        float *w = copy_of_tensor(&golden, "start.", names[n], &elements);
        float *gradients = copy_of_tensor(&golden, "gradients.", names[n], &all);
        const float *after = copy_of_tensor(&golden, "after.", names[n], &all);
        const float *momenta = copy_of_tensor(&golden, "momentum.", names[n], &all);
        const hr_update_attr attr = { .elements = elements,
                                      .beta1 = json_number_value(json_object_get(json, "beta1")),
                                      .beta2 = json_number_value(json_object_get(json, "beta2")),
                                      .decay = json_number_value(json_object_get(decays, names[n])),
                                      .lr_scale = 1 };
        update_arrays a = { NULL, w, take(elements * 4), NULL, NULL };
        assert_int_equal(all, elements * (int64_t)json_array_size(rates));
        assert_int_equal(bytes, 8 * (int64_t)json_array_size(rates));
        for (int64_t step = 0; step * elements < all; step++) {
            double norm_scale[2] = { 0, 0 };
            double lr = json_number_value(json_array_get(rates, (size_t)step));
            memcpy(&norm_scale[1], scales + step, sizeof *norm_scale);
            a.gradient = gradients + step * elements;
            hr_call call = call_of(&kernels, &attr, a, norm_scale, &lr, LION);
            run_threads(&call, hr_lion_run, 1, 2);
            for (int64_t i = 0; i < elements; i++) {
                const int64_t at = step * elements + i;
                assert_true(fabsf(w[i] - after[at]) <= 3e-6f);
                assert_true(fabsf(a.m[i] - momenta[at]) <= 1e-8f);
            }
        }
    }
    json_decref(json);
    oracle_close(&golden);
    release_all();
}

/* After n updates of the average, its distance to a constant weight is decay^n of the initial one;
 * threads change no bit. */
static void an_average_approaches_the_weight_by_its_decay(void **unused)
{
    (void)unused;
    enum { ELEMENTS = 2 * 4096 + 31, TIMES = 20 };
    const hr_average_attr attr = { ELEMENTS, 0.9 };
    update_arrays whole = take_arrays(ELEMENTS), shared = take_arrays(ELEMENTS);
    float *before = whole.v, *average = whole.m; /* any initialized array */
    memcpy(before, average, ELEMENTS * 4);
    for (int32_t threads = 1; threads <= THREADS_MOST; threads++) {
        memcpy(shared.m, before, ELEMENTS * 4);
        memcpy(average, before, ELEMENTS * 4);
        for (int32_t n = 0; n < TIMES; n++) {
            hr_call one = { .attr = &attr, .in = { whole.master }, .out = { average } };
            hr_call other = { .attr = &attr, .in = { whole.master }, .out = { shared.m } };
            run_threads(&one, hr_average_run, 1, 1);
            run_threads(&other, hr_average_run, 1, threads);
        }
        assert_same_bits(shared.m, average, ELEMENTS * 4);
    }
    for (int64_t i = 0; i < ELEMENTS; i++) {
        const double w = whole.master[i], a = w + pow(0.9, TIMES) * (before[i] - w);
        assert_true(fabs(average[i] - a) <= 1e-6 * fmax(fabs(w), fabs((double)before[i])));
    }
    release_all();
}

ON_RUNGS(sums_of_squares_have_the_bits_of_the_reference)
ON_RUNGS(sums_of_squares_of_extreme_gradients_are_correct)
ON_RUNGS(updates_follow_their_definition)
ON_RUNGS(threads_and_a_scale_of_one_change_no_bit)
ON_RUNGS(padding_stays_zero)
ON_RUNGS(extreme_gradients_move_a_weight_by_at_most_the_rate)
ON_RUNGS(lion_moves_a_weight_by_the_rate_or_not_at_all)
ON_RUNGS(lion_follows_pytorch)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(sums_of_squares_have_the_bits_of_the_reference),
        TEST_RUNGS(sums_of_squares_of_extreme_gradients_are_correct),
        TEST_RUNGS(updates_follow_their_definition),
        TEST_RUNGS(threads_and_a_scale_of_one_change_no_bit),
        TEST_RUNGS(padding_stays_zero),
        TEST_RUNGS(extreme_gradients_move_a_weight_by_at_most_the_rate),
        TEST_RUNGS(lion_moves_a_weight_by_the_rate_or_not_at_all),
        TEST_RUNGS(lion_follows_pytorch),
        cmocka_unit_test(clipping_scales_exactly_to_the_limit),
        cmocka_unit_test(an_average_approaches_the_weight_by_its_decay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
