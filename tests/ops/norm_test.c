/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNorm: every rung against the reference, the reference against finite differences, and the
 * same bits however tokens are cut and threads share. */
#include "ops/norm/norm.h"
#include "ops/passes.h"

enum { SEED = 101 };

static const hr_norm_attr *attr_of(int64_t D, int64_t T)
{
    static hr_norm_attr attr;
    attr = (hr_norm_attr){ D, 1, T, 1e-5f, true };
    return &attr;
}

static void compare_forward(const hr_kernels *fast, const hr_kernels *ref, int64_t rows, int64_t D,
                            hr_dtype dtype, bool in_place, bool all_operands)
{
    uint64_t state = start(SEED + (uint64_t)(rows * 1000 + D));
    const int64_t bytes = rows * D * hr_dtype_bytes(dtype);
    void *x = take_random(rows * D, dtype, 3, &state);
    float *gain = take_random(D, HR_F32, 2, &state), *bias = take_random(D, HR_F32, 1, &state);
    void *expected = take_poisoned(bytes), *got = in_place ? x : take_poisoned(bytes);
    float *stat_expected = take_poisoned(rows * 8), *stat = take_poisoned(rows * 8);
    hr_call call = { .in = { x, gain, all_operands ? bias : NULL },
                     .out = { expected, stat_expected },
                     .attr = attr_of(D, 64),
                     .kernels = ref,
                     .rows = rows,
                     .dtype = dtype };
    run_threads(&call, hr_norm_run, 1, 1);
    call.kernels = fast;
    call.out[0] = got;
    call.out[1] = all_operands ? stat : NULL;
    run_threads(&call, hr_norm_run, 1, 2);
    /* Elements that nearly agree lose digits in the subtraction of their mean. */
    for (int64_t r = 0; r < rows; r++)
        assert_close(hr_element_at(got, r * D, dtype), hr_element_at(expected, r * D, dtype), D,
                     dtype, rounding(dtype), 1 + stat_expected[2 * r + 1] / 4);
    if (all_operands) assert_close(stat, stat_expected, rows * 2, HR_F32, 1e-5, 0.1);
    release_all();
}

static void forward_agrees_with_the_reference(uint32_t mask)
{
    hr_kernels fast, ref;
    hr_norm_kernels_fill(&fast.norm, mask);
    hr_norm_kernels_fill(&ref.norm, 0);
    for (int32_t s = 0; s < SIZE_COUNT; s++)
        for (int32_t k = 0; k < 8; k++)
            for (int64_t rows = 0; rows < 4; rows += 1 + rows)
                compare_forward(&fast, &ref, rows, odd_sizes[s], activations[k & 1], k & 2, k & 4);
}

/* `over`: 0 separate, 1 dx over dy, 2 over x, 3 over addend, 4 no addend. */
static void compare_backward(const hr_kernels *fast, const hr_kernels *ref, int64_t rows, int64_t D,
                             hr_dtype dtype, int32_t over)
{
    uint64_t state = start(SEED + (uint64_t)(rows * 1000 + D));
    const int64_t bytes = rows * D * hr_dtype_bytes(dtype), T = 70;
    void *dy = take_random(rows * D, dtype, 1, &state);
    void *x = take_random(rows * D, dtype, 3, &state);
    void *addend = take_random(rows * D, dtype, 1, &state);
    float *gain = take_random(D, HR_F32, 2, &state);
    float *stat = take_random(rows * 2, HR_F32, 1, &state);
    for (int64_t r = 0; r < rows; r++) stat[2 * r + 1] = 0.5f + fabsf(stat[2 * r + 1]);
    void *dx[2] = { take_poisoned(bytes), NULL };
    dx[1] = over == 1 ? dy : over == 2 ? x : over == 3 ? addend : take_poisoned(bytes);
    float *dgain[2] = { take_random(D, HR_F32, 1, &state) }, *dbias[2];
    dgain[1] = take_copy(dgain[0], D * 4);
    dbias[0] = take_poisoned(D * 4);
    dbias[1] = take_poisoned(D * 4);
    hr_call call = { .in = { dy, x, stat, gain, over == 4 ? NULL : addend },
                     .attr = attr_of(D, T),
                     .rows = rows,
                     .clear = 1u << 2,
                     .dtype = dtype };
    for (int32_t k = 0; k < 2; k++) {
        call.scratch = take_poisoned(hr_norm_bwd_scratch_bytes(call.attr, rows, k + 1));
        call.out[0] = dx[k];
        call.out[1] = dgain[k];
        call.out[2] = dbias[k];
        call.kernels = k == 0 ? ref : fast;
        run_threads(&call, hr_norm_bwd_run, 2, k + 1);
    }
    assert_close(dx[1], dx[0], rows * D, dtype, rounding(dtype), 4);
    assert_close(dgain[1], dgain[0], D, HR_F32, 4e-6, 64);
    assert_close(dbias[1], dbias[0], D, HR_F32, 4e-6, 64);
    release_all();
}

