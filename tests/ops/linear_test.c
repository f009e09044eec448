/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: every instruction set against the reference, the reference against finite
 * differences, and the same bits for every split of tokens and number of threads. */
#include <xmmintrin.h>

#include "ops/cpu.h"
#include "ops/linear/linear.h"
#include "ops/passes.h"

enum { SEED = 211, RANDOM_CASES = 60 };

typedef struct {
    int64_t rows, K, N;
} shape;

/* Tails in every dimension, one element, no rows, several blocks of the reduction and of the
 * columns. */
static const shape odd_shapes[] = {
    { 1, 1, 1 },    { 0, 5, 7 },     { 13, 3, 17 },   { 5, 16, 16 },
    { 12, 64, 32 }, { 25, 33, 48 },  { 7, 700, 31 },  { 3, 20, 1090 },
    { 2, 1, 600 },  { 26, 1041, 4 }, { 600, 530, 3 }, { 70, 31, 1 },
};

enum { SHAPE_COUNT = sizeof odd_shapes / sizeof *odd_shapes };

static uint32_t mask_of(const char *rung)
{
    hr_test_require(rung);
    return (uint32_t)hr_cpu_mask_of(rung);
}

static void *take_weight(int64_t K, int64_t N, hr_dtype dtype, uint64_t *state)
{
    const hr_layout layout = hr_linear_layout(dtype);
    void *weight = take(hr_layout_elements(layout, K, N) * hr_dtype_bytes(dtype));
    for (int64_t k = 0; k < K; k++)
        for (int64_t n = 0; n < N; n++)
            hr_element_set(weight, hr_layout_index(layout, K, N, k, n), dtype, (float)draw(state));
    return weight;
}

static void *take_scratch(int64_t bytes)
{
    return take_poisoned(hr_round_up(bytes, 64));
}

/* Tolerance: rounding of the result, and of a sum of `products` products of about one. `before`:
 * the size of a rounded value that the result is computed from, and which may be larger. */
static void assert_product(const void *got, const void *expected, int64_t count, hr_dtype dtype,
                           int64_t products, double before)
{
    const double size = sqrt((double)products);
    assert_close(got, expected, count, dtype, rounding(dtype),
                 before + (dtype == HR_F32 ? size : size / 16));
}

/* One case of forward and one of dx. `options`: which operands exist, and which are in place. */
typedef struct {
    shape size;
    hr_dtype dtype;
    hr_act act;
    uint64_t options;
    int32_t threads;
} product_case;

enum { WITH_BIAS = 1, WITH_PRE = 2, WITH_OTHER = 4, OVER_OTHER = 8, OVER_AUX = 16 };

static hr_call call_of(const hr_kernels *kernels, const product_case *at,
                       const hr_linear_attr *attr)
{
    return (hr_call){ .attr = attr, .kernels = kernels, .rows = at->size.rows, .dtype = at->dtype };
}

static void compare_forward(const hr_kernels *fast, const hr_kernels *ref, product_case at)
{
    uint64_t state = SEED + at.options;
    const int64_t rows = at.size.rows, K = at.size.K, N = at.size.N;
    const int64_t bytes = rows * N * hr_dtype_bytes(at.dtype);
    const hr_linear_attr attr = { K, N, 64, at.act };
    hr_call call = call_of(ref, &at, &attr);
    void *residual = take_random(rows * N, at.dtype, 1, &state);
    call.in[0] = take_random(rows * K, at.dtype, 1, &state);
    call.in[1] = take_weight(K, N, hr_product_dtype(at.dtype), &state);
    call.in[2] = at.options & WITH_BIAS ? take_random(N, HR_F32, 1, &state) : NULL;
    call.in[3] = at.options & (WITH_OTHER | OVER_OTHER) ? residual : NULL;
    void *y = call.out[0] = take_poisoned(bytes), *pre = call.out[1] = take_poisoned(bytes);
    call.scratch = take_scratch(hr_linear_cpu.scratch_bytes(&attr, rows, at.threads));
    run_threads(&call, hr_linear_run, 1, 1);
    call.kernels = fast;
    call.out[0] = at.options & OVER_OTHER ? residual : take_poisoned(bytes);
    call.out[1] = at.options & WITH_PRE ? take_poisoned(bytes) : NULL;
    run_threads(&call, hr_linear_run, 1, at.threads);
    const bool once = at.act == HR_ACT_NONE && !call.in[3]; /* y is rounded, and nothing before */
    assert_product(call.out[0], y, rows * N, at.dtype, K, once || at.dtype == HR_F32 ? 0 : 1);
    if (call.out[1]) assert_product(call.out[1], pre, rows * N, at.dtype, K, 0);
    release_all();
}

