/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy and z-loss: every instruction set against the reference up to the largest
 * vocabularies, exponentials, ignored targets, extreme logits; the reference against finite
 * differences. */
#include "ops/cpu.h"
#include "ops/loss/loss.h"
#include "ops/passes.h"

enum { SEED = 404 };

static int32_t *take_targets(int64_t rows, int64_t V, uint64_t *state)
{
    int32_t *targets = take(rows * 4);
    for (int64_t r = 0; r < rows; r++)
        targets[r] = r % 3 == 1 ? -1 - (int32_t)r : (int32_t)((draw(state) + 1) / 2 * (double)V);
    return targets;
}

/* At its target a row holds probability - 1, which has few digits if the probability is near 1.
 * Values equal to 1e-7 absolute are made equal, so that the other elements can be compared
 * strictly. */
static void check_targets(void *got, const void *expected, const int32_t *targets, int64_t rows,
                          int64_t V, hr_dtype dtype)
{
    for (int64_t r = 0; r < rows; r++) {
        if (targets[r] < 0) continue;
        const int64_t at = r * V + targets[r];
        const float wanted = hr_element_get(expected, at, dtype);
        const double off = fabs((double)hr_element_get(got, at, dtype) - wanted);
        assert_true(off <= 1e-7 + rounding(dtype) * fabsf(wanted));
        hr_element_set(got, at, dtype, wanted);
    }
}

/* `over`: 0 separate, 1 in place, 2 evaluation. */
static void compare_rungs(const hr_kernels *fast, const hr_kernels *ref, int64_t rows, int64_t V,
                          hr_dtype dtype, int32_t over, double z)
{
    uint64_t state = start(SEED + (uint64_t)V);
    const hr_loss_attr attr = { V, z };
    const int64_t bytes = rows * V * hr_dtype_bytes(dtype);
    void *logits = take_random(rows * V, dtype, 20, &state);
    double scale = 0.37, expected_sums[2] = { NAN, z > 0 ? NAN : 0 },
           sums[2] = { 5, z > 0 ? 6 : 0 };
    void *expected = take_poisoned(bytes), *got = over == 1 ? logits : take_poisoned(bytes);
    hr_call call = { .in = { logits, take_targets(rows, V, &state), &scale },
                     .out = { expected_sums, expected },
                     .scratch = take_poisoned(hr_loss_cpu.scratch_bytes(&attr, rows, 1)),
                     .attr = &attr,
                     .kernels = ref,
                     .rows = rows,
                     .clear = 1,
                     .dtype = dtype };
    run_threads(&call, hr_loss_run, 2, 1);
    call.kernels = fast;
    call.out[0] = sums;
    call.out[1] = over == 2 ? NULL : got;
    call.clear = 0;
    run_threads(&call, hr_loss_run, 2, 2);
    assert_true(fabs(sums[0] - 5 - expected_sums[0]) <= 1e-5 * (fabs(expected_sums[0]) + 1));
    if (z > 0) sums[1] -= 6; /* otherwise the second element is not part of the result */
    assert_true(fabs(sums[1] - expected_sums[1]) <= 1e-5 * fabs(expected_sums[1]));
    if (over != 2) {
        check_targets(got, expected, call.in[1], rows, V, dtype);
        const double least = dtype == HR_F16 ? 0x1p-14 : 1e-9; /* where numbers become denormal */
        assert_close(got, expected, rows * V, dtype, rounding(dtype), least);
    }
    release_all();
}

static void rows_agree_with_the_reference(uint32_t mask)
{
    hr_kernels fast, ref;
    hr_kernels_fill(&fast, mask);
    hr_kernels_fill(&ref, 0);
    for (int32_t k = 0; k < 9; k++) {
        for (int32_t s = 0; s < SIZE_COUNT; s++)
            for (int64_t rows = 0; rows < 8; rows += 1 + rows)
                for (int32_t z = 0; z < 2; z++)
                    compare_rungs(&fast, &ref, rows, odd_sizes[s], activations[k % 3], k / 3,
                                  0.01 * z);
        compare_rungs(&fast, &ref, 1, 50304, activations[k % 3], k / 3, 0);
        compare_rungs(&fast, &ref, 1, 50304, activations[k % 3], k / 3, 1e-4);
        compare_rungs(&fast, &ref, 1, 200005, activations[k % 3], k / 3, 0.01);
    }
}