static void backward_agrees_with_the_reference(uint32_t mask)
{
    hr_kernels fast, ref;
    hr_norm_kernels_fill(&fast.norm, mask);
    hr_norm_kernels_fill(&ref.norm, 0);
    const int64_t rows[] = { 0, 1, 3, 140 };
    for (int32_t s = 0; s < SIZE_COUNT; s++)
        for (int32_t k = 0; k < 4; k++)
            for (int32_t over = 0; over < 5; over++)
                for (int32_t d = 0; d < 2; d++)
                    compare_backward(&fast, &ref, rows[k], odd_sizes[s], activations[d], over);
}

typedef struct {
    void *dy, *x, *addend, *dx;
    float *gain, *stat, *dgain, *dbias;
} backward_arrays;

/* One backward pass over all rows, in turns of so many. */
static void run_turns(const hr_kernels *kernels, backward_arrays a, int64_t rows, int64_t D,
                      int64_t T, int64_t turn, hr_dtype dtype, int32_t threads)
{
    for (int64_t first = 0; first < rows; first += turn) {
        const int64_t count = rows - first < turn ? rows - first : turn;
        hr_call call = { .in = { hr_element_at(a.dy, first * D, dtype),
                                 hr_element_at(a.x, first * D, dtype), a.stat + 2 * first, a.gain,
                                 hr_element_at(a.addend, first * D, dtype) },
                         .out = { hr_element_at(a.dx, first * D, dtype), a.dgain, a.dbias },
                         .attr = attr_of(D, T),
                         .kernels = kernels,
                         .rows = count,
                         .row_first = first,
                         .clear = first == 0 ? 1u << 1 | 1u << 2 : 0,
                         .dtype = dtype };
        call.scratch = take_poisoned(hr_norm_bwd_scratch_bytes(call.attr, count, threads));
        run_threads(&call, hr_norm_bwd_run, 2, threads);
    }
}

static void compare_cuts(const hr_kernels *kernels, int64_t rows, int64_t T, int64_t turn,
                         hr_dtype dtype, int32_t threads)
{
    uint64_t state = start(SEED);
    const int64_t D = 37, bytes = rows * D * hr_dtype_bytes(dtype);
    backward_arrays whole = { .dy = take_random(rows * D, dtype, 1, &state),
                              .x = take_random(rows * D, dtype, 1, &state),
                              .addend = take_random(rows * D, dtype, 1, &state),
                              .dx = take_poisoned(bytes),
                              .gain = take_random(D, HR_F32, 1, &state),
                              .stat = take_random(rows * 2, HR_F32, 1, &state),
                              .dgain = take_poisoned(D * 4),
                              .dbias = take_poisoned(D * 4) };
    backward_arrays cut = whole;
    cut.dx = take_poisoned(bytes);
    cut.dgain = take_poisoned(D * 4);
    cut.dbias = take_poisoned(D * 4);
    run_turns(kernels, whole, rows, D, T, rows, dtype, 1);
    run_turns(kernels, cut, rows, D, T, turn, dtype, threads);
    assert_same_bits(cut.dx, whole.dx, bytes);
    assert_same_bits(cut.dgain, whole.dgain, D * 4);
    assert_same_bits(cut.dbias, whole.dbias, D * 4);
    release_all();
}

static void neither_threads_nor_cuts_change_a_bit(uint32_t mask)
{
    hr_kernels kernels;
    hr_norm_kernels_fill(&kernels.norm, mask);
    for (int32_t threads = 1; threads <= THREADS_MOST; threads++)
        for (int32_t d = 0; d < 2; d++) {
            compare_cuts(&kernels, 512, 256, 512, activations[d], threads);
            compare_cuts(&kernels, 512, 256, 64, activations[d], threads);
            compare_cuts(&kernels, 512, 256, 192, activations[d], threads);
            compare_cuts(&kernels, 505, 101, 101, activations[d], threads);
            compare_cuts(&kernels, 505, 101, 202, activations[d], threads);
            compare_cuts(&kernels, 60, 5, 15, activations[d], threads);
        }
}