static void compare_dx(const hr_kernels *fast, const hr_kernels *ref, product_case at)
{
    uint64_t state = SEED + at.options;
    const int64_t rows = at.size.rows, K = at.size.K, N = at.size.N;
    const int64_t bytes = rows * K * hr_dtype_bytes(at.dtype);
    const hr_linear_attr attr = { K, N, 64, at.act };
    hr_call call = call_of(ref, &at, &attr);
    void *addend = take_random(rows * K, at.dtype, 1, &state);
    void *aux = take_random(rows * K, at.dtype, 6, &state);
    call.in[0] = take_random(rows * N, at.dtype, 1, &state);
    call.in[1] = take_weight(K, N, hr_product_dtype(at.dtype), &state);
    call.in[2] = at.options & (WITH_OTHER | OVER_OTHER) ? addend : NULL;
    call.in[3] = at.act != HR_ACT_NONE ? aux : NULL;
    void *dx = call.out[0] = take_poisoned(bytes);
    call.scratch = take_scratch(hr_linear_dx_cpu.scratch_bytes(&attr, rows, at.threads));
    run_threads(&call, hr_linear_dx_run, 1, 1);
    call.kernels = fast;
    call.out[0] = at.options & OVER_OTHER ? addend
                  : at.options & OVER_AUX ? aux
                                          : take_poisoned(bytes);
    run_threads(&call, hr_linear_dx_run, 1, at.threads);
    assert_product(call.out[0], dx, rows * K, at.dtype, N, 0);
    release_all();
}

/* Fails at the first nonzero element of the padding. */
static void assert_padding_zero(const float *dw, int64_t K, int64_t N, hr_dtype dtype)
{
    const hr_layout layout = hr_linear_layout(dtype);
    const int64_t count = hr_layout_elements(layout, K, N);
    unsigned char *inside = take(count);
    for (int64_t k = 0; k < K; k++)
        for (int64_t n = 0; n < N; n++) inside[hr_layout_index(layout, K, N, k, n)] = 1;
    for (int64_t i = 0; i < count; i++)
        if (!inside[i] && dw[i] != 0) fail_msg("padding %lld: %g", (long long)i, (double)dw[i]);
}

