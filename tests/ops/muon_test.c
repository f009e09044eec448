/* SPDX-License-Identifier: Apache-2.0 */
/* Muon follows torch.optim.Muon, and its definition in double in both layouts; padding stays zero,
 * threads change no bit, and a broken gradient stays visible. */
#include "ops/cpu.h"
#include "ops/cpu_run.h"
#include "ops/muon/muon.h"
#include "ops/passes.h"
#include "support/oracle.h"

enum { SEED = 1004, STEPS = 3, SETS = 3 };

static const hr_layout layouts[] = { HR_PANEL, HR_PANEL_PAIR };
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

extern const hr_op_run hr_muon_cpu_run;

/* The arrays of one matrix; weight may be null. */
typedef struct {
    float *gradient, *master, *m;
    hr_bf16 *weight;
} arrays_of;

static float *zeros(int64_t count)
{
    return memset(take(count * 4), 0, (size_t)count * 4);
}

static arrays_of take_matrix(const hr_muon_attr *attr)
{
    const int64_t count = attr->update.elements;
    const bool copy = attr->layout == HR_PANEL_PAIR;
    return (arrays_of){ zeros(count), zeros(count), zeros(count),
                        copy ? memset(take(count * 2), 0, (size_t)count * 2) : NULL };
}

static hr_muon_attr attr_of(int64_t K, int64_t N, hr_layout layout)
{
    return (hr_muon_attr){ .update = { .elements = hr_layout_elements(layout, K, N),
                                       .beta1 = 0.9,
                                       .decay = 0.1,
                                       .lr_scale = 0.5 },
                           .K = K,
                           .N = N,
                           .shape = 1.5,
                           .layout = (uint8_t)layout,
                           .steps = 5,
                           .nesterov = true };
}

static int64_t place(const hr_muon_attr *attr, int64_t k, int64_t n)
{
    return hr_layout_index((hr_layout)attr->layout, attr->K, attr->N, k, n);
}

static void step(const hr_kernels *kernels, const hr_muon_attr *attr, arrays_of a, double scale,
                 double lr, int64_t clock, int32_t threads)
{
    double norm_scale[2] = { 0, scale };
    const int64_t bytes = hr_muon_cpu.scratch_bytes(attr, 0, threads);
    hr_guard guard;
    hr_call call = { .in = { a.gradient, scale == 1 ? NULL : norm_scale, &lr },
                     .out = { a.master, a.m, a.weight },
                     .attr = attr,
                     .kernels = kernels,
                     .clock = clock };
    call.scratch = memset(hr_guard_open(&guard, hr_round_up(bytes, 64)), 0xff, (size_t)bytes);
    run_threads(&call, hr_muon_run, hr_muon_cpu_run.phases_of(&call), threads);
    hr_guard_close(&guard);
}

/* ---- against torch (tests/oracles/make_optimizers.py) */

static const float *golden_of(const oracle_file *golden, const char *set, const char *what,
                              const char *tensor)
{
    char name[64];
    int64_t bytes = 0;
    snprintf(name, sizeof name, "%s%s%s.%s", set, *set ? "." : "", what, tensor);
    const float *values = oracle_tensor(golden, "", name, &bytes);
    assert_non_null(values);
    return values;
}

/* `golden` is [N, K], as torch has it. */
static void assert_matrix(const hr_muon_attr *attr, const float *got, const float *golden,
                          float tolerance)
{
    for (int64_t k = 0; k < attr->K; k++)
        for (int64_t n = 0; n < attr->N; n++) {
            const float a = got[place(attr, k, n)], b = golden[n * attr->K + k];
            if (!(fabsf(a - b) <= tolerance))
                fail_msg("[%lld, %lld] is %.9g, not %.9g", (long long)k, (long long)n, (double)a,
                         (double)b);
        }
}

/* In bf16 the iteration rounds as torch's does, in another order. */
static void follow(const hr_kernels *kernels, const oracle_file *golden, const json_t *json,
                   const char *set, const char *tensor, hr_muon_attr attr)
{
    const float tolerance = attr.layout == HR_PANEL ? 1e-5f : 5e-3f;
    const float *start_of = golden_of(golden, "", "start", tensor);
    const float *gradients = golden_of(golden, "", "gradients", tensor);
    const float *after = golden_of(golden, set, "after", tensor);
    const json_t *rates = json_object_get(json, "lr");
    const arrays_of a = take_matrix(&attr);
    const int64_t count = attr.K * attr.N, steps = (int64_t)json_array_size(rates);
    for (int64_t i = 0; i < count; i++)
        a.master[place(&attr, i % attr.K, i / attr.K)] = start_of[i];
    assert_true(steps > 0);
    for (int64_t t = 0; t < steps; t++) {
        for (int64_t i = 0; i < count; i++)
            a.gradient[place(&attr, i % attr.K, i / attr.K)] = gradients[t * count + i];
        step(kernels, &attr, a, 1, json_number_value(json_array_get(rates, (size_t)t)), t, 2);
        assert_matrix(&attr, a.master, after + t * count, tolerance);
    }
    assert_matrix(&attr, a.m, golden_of(golden, set, "momentum", tensor), 1e-7f);
    release_all();
}