/* With two logits 0 and -x the second probability is e^-x / (1 + e^-x). */
static void exponentials_have_a_relative_error_below_4e_6(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int64_t i = 0; i < 87 * 64; i++) {
        const float logits[2] = { 0, (float)-i / 64 };
        float share[2];
        hr_loss_of_row(&kernels.loss, logits, share, 2, 0, (hr_loss_factors){ 1, 0 }, HR_F32);
        const double power = exp(logits[1]), expected = power / (1 + power);
        if (fabs(share[1] - expected) > 4e-6 * expected)
            fail_msg("exp(%g): %.9g, expected %.9g", logits[1], share[1], expected);
    }
}

static void an_ignored_target_costs_nothing_and_has_no_gradient(uint32_t mask)
{
    enum { ROWS = 3, V = 19 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    const hr_loss_attr attr = { V, 1 };
    int32_t targets[ROWS] = { -1, -100, INT32_MIN };
    double scale = 1, sums[2] = { NAN, NAN };
    float *logits = take_poisoned(ROWS * V * 4), *dlogits = take_poisoned(ROWS * V * 4);
    hr_call call = { .in = { logits, targets, &scale },
                     .out = { sums, dlogits },
                     .scratch = take_poisoned(hr_loss_cpu.scratch_bytes(&attr, ROWS, 1)),
                     .attr = &attr,
                     .kernels = &kernels,
                     .rows = ROWS,
                     .clear = 1 };
    run_threads(&call, hr_loss_run, 2, 2);
    assert_true(sums[0] == 0 && sums[1] == 0);
    for (int64_t i = 0; i < ROWS * V; i++) assert_true(dlogits[i] == 0);
    release_all();
}

static void threads_and_splits_change_no_bit(uint32_t mask)
{
    enum { ROWS = 37, V = 100 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    const hr_loss_attr attr = { V, 0.02 };
    uint64_t state = start(SEED);
    double scale = 1.0 / 31;
    void *logits = take_random(ROWS * V, HR_BF16, 9, &state);
    int32_t *targets = take_targets(ROWS, V, &state);
    double sums[THREADS_MOST + 1][2];
    void *dlogits[THREADS_MOST + 1];
    for (int32_t threads = 0; threads <= THREADS_MOST; threads++) {
        const int64_t call_rows = threads == 0 ? ROWS : 5 * threads;
        dlogits[threads] = take_poisoned(ROWS * V * 2);
        for (int64_t first = 0; first < ROWS; first += call_rows) {
            const int64_t rows = hr_min(call_rows, ROWS - first);
            hr_call call = {
                .in = { hr_element_at(logits, first * V, HR_BF16), targets + first, &scale },
                .out = { sums[threads], hr_element_at(dlogits[threads], first * V, HR_BF16) },
                .scratch = take_poisoned(hr_loss_cpu.scratch_bytes(&attr, rows, 4)),
                .attr = &attr,
                .kernels = &kernels,
                .rows = rows,
                .clear = first == 0,
                .dtype = HR_BF16
            };
            run_threads(&call, hr_loss_run, 2, threads == 0 ? 1 : threads);
        }
        assert_same_bits(dlogits[threads], dlogits[0], ROWS * V * 2);
        assert_same_bits(sums[threads], sums[0], sizeof sums[0]);
    }
    release_all();
}

static void extreme_logits_give_the_correct_loss(uint32_t mask)
{
    enum { V = 37 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    float logits[V], dlogits[V];
    for (int32_t v = 0; v < V; v++) logits[v] = v == 5 ? 1e30f : -1e30f;
    assert_true(
        hr_loss_of_row(&kernels.loss, logits, dlogits, V, 5, (hr_loss_factors){ 2, 0 }, HR_F32)
            .loss == 0);
    for (int32_t v = 0; v < V; v++) assert_true(dlogits[v] == 0);
    for (int32_t v = 0; v < V; v++) logits[v] = v == 36 ? -1e4f : -INFINITY;
    assert_true(
        hr_loss_of_row(&kernels.loss, logits, dlogits, V, 36, (hr_loss_factors){ 2, 0 }, HR_F32)
            .loss == 0);
    assert_true(
        hr_loss_of_row(&kernels.loss, logits, dlogits, V, 7, (hr_loss_factors){ 2, 0 }, HR_F32)
            .loss == INFINITY);
    assert_true(dlogits[7] == -2 && dlogits[36] == 2 && dlogits[0] == 0);
    logits[36] = -INFINITY;
    assert_true(isnan(
        hr_loss_of_row(&kernels.loss, logits, dlogits, V, 7, (hr_loss_factors){ 2, 0 }, HR_F32)
            .loss));
    for (int32_t v = 0; v < V; v++) assert_true(isnan(dlogits[v]));
    for (int32_t at = 0; at < V; at++) {
        for (int32_t v = 0; v < V; v++) logits[v] = v == at ? NAN : 1;
        assert_true(isnan(
            hr_loss_of_row(&kernels.loss, logits, dlogits, V, 3, (hr_loss_factors){ 2, 0 }, HR_F32)
                .loss));
        for (int32_t v = 0; v < V; v++) assert_true(isnan(dlogits[v]));
    }
}

/* The loss including the z-loss. */
static double whole_of(hr_loss_row row, double z)
{
    return row.loss + z * row.log_sum * row.log_sum;
}

static void the_gradient_matches_finite_differences_of_the_loss(uint32_t mask)
{
    enum { V = 21 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    uint64_t state = start(SEED);
    float *logits = take_random(V, HR_F32, 3, &state), dlogits[V];
    for (double z = 0; z < 0.3; z += 0.1) {
        hr_loss_of_row(&kernels.loss, logits, dlogits, V, 4, (hr_loss_factors){ 0.5, z }, HR_F32);
        for (int32_t v = 0; v < V; v++) {
            const float kept = logits[v], step = 1.0f / 64;
            logits[v] = kept + step;
            const double up = logits[v];
            double slope = whole_of(hr_loss_of_row(&kernels.loss, logits, NULL, V, 4,
                                                   (hr_loss_factors){ 0.5, z }, HR_F32),
                                    z);
            logits[v] = kept - step;
            slope -= whole_of(hr_loss_of_row(&kernels.loss, logits, NULL, V, 4,
                                             (hr_loss_factors){ 0.5, z }, HR_F32),
                              z);
            slope *= 0.5 / (up - logits[v]);
            logits[v] = kept;
            assert_true(fabs(slope - dlogits[v]) < 3e-5 * (1 + 10 * z));
        }
    }
    release_all();
}

ON_RUNGS(rows_agree_with_the_reference)
ON_RUNGS(exponentials_have_a_relative_error_below_4e_6)
ON_RUNGS(an_ignored_target_costs_nothing_and_has_no_gradient)
ON_RUNGS(threads_and_splits_change_no_bit)
ON_RUNGS(extreme_logits_give_the_correct_loss)
ON_RUNGS(the_gradient_matches_finite_differences_of_the_loss)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(rows_agree_with_the_reference),
        TEST_RUNGS(exponentials_have_a_relative_error_below_4e_6),
        TEST_RUNGS(an_ignored_target_costs_nothing_and_has_no_gradient),
        TEST_RUNGS(threads_and_splits_change_no_bit),
        TEST_RUNGS(extreme_logits_give_the_correct_loss),
        TEST_RUNGS(the_gradient_matches_finite_differences_of_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