static void compare_dw(const hr_kernels *fast, const hr_kernels *ref, product_case at, int64_t T,
                       int64_t row_first)
{
    uint64_t state = SEED + at.options;
    const int64_t rows = at.size.rows, K = at.size.K, N = at.size.N;
    const int64_t count = hr_layout_elements(hr_linear_layout(at.dtype), K, N);
    const hr_linear_attr attr = { K, N, T, HR_ACT_NONE };
    hr_call call = call_of(ref, &at, &attr);
    call.row_first = row_first;
    call.clear = at.options & 3;
    call.in[0] = take_random(rows * K, at.dtype, 1, &state);
    call.in[1] = take_random(rows * N, at.dtype, 1, &state);
    float *before = take_weight(K, N, HR_F32, &state), *old = take_poisoned(count * 4);
    if (!(call.clear & 1)) {
        memset(old, 0, (size_t)count * 4);
        for (int64_t k = 0; k < K; k++)
            for (int64_t n = 0; n < N; n++)
                old[hr_layout_index(hr_linear_layout(at.dtype), K, N, k, n)] =
                    before[hr_layout_index(HR_PANEL, K, N, k, n)];
    }
    float *db = call.clear & 2 ? take_poisoned(N * 4) : take_random(N, HR_F32, 1, &state);
    float *dw_ref = call.out[0] = take_copy(old, count * 4), *db_ref = take_copy(db, N * 4);
    call.out[1] = db_ref;
    call.scratch = take_scratch(hr_linear_dw_cpu.scratch_bytes(&attr, rows, at.threads));
    run_threads(&call, hr_linear_dw_run, 1, 1);
    call.kernels = fast;
    call.out[0] = old;
    call.out[1] = at.options & 4 ? db : NULL;
    run_threads(&call, hr_linear_dw_run, 1, at.threads);
    assert_product(old, dw_ref, count, HR_F32, rows + 1, 0);
    assert_padding_zero(old, K, N, at.dtype);
    if (call.out[1]) assert_product(db, db_ref, N, HR_F32, rows + 1, 0);
    release_all();
}

/* The listed shapes, then as many random ones: a third of them with one long side. */
static product_case case_at(int64_t index, uint64_t *state)
{
    static const int64_t sizes[3] = { 20, 50, 600 };
    product_case at = { .options = hr_random_mix(++*state) };
    const uint64_t bits = hr_random_mix(++*state), longest = bits % 9;
    at.dtype = activations[index % 3];
    at.act = (hr_act)((bits >> 8) % 4);
    at.threads = 1 + (int32_t)((bits >> 16) % 4);
    if (index < 3 * SHAPE_COUNT) {
        at.size = odd_shapes[index / 3];
        return at;
    }
    at.size.rows = (int64_t)(bits >> 20) % sizes[longest == 0 ? 2 : 1];
    at.size.K = 1 + (int64_t)(bits >> 32) % sizes[longest == 1 ? 2 : 1];
    at.size.N = 1 + (int64_t)(bits >> 44) % sizes[longest == 2 ? 2 : 0];
    return at;
}

typedef void compare_fn(const hr_kernels *fast, const hr_kernels *ref, product_case at);

static void compare_cases(uint32_t mask, compare_fn *compare)
{
    hr_kernels fast, ref;
    uint64_t state = SEED;
    hr_kernels_fill(&fast, mask);
    hr_kernels_fill(&ref, 0);
    for (int64_t i = 0; i < 3 * SHAPE_COUNT + RANDOM_CASES * HR_COUNT; i++)
        compare(&fast, &ref, case_at(i, &state));
}

static void compare_dw_case(const hr_kernels *fast, const hr_kernels *ref, product_case at)
{
    static const int64_t lengths[6] = { 1, 3, 64, 65, 128, 1000 };
    const int64_t T = lengths[at.options >> 8 & 63 ? (at.options >> 8) % 6 : 2];
    const int64_t start = (int64_t)(at.options >> 20) % ((T + 63) / 64) * 64;
    compare_dw(fast, ref, at, T, 5 * T + start);
}

static void forward_agrees_with_the_reference(uint32_t mask)
{
    compare_cases(mask, compare_forward);
}

static void dx_agrees_with_the_reference(uint32_t mask)
{
    compare_cases(mask, compare_dx);
}

static void dw_agrees_with_the_reference(uint32_t mask)
{
    compare_cases(mask, compare_dw_case);
}

/* ---- bits ---- */

/* Runs rows [first, end) of a forward or dx call whose operands are those of all rows. */
static void run_rows(hr_call call, hr_run_fn *run, int64_t in_width, int64_t out_width,
                     int64_t first, int64_t end, int32_t threads)
{
    call.in[0] = hr_element_at(call.in[0], first * in_width, call.dtype);
    call.out[0] = hr_element_at(call.out[0], first * out_width, call.dtype);
    call.rows = end - first;
    call.row_first += first;
    run_threads(&call, run, 1, threads);
}