static void weights_and_momenta_follow_torch(uint32_t mask)
{
    static const char *const tensors[] = { "wide", "tall" };
    hr_kernels kernels;
    oracle_file golden = { 0 };
    const char *set;
    json_t *json = json_load_file(HR_ORACLES "/optimizers/muon/golden.json", 0, NULL), *of;
    hr_kernels_fill(&kernels, mask);
    assert_true(json && oracle_open(&golden, HR_ORACLES "/optimizers/muon/golden.safetensors"));
    assert_int_equal(json_object_size(json_object_get(json, "sets")), SETS);
    json_object_foreach(json_object_get(json, "sets"), set, of) for (int32_t i = 0; i < 2 * LAYOUTS;
                                                                     i++)
    {
        const int64_t K = i % 2 ? 12 : 25, N = i % 2 ? 25 : 12;
        const char *scale = json_string_value(json_object_get(of, "adjust_lr_fn"));
        hr_muon_attr attr = attr_of(K, N, layouts[i / 2]);
        attr.update.lr_scale = 1;
        attr.update.beta1 = json_number_value(json_object_get(json, "momentum"));
        attr.update.decay = json_number_value(json_object_get(json, "weight_decay"));
        attr.nesterov = json_is_true(json_object_get(of, "nesterov"));
        attr.shape = !strcmp(scale, "original") ? sqrt(fmax(1, (double)N / (double)K))
                                                : 0.2 * sqrt(25);
        follow(&kernels, &golden, json, set, tensors[i % 2], attr);
    }
    json_decref(json);
    oracle_close(&golden);
}

/* ---- against the definition */

/* c = a b, or a b^T; row-major. */
static void product(const double *a, const double *b, double *c, int64_t M, int64_t L, int64_t N,
                    bool transposed)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            double sum = 0;
            for (int64_t k = 0; k < L; k++)
                sum += a[i * L + k] * (transposed ? b[j * L + k] : b[k * N + j]);
            c[i * N + j] = sum;
        }
}

/* Replaces u [K, N] by its image. */
static void orthogonalise(double *u, int64_t K, int64_t N, int32_t steps)
{
    double norm = 0, *gram = take(K * K * 8), *square = take(K * K * 8), *next = take(K * N * 8);
    for (int64_t i = 0; i < K * N; i++) norm += u[i] * u[i];
    for (int64_t i = 0; i < K * N; i++) u[i] /= fmax(sqrt(norm), 1e-7);
    for (int32_t s = 0; s < steps; s++) {
        product(u, u, gram, K, N, K, true);
        product(gram, gram, square, K, K, K, false);
        for (int64_t i = 0; i < K * K; i++) square[i] = -4.775 * gram[i] + 2.0315 * square[i];
        product(square, u, next, K, K, N, false);
        for (int64_t i = 0; i < K * N; i++) u[i] = 3.4445 * u[i] + next[i];
    }
}

/* The iteration is the same for u and its transpose, so only the order of sums tells them apart. */
static void compare(const hr_kernels *kernels, hr_muon_attr attr, int32_t threads, uint64_t *state)
{
    const int64_t K = attr.K, N = attr.N, count = K * N;
    const double beta = attr.update.beta1, lr = 0.02;
    const double tolerance = attr.layout == HR_PANEL ? 1e-5 : 0.03;
    const arrays_of a = take_matrix(&attr);
    double *w = take(count * 8), *m = take(count * 8);
    for (int64_t i = 0; i < count; i++)
        w[i] = a.master[place(&attr, i / N, i % N)] = (float)draw(state);
    memset(m, 0, (size_t)count * 8);
    for (int64_t t = 0; t < STEPS; t++) {
        double *u = take(count * 8);
        for (int64_t i = 0; i < count; i++) {
            const float g = a.gradient[place(&attr, i / N, i % N)] = (float)draw(state);
            m[i] = beta * m[i] + (1 - beta) * 0.75 * (double)g;
            u[i] = attr.nesterov ? beta * m[i] + (1 - beta) * 0.75 * (double)g : m[i];
        }
        orthogonalise(u, K, N, attr.steps);
        for (int64_t i = 0; i < count; i++)
            w[i] -= 0.5 * lr * (attr.update.decay * w[i] + attr.shape * u[i]);
        step(kernels, &attr, a, 0.75, lr, t, threads);
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = place(&attr, i / N, i % N);
        if (!(fabs(a.master[at] - w[i]) <= tolerance))
            fail_msg("[%lld, %lld] element %lld is %.9g, not %.9g", (long long)K, (long long)N,
                     (long long)i, (double)a.master[at], w[i]);
        if (a.weight) assert_int_equal(a.weight[at], hr_bf16_from_f32(a.master[at]));
        a.master[at] = a.m[at] = 0;
    }
    for (int64_t i = 0; i < attr.update.elements; i++) /* padding */
        assert_true(a.master[i] == 0 && a.m[i] == 0);
    release_all();
}