/* Any cut may be asked for; the sums then agree up to rounding, and the scratch is enough. */
static void any_cut_fits_in_its_scratch(void **unused)
{
    (void)unused;
    hr_kernels kernels;
    hr_norm_kernels_fill(&kernels.norm, 0);
    const int64_t D = 2;
    for (int64_t T = 1; T < 200; T += 13)
        for (int64_t rows = 1; rows < 300; rows += 23)
            for (int64_t first = 0; first < 2 * T; first += 7) {
                uint64_t state = start(SEED);
                float dgain[2], dbias[2], *dy = take_random(rows * D, HR_F32, 1, &state);
                hr_call call = { .in = { dy, dy, take_random(2 * rows, HR_F32, 1, &state), dgain },
                                 .out = { dy, dgain, dbias },
                                 .attr = attr_of(D, T),
                                 .kernels = &kernels,
                                 .rows = rows,
                                 .row_first = first,
                                 .clear = 6 };
                double sum = 0;
                for (int64_t r = 0; r < rows; r++) sum += dy[r * D];
                call.in[3] = take_random(D, HR_F32, 1, &state);
                call.scratch = take_poisoned(hr_norm_bwd_scratch_bytes(call.attr, rows, 1));
                run_threads(&call, hr_norm_bwd_run, 2, 1);
                assert_true(fabs(dbias[0] - sum) < 1e-4);
                release_all();
            }
}

/* sum of weight o norm(x), in double from the reference's output. */
static double objective(const hr_kernels *ref, float *x, float *gain, float *bias,
                        const float *weight, int64_t rows, int64_t D)
{
    float y[64], stat[16];
    double sum = 0;
    ref->norm.fwd(x, gain, bias, y, stat, rows, attr_of(D, 64), HR_F32);
    for (int64_t i = 0; i < rows * D; i++) sum += (double)weight[i] * y[i];
    return sum;
}

static void the_gradient_is_the_slope_of_the_reference(void **unused)
{
    (void)unused;
    enum { ROWS = 5, D = 11 };
    hr_kernels ref;
    hr_norm_kernels_fill(&ref.norm, 0);
    uint64_t state = start(SEED);
    float *x = take_random(ROWS * D, HR_F32, 1, &state), *gain = take_random(D, HR_F32, 1, &state);
    float *bias = take_random(D, HR_F32, 1, &state);
    float *weight = take_random(ROWS * D, HR_F32, 1, &state);
    float y[ROWS * D], stat[ROWS * 2], dx[ROWS * D], partial[2 * D];
    ref.norm.fwd(x, gain, bias, y, stat, ROWS, attr_of(D, 64), HR_F32);
    ref.norm.bwd(weight, x, stat, gain, NULL, dx, partial, ROWS, attr_of(D, 64), HR_F32);
    float *const places[3] = { x, gain, bias };
    const float *const slopes[3] = { dx, partial, partial + D };
    for (int32_t k = 0; k < 3; k++)
        for (int64_t i = 0; i < (k == 0 ? ROWS * D : D); i++) {
            const float step = 1.0f / 256, kept = places[k][i];
            places[k][i] = kept + step;
            double slope = objective(&ref, x, gain, bias, weight, ROWS, D);
            const float up = places[k][i];
            places[k][i] = kept - step;
            slope -= objective(&ref, x, gain, bias, weight, ROWS, D);
            slope /= (double)up - places[k][i];
            places[k][i] = kept;
            if (fabs(slope - slopes[k][i]) > 5e-4 * (1 + fabs(slope)))
                fail_msg("operand %d, %lld: %g, slope %g", k, (long long)i, slopes[k][i], slope);
        }
    release_all();
}

static void extreme_rows_give_what_they_must(uint32_t mask)
{
    enum { D = 33 };
    hr_kernels kernels;
    hr_norm_kernels_fill(&kernels.norm, mask);
    float x[D], gain[D], bias[D], y[D], stat[2];
    const float values[] = { 0, 1e30f, -1e30f, 1e-41f, FLT_MIN, 3 };
    for (int32_t c = 0; c < D; c++) {
        gain[c] = 2;
        bias[c] = (float)c;
    }
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        for (int32_t c = 0; c < D; c++) x[c] = values[k];
        kernels.norm.fwd(x, gain, bias, y, stat, 1, attr_of(D, 64), HR_F32);
        for (int32_t c = 0; c < D; c++) {
            const bool finite = isfinite(y[c]);
            assert_true(finite);
            if (fabsf(values[k]) < 1) assert_true(fabsf(y[c] - bias[c]) < 1e-4f);
        }
    }
    x[D - 1] = NAN;
    kernels.norm.fwd(x, gain, bias, y, stat, 1, attr_of(D, 64), HR_F32);
    for (int32_t c = 0; c < D; c++) assert_true(isnan(y[c]));
}

ON_RUNGS(forward_agrees_with_the_reference)
ON_RUNGS(backward_agrees_with_the_reference)
ON_RUNGS(neither_threads_nor_cuts_change_a_bit)
ON_RUNGS(extreme_rows_give_what_they_must)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(forward_agrees_with_the_reference),
        TEST_RUNGS(backward_agrees_with_the_reference),
        TEST_RUNGS(neither_threads_nor_cuts_change_a_bit),
        TEST_RUNGS(extreme_rows_give_what_they_must),
        cmocka_unit_test(any_cut_fits_in_its_scratch),
        cmocka_unit_test(the_gradient_is_the_slope_of_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