static void threads_and_splits_change_no_bit_of_rows(uint32_t mask)
{
    static const int64_t cuts[] = { 0, 1, 3, 6, 10, 17, 60, 61, 124, 200 };
    enum { CUTS = sizeof cuts / sizeof *cuts, ROWS = 200, K = 1031, N = 214 };
    hr_kernels kernels;
    const unsigned modes = _mm_getcsr();
    hr_cpu_flush_denormals(); /* as every thread of a pool does */
    hr_kernels_fill(&kernels, mask);
    for (int32_t k = 0; k < 8; k++) {
        uint64_t state = SEED;
        const hr_dtype dtype = activations[k & 1];
        const bool dx = k & 2;
        const double size = k & 4 ? 1e-37 : 1; /* also sums near the smallest numbers */
        const hr_linear_attr attr = dx ? (hr_linear_attr){ N, K, 64, HR_ACT_NONE }
                                       : (hr_linear_attr){ K, N, 64, HR_ACT_GELU };
        hr_run_fn *run = dx ? hr_linear_dx_run : hr_linear_run;
        hr_call call = { .attr = &attr, .kernels = &kernels, .dtype = dtype };
        call.in[0] = take_random(ROWS * K, dtype, size, &state);
        call.in[1] = take_weight(attr.K, attr.N, dtype, &state);
        call.scratch = take_scratch(hr_max(hr_linear_cpu.scratch_bytes(&attr, ROWS, 4),
                                           hr_linear_dx_cpu.scratch_bytes(&attr, ROWS, 4)));
        const int64_t bytes = ROWS * N * hr_dtype_bytes(dtype);
        void *whole = call.out[0] = take_poisoned(bytes);
        run_rows(call, run, K, N, 0, ROWS, 1);
        for (int32_t threads = 1; threads <= 4; threads++) {
            call.out[0] = take_poisoned(bytes);
            run_rows(call, run, K, N, 0, ROWS, threads);
            assert_same_bits(call.out[0], whole, bytes);
            memset(call.out[0], 0xff, (size_t)bytes);
            for (int32_t i = 0; i + 1 < CUTS; i++)
                run_rows(call, run, K, N, cuts[i], cuts[i + 1], threads);
            assert_same_bits(call.out[0], whole, bytes);
        }
        release_all();
    }
    _mm_setcsr(modes);
}

/* Sequences of T split at `cuts`: computes dW and db over the pieces in order. */
static void check_token_cuts(const hr_kernels *kernels, hr_dtype dtype, int64_t T,
                             const int64_t *cuts, int32_t cut_count)
{
    enum { K = 75, N = 133 };
    uint64_t state = SEED;
    const int64_t rows = cuts[cut_count - 1];
    const hr_linear_attr attr = { K, N, T, HR_ACT_NONE };
    const int64_t bytes = hr_layout_elements(hr_linear_layout(dtype), K, N) * 4;
    void *x = take_random(rows * K, dtype, 1, &state);
    void *dy = take_random(rows * N, dtype, 1, &state);
    void *scratch = take_scratch(hr_linear_dw_cpu.scratch_bytes(&attr, rows, 4));
    void *dw[2] = { take_poisoned(bytes), take_poisoned(bytes) };
    void *db[2] = { take_poisoned(N * 4), take_poisoned(N * 4) };
    hr_call call = { .attr = &attr, .kernels = kernels, .scratch = scratch, .dtype = dtype };
    for (int32_t threads = 0; threads <= 4; threads++) {
        const int32_t parts = threads == 0 ? 1 : cut_count - 1; /* first: one call, one thread */
        call.out[0] = dw[threads > 0];
        call.out[1] = db[threads > 0];
        for (int32_t i = 0; i < parts; i++) {
            const int64_t first = threads == 0 ? 0 : cuts[i];
            const int64_t end = threads == 0 ? rows : cuts[i + 1];
            call.in[0] = hr_element_at(x, first * K, dtype);
            call.in[1] = hr_element_at(dy, first * N, dtype);
            call.rows = end - first;
            call.row_first = 3 * T + first;
            call.clear = i == 0 ? 3 : 0;
            run_threads(&call, hr_linear_dw_run, 1, threads == 0 ? 1 : threads);
        }
        assert_same_bits(dw[threads > 0], dw[0], bytes);
        assert_same_bits(db[threads > 0], db[0], N * 4);
    }
    release_all();
}