static const int64_t shapes[][2] = { { 1, 1 },   { 1, 40 },  { 40, 1 },  { 16, 16 },
                                     { 17, 33 }, { 35, 15 }, { 64, 100 } };
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void updates_follow_their_definition(uint32_t mask)
{
    hr_kernels kernels;
    uint64_t state = start(SEED);
    hr_kernels_fill(&kernels, mask);
    for (int32_t s = 0; s < SHAPES; s++)
        for (int32_t l = 0; l < LAYOUTS; l++) {
            hr_muon_attr attr = attr_of(shapes[s][0], shapes[s][1], layouts[l]);
            compare(&kernels, attr, 1, &state);
            attr.nesterov = false;
            attr.steps = 2;
            compare(&kernels, attr, 3, &state);
        }
}

static void threads_change_no_bit(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t s = 0; s < SHAPES; s++)
        for (int32_t l = 0; l < LAYOUTS; l++) {
            const hr_muon_attr attr = attr_of(shapes[s][0], shapes[s][1], layouts[l]);
            const int64_t count = attr.update.elements;
            arrays_of kept = { 0 };
            for (int32_t threads = 1; threads <= THREADS_MOST; threads++) {
                const arrays_of a = take_matrix(&attr);
                uint64_t state = start(SEED);
                for (int64_t i = 0; i < attr.K * attr.N; i++) {
                    const int64_t at = place(&attr, i / attr.N, i % attr.N);
                    a.master[at] = (float)draw(&state);
                    a.gradient[at] = (float)draw(&state);
                }
                for (int64_t t = 0; t < 2; t++) step(&kernels, &attr, a, 1, 0.1, t, threads);
                if (threads == 1) kept = a;
                assert_same_bits(a.master, kept.master, count * 4);
                assert_same_bits(a.m, kept.m, count * 4);
                if (a.weight) assert_same_bits(a.weight, kept.weight, count * 2);
            }
            release_all();
        }
}

/* Whatever the size of a gradient, an update has the same size; of zeros there is none. NaN and
 * infinity stay visible. */
static void sizes_of_gradients_do_not_matter(uint32_t mask)
{
    static const double sizes[] = { 1e-3, 1, 1e15, 0 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t n = 0; n < 4 * LAYOUTS; n++) {
        const hr_muon_attr attr = attr_of(30, 20, layouts[n % LAYOUTS]);
        const double size = sizes[n / LAYOUTS];
        const arrays_of a = take_matrix(&attr);
        uint64_t state = start(SEED);
        double moved = 0;
        for (int64_t i = 0; i < attr.K * attr.N; i++)
            a.gradient[place(&attr, i / attr.N, i % attr.N)] = (float)(size * draw(&state));
        step(&kernels, &attr, a, 1, 1, 0, 2);
        for (int64_t i = 0; i < attr.update.elements; i++) moved += pow(a.master[i], 2);
        /* twenty singular values between 0.7 and 1.2 */
        if (size > 0) assert_true(sqrt(moved / 20) > 0.7 * 0.75 && sqrt(moved / 20) < 1.2 * 0.75);
        else assert_true(moved == 0);
        a.gradient[place(&attr, 7, 7)] = n % 3 ? NAN : INFINITY;
        step(&kernels, &attr, a, 1, 1, 1, 2);
        assert_true(isnan(a.master[place(&attr, 7, 7)]));
        release_all();
    }
}

ON_RUNGS(weights_and_momenta_follow_torch)
ON_RUNG(weights_and_momenta_follow_torch, amx)
ON_RUNGS(updates_follow_their_definition)
ON_RUNG(updates_follow_their_definition, amx)
ON_RUNGS(threads_change_no_bit)
ON_RUNG(threads_change_no_bit, amx)
ON_RUNGS(sizes_of_gradients_do_not_matter)
ON_RUNG(sizes_of_gradients_do_not_matter, amx)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(weights_and_momenta_follow_torch),
        cmocka_unit_test(weights_and_momenta_follow_torch_on_amx),
        TEST_RUNGS(updates_follow_their_definition),
        cmocka_unit_test(updates_follow_their_definition_on_amx),
        TEST_RUNGS(threads_change_no_bit),
        cmocka_unit_test(threads_change_no_bit_on_amx),
        TEST_RUNGS(sizes_of_gradients_do_not_matter),
        cmocka_unit_test(sizes_of_gradients_do_not_matter_on_amx),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