static void threads_and_token_splits_change_no_bit_of_sums(uint32_t mask)
{
    static const int64_t at_64[] = { 0, 64, 64, 320, 384, 640, 700 };
    static const int64_t in_long_sequence[] = { 0, 128, 192, 448 };
    static const int64_t at_sequences[] = { 0, 37, 37 * 3, 37 * 20, 37 * 31 };
    static const int64_t at_odd[] = { 0, 64, 101, 165, 202, 606 }; /* T = 101: 64 + 37 */
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t k = 0; k < 2; k++) {
        check_token_cuts(&kernels, activations[k], 128, at_64, 7);
        check_token_cuts(&kernels, activations[k], 1000, in_long_sequence, 4);
        check_token_cuts(&kernels, activations[k], 37, at_sequences, 5);
        check_token_cuts(&kernels, activations[k], 101, at_odd, 6);
    }
}

/* db together with dW, and alone as for a frozen weight. */
static void db_has_the_same_bits_with_and_without_dw(uint32_t mask)
{
    static const int64_t lengths[] = { 1, 33, 64, 101, 128 };
    enum { ROWS = 300, K = 70, N = 133 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t k = 0; k < 20; k++) {
        uint64_t state = SEED + (uint64_t)k;
        const hr_dtype dtype = activations[k & 1];
        const hr_linear_attr both = { K, N, lengths[k / 4], HR_ACT_NONE };
        const hr_linear_attr alone = { 0, N, lengths[k / 4], HR_ACT_NONE };
        hr_call call = { .attr = &alone, .kernels = &kernels, .rows = ROWS, .dtype = dtype };
        call.clear = k & 2;
        call.in[1] = take_random(ROWS * N, dtype, 1, &state);
        float *before = take_random(N, HR_F32, 1, &state), *db = take_copy(before, N * 4);
        call.out[1] = db;
        run_threads(&call, hr_linear_dw_run, 1, 1);
        call.attr = &both;
        call.in[0] = take_random(ROWS * K, dtype, 1, &state);
        call.out[0] = take_poisoned(hr_layout_elements(hr_linear_layout(dtype), K, N) * 4);
        call.clear |= 1;
        call.scratch = take_scratch(hr_linear_dw_cpu.scratch_bytes(&both, ROWS, 4));
        for (int32_t threads = 1; threads <= 4; threads++) {
            call.out[1] = take_copy(before, N * 4);
            run_threads(&call, hr_linear_dw_run, 1, threads);
            assert_same_bits(call.out[1], db, N * 4);
        }
        release_all();
    }
}

/* ---- extremes ---- */

static void padding_stays_zero_next_to_infinity(uint32_t mask)
{
    enum { ROWS = 5, K = 19, N = 21 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t k = 0; k < 2; k++) {
        uint64_t state = SEED;
        const hr_dtype dtype = activations[k];
        const hr_linear_attr attr = { K, N, 64, HR_ACT_NONE };
        hr_call call = { .attr = &attr, .kernels = &kernels, .rows = ROWS, .clear = 1 };
        call.dtype = dtype;
        call.in[0] = take_random(ROWS * K, dtype, 1, &state);
        call.in[1] = take_random(ROWS * N, dtype, 1, &state);
        for (int64_t i = 0; i < ROWS * K; i++) hr_element_set(call.in[0], i, dtype, INFINITY);
        hr_element_set(call.in[1], ROWS * N - 1, dtype, INFINITY);
        float *dw = call.out[0] = take_poisoned(hr_layout_elements(hr_linear_layout(dtype), K, N) *
                                                (int64_t)sizeof *dw);
        call.scratch = take_scratch(hr_linear_dw_cpu.scratch_bytes(&attr, ROWS, 1));
        run_threads(&call, hr_linear_dw_run, 1, 1);
        assert_padding_zero(dw, K, N, dtype);
        assert_false(isfinite(dw[0]));
        release_all();
    }
}

static void activations_of_extreme_values_are_correct(uint32_t mask)
{
    enum { COUNT = 10 };
    static const float values[COUNT] = { 0, -0.f, 1e30f, -1e30f, 40, -40, 1e-41f, -1e-41f, 5, -5 };
    static const float gelus[COUNT] = { 0, 0, 1e30f, 0, 40, 0, 0, 0, 5, 0 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t k = 0; k < 4; k++) {
        uint64_t state = SEED;
        const hr_dtype dtype = activations[k % 2];
        hr_linear_attr attr = { 1, 1, 64, k < 2 ? HR_ACT_GELU : HR_ACT_GELU_TANH };
        hr_call call = { .attr = &attr, .kernels = &kernels, .rows = COUNT, .dtype = dtype };
        call.in[0] = take_random(COUNT, dtype, 1, &state);
        call.in[1] = take_weight(1, 1, dtype, &state);
        hr_element_set(call.in[1], 0, dtype, 1);
        call.out[0] = take_poisoned(COUNT * hr_dtype_bytes(dtype));
        call.scratch = take_scratch(hr_linear_cpu.scratch_bytes(&attr, COUNT, 1));
        for (int64_t i = 0; i < COUNT; i++) hr_element_set(call.in[0], i, dtype, values[i]);
        run_threads(&call, hr_linear_run, 1, 1);
        for (int64_t i = 0; i < COUNT; i++) {
            const double got = hr_element_get(call.out[0], i, dtype);
            assert_true(fabs(got - (double)gelus[i]) <= 0.005 * fabs((double)gelus[i]) + 1e-5);
        }
        hr_element_set(call.in[0], 3, dtype, NAN);
        attr.act = HR_ACT_RELU;
        run_threads(&call, hr_linear_run, 1, 1);
        for (int64_t i = 0; i < COUNT; i++)
            assert_int_equal(isnan(hr_element_get(call.out[0], i, dtype)), i == 3);
        release_all();
    }
}

/* ---- derivatives ---- */

enum { FD_ROWS = 3, FD_D = 9, FD_F = 11, FD_N = 7 };

typedef struct {
    float *x, *weight[2], *bias, *addend; /* [rows, D]; [D, F] and [F, N]; [F]; [rows, F] */
    float *pre, *hidden, *y, *dy;
    hr_act act;
} small_net;

/* sum of dy * ((act(x W + b)) V) + sum of addend * act(x W + b) */
static double objective(const hr_kernels *ref, const small_net *net)
{
    const hr_linear_attr up = { FD_D, FD_F, 2, net->act }, down = { FD_F, FD_N, 2, HR_ACT_NONE };
    hr_call call = { .in = { net->x, net->weight[0], net->bias },
                     .out = { net->hidden, net->pre },
                     .attr = &up,
                     .kernels = ref,
                     .rows = FD_ROWS };
    call.scratch = take_scratch(hr_linear_cpu.scratch_bytes(&up, FD_ROWS, 1));
    run_threads(&call, hr_linear_run, 1, 1);
    call = (hr_call){ .in = { net->hidden, net->weight[1] },
                      .out = { net->y },
                      .attr = &down,
                      .kernels = ref,
                      .rows = FD_ROWS,
                      .scratch = call.scratch };
    run_threads(&call, hr_linear_run, 1, 1);
    double sum = 0;
    for (int64_t i = 0; i < FD_ROWS * FD_N; i++) sum += (double)net->y[i] * net->dy[i];
    for (int64_t i = 0; i < FD_ROWS * FD_F; i++) sum += (double)net->hidden[i] * net->addend[i];
    hr_guard_close(&arrays[--array_count]);
    return sum;
}

/* Central difference of the objective with respect to one fp32 value. */
static double slope_at(const hr_kernels *ref, const small_net *net, float *place)
{
    const float step = 1.0f / 128, kept = *place;
    *place = kept + step;
    const double up = objective(ref, net);
    const float high = *place;
    *place = kept - step;
    const double slope = (up - objective(ref, net)) / ((double)high - *place);
    *place = kept;
    objective(ref, net);
    return slope;
}

static void assert_slope(double got, double slope, const char *what, int64_t index)
{
    if (fabs(got - slope) > 3e-4 * (1 + fabs(slope)))
        fail_msg("%s, %lld: %g, slope %g", what, (long long)index, got, slope);
}

static void check_gradients(const hr_kernels *ref, hr_act act)
{
    uint64_t state = SEED + 7;
    const hr_linear_attr up = { FD_D, FD_F, 2, HR_ACT_NONE }, down = { FD_F, FD_N, 2, act };
    const int64_t dw_count = hr_layout_elements(HR_PANEL, FD_D, FD_F);
    small_net net = { .act = act };
    net.x = take_random(FD_ROWS * FD_D, HR_F32, 1, &state);
    net.weight[0] = take_weight(FD_D, FD_F, HR_F32, &state);
    net.weight[1] = take_weight(FD_F, FD_N, HR_F32, &state);
    net.bias = take_random(FD_F, HR_F32, 1, &state);
    net.addend = take_random(FD_ROWS * FD_F, HR_F32, 1, &state);
    net.dy = take_random(FD_ROWS * FD_N, HR_F32, 1, &state);
    net.pre = take_poisoned(FD_ROWS * FD_F * 4);
    net.hidden = take_poisoned(FD_ROWS * FD_F * 4);
    net.y = take_poisoned(FD_ROWS * FD_N * 4);
    objective(ref, &net);
    float *dpre = take_poisoned(FD_ROWS * FD_F * 4), *dx = take_poisoned(FD_ROWS * FD_D * 4);
    float *dw = take_poisoned(dw_count * 4), *db = take_poisoned(FD_F * 4);
    void *aux = act == HR_ACT_RELU ? net.hidden : hr_act_needs_pre(act) ? net.pre : NULL;
    hr_call call = { .in = { net.dy, net.weight[1], net.addend, aux },
                     .out = { dpre },
                     .attr = &down,
                     .kernels = ref,
                     .rows = FD_ROWS };
    run_threads(&call, hr_linear_dx_run, 1, 1);
    call = (hr_call){
        .in = { dpre, net.weight[0] }, .out = { dx }, .attr = &up, .kernels = ref, .rows = FD_ROWS
    };
    run_threads(&call, hr_linear_dx_run, 1, 1);
    call = (hr_call){ .in = { net.x, dpre },
                      .out = { dw, db },
                      .attr = &up,
                      .kernels = ref,
                      .rows = FD_ROWS,
                      .clear = 3 };
    run_threads(&call, hr_linear_dw_run, 1, 1);
    for (int64_t i = 0; i < FD_ROWS * FD_F; i++) /* central differences must not cross the kink */
        if (act == HR_ACT_RELU) assert_true(fabsf(net.pre[i]) > 0.01f);
    for (int64_t i = 0; i < FD_ROWS * FD_D; i++)
        assert_slope(dx[i], slope_at(ref, &net, net.x + i), "dx", i);
    for (int64_t i = 0; i < FD_F; i++)
        assert_slope(db[i], slope_at(ref, &net, net.bias + i), "db", i);
    for (int64_t i = 0; i < FD_D * FD_F; i++) {
        const int64_t at = hr_layout_index(HR_PANEL, FD_D, FD_F, i / FD_F, i % FD_F);
        assert_slope(dw[at], slope_at(ref, &net, net.weight[0] + at), "dw", i);
    }
    release_all();
}

static void the_gradients_match_finite_differences_of_the_reference(void **state)
{
    (void)state;
    hr_kernels ref;
    hr_kernels_fill(&ref, 0);
    check_gradients(&ref, HR_ACT_NONE);
    check_gradients(&ref, HR_ACT_RELU);
    check_gradients(&ref, HR_ACT_GELU);
    check_gradients(&ref, HR_ACT_GELU_TANH);
}

static void scratch_is_monotone_in_rows(void **state)
{
    (void)state;
    const hr_linear_attr attr = { 700, 90, 64, HR_ACT_NONE };
    int64_t (*const bytes[3])(const void *, int64_t, int32_t) = { hr_linear_cpu.scratch_bytes,
                                                                  hr_linear_dx_cpu.scratch_bytes,
                                                                  hr_linear_dw_cpu.scratch_bytes };
    for (int32_t k = 0; k < 3; k++)
        for (int64_t rows = 1; rows < 1200; rows++)
            assert_true(bytes[k](&attr, rows, 3) >= bytes[k](&attr, rows - 1, 3));
}

#define ON(name, rung) \
    static void name##_on_##rung(void **state) \
    { \
        (void)state; \
        name(mask_of(#rung)); \
    }
#define ON_ALL(name) ON(name, avx2) ON(name, avx512) ON(name, avx512bf16) ON(name, amx)
#define TEST_ALL(name) \
    cmocka_unit_test(name##_on_avx2), cmocka_unit_test(name##_on_avx512), \
        cmocka_unit_test(name##_on_avx512bf16), cmocka_unit_test(name##_on_amx)

ON_ALL(forward_agrees_with_the_reference)
ON_ALL(dx_agrees_with_the_reference)
ON_ALL(dw_agrees_with_the_reference)
ON_ALL(threads_and_splits_change_no_bit_of_rows)
ON_ALL(threads_and_token_splits_change_no_bit_of_sums)
ON_ALL(db_has_the_same_bits_with_and_without_dw)
ON_ALL(padding_stays_zero_next_to_infinity)
ON_ALL(activations_of_extreme_values_are_correct)
ON(threads_and_token_splits_change_no_bit_of_sums, ref)
ON(db_has_the_same_bits_with_and_without_dw, ref)
ON(padding_stays_zero_next_to_infinity, ref)
ON(activations_of_extreme_values_are_correct, ref)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_ALL(forward_agrees_with_the_reference),
        TEST_ALL(dx_agrees_with_the_reference),
        TEST_ALL(dw_agrees_with_the_reference),
        TEST_ALL(threads_and_splits_change_no_bit_of_rows),
        TEST_ALL(threads_and_token_splits_change_no_bit_of_sums),
        TEST_ALL(db_has_the_same_bits_with_and_without_dw),
        TEST_ALL(padding_stays_zero_next_to_infinity),
        TEST_ALL(activations_of_extreme_values_are_correct),
        cmocka_unit_test(threads_and_token_splits_change_no_bit_of_sums_on_ref),
        cmocka_unit_test(db_has_the_same_bits_with_and_without_dw_on_ref),
        cmocka_unit_test(padding_stays_zero_next_to_infinity_on_ref),
        cmocka_unit_test(activations_of_extreme_values_are_correct_on_ref),
        cmocka_unit_test(the_gradients_match_finite_differences_of_the_reference),
        cmocka_unit_test(scratch_is_monotone_in_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
