/* SPDX-License-Identifier: Apache-2.0 */
/* guard_test.c - the guard over sequences with limits that are known by hand, and over noise. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "run/guard.h"

/* A step with a constant gradient norm. */
static hr_guard_verdict judge(hr_guard *guard, double loss)
{
    return hr_guard_judge(guard, loss, 1);
}

static void repeat(hr_guard *guard, double loss, int32_t steps)
{
    for (int32_t i = 0; i < steps; i++)
        assert_int_equal(hr_guard_judge(guard, loss, 1), HR_GUARD_FINE);
}

static double uniform(uint64_t *draw)
{
    return (double)(hr_random_mix(++*draw) >> 11) * 0x1p-53;
}

/* The sum of twelve uniform numbers minus six: normal except for the far tails. */
static double normal(uint64_t *draw)
{
    double sum = -6;
    for (int32_t i = 0; i < 12; i++) sum += uniform(draw);
    return sum;
}

static void the_first_steps_are_never_spikes(void **state)
{
    (void)state;
    hr_guard guard = { 0 };
    const double wild[HR_GUARD_LEAST] = { 11, 1e9, 10.9, 10.8, 1e-9, 500 };
    for (int32_t i = 0; i < HR_GUARD_LEAST; i++) {
        assert_true(isinf(hr_guard_loss_limit(&guard)));
        assert_int_equal(hr_guard_judge(&guard, wild[i], wild[i] * 7), HR_GUARD_FINE);
    }
    assert_true(isfinite(hr_guard_loss_limit(&guard)));
}

/* 1 to 16: the median is 8.5, and that of the distances 4. */
static void the_limit_equals_the_one_computed_by_hand(void **state)
{
    (void)state;
    hr_guard guard = { 0 };
    for (int32_t i = 1; i <= 16; i++) assert_int_equal(hr_guard_judge(&guard, i, i), HR_GUARD_FINE);
    const double loss_limit = 8.5 + 7 * (1.4826 * 4 + 0.01 * 8.5);
    const double norm_limit = 8.5 + 7 * (1.4826 * 4 + 0.1 * 8.5);
    assert_true(fabs(hr_guard_loss_limit(&guard) - loss_limit) < 1e-12);
    assert_true(fabs(hr_guard_norm_limit(&guard) - norm_limit) < 1e-12);
    hr_guard other = guard;
    assert_int_equal(hr_guard_judge(&other, loss_limit - 1e-9, 8), HR_GUARD_FINE);
    other = guard;
    assert_int_equal(hr_guard_judge(&other, loss_limit + 1e-9, 8), HR_GUARD_LOSS_SPIKE);
    other = guard;
    assert_int_equal(hr_guard_judge(&other, 8, norm_limit + 1e-9), HR_GUARD_NORM_SPIKE);
    other = guard;
    assert_int_equal(hr_guard_judge(&other, 1e9, 1e9), HR_GUARD_LOSS_SPIKE);
    other = guard;
    assert_int_equal(hr_guard_judge(&other, -1e9, 0), HR_GUARD_FINE);
    /* With a seventeenth value the median is 9, and that of the distances is still 4. */
    assert_int_equal(hr_guard_judge(&guard, 17, 17), HR_GUARD_FINE);
    assert_true(fabs(hr_guard_loss_limit(&guard) - (9 + 7 * (1.4826 * 4 + 0.09))) < 1e-12);
}

static void constant_losses_have_the_floor_as_spread(void **state)
{
    (void)state;
    hr_guard guard = { 0 };
    repeat(&guard, 2, 100);
    assert_true(fabs(hr_guard_loss_limit(&guard) - 2.14) < 1e-12);
    assert_true(fabs(hr_guard_norm_limit(&guard) - 1.7) < 1e-12);
    assert_int_equal(judge(&guard, 2.13), HR_GUARD_FINE);
    assert_int_equal(judge(&guard, 2.15), HR_GUARD_LOSS_SPIKE);
    /* Near 0 the floor is a hundredth of a nat, not of the level. */
    guard = (hr_guard){ 0 };
    repeat(&guard, 1e-6, 100);
    assert_int_equal(judge(&guard, 0.06), HR_GUARD_FINE);
    assert_int_equal(judge(&guard, 0.08), HR_GUARD_LOSS_SPIKE);
    /* Norms of 0 give no level. */
    guard = (hr_guard){ 0 };
    for (int32_t i = 0; i < 100; i++)
        assert_int_equal(hr_guard_judge(&guard, 2, i % 3 ? 0 : 5), HR_GUARD_FINE);
    assert_true(isinf(hr_guard_norm_limit(&guard)));
}

static void non_finite_values_change_nothing(void **state)
{
    (void)state;
    const double wrong[] = { NAN, INFINITY, -INFINITY };
    hr_guard guard = { 0 };
    for (int32_t steps = 0; steps < 80; steps += 10) {
        const hr_guard before = guard;
        for (int32_t i = 0; i < 300; i++) {
            assert_int_equal(hr_guard_judge(&guard, wrong[i % 3], 1), HR_GUARD_NOT_FINITE);
            assert_int_equal(hr_guard_judge(&guard, 3, wrong[i % 3]), HR_GUARD_NOT_FINITE);
            assert_int_equal(hr_guard_judge(&guard, NAN, wrong[i % 3]), HR_GUARD_NOT_FINITE);
            assert_int_equal(hr_guard_peek(&guard, wrong[i % 3]), HR_GUARD_NOT_FINITE);
        }
        assert_memory_equal(&guard, &before, sizeof guard);
        repeat(&guard, 3, 10);
    }
    /* A non-finite value does not end a row of spikes either. */
    for (int32_t i = 0; i < HR_GUARD_ROW - 1; i++) {
        assert_int_equal(judge(&guard, 9), HR_GUARD_LOSS_SPIKE);
        assert_int_equal(judge(&guard, NAN), HR_GUARD_NOT_FINITE);
    }
    assert_int_equal(judge(&guard, 9), HR_GUARD_FINE);
}

static void single_spikes_never_move_the_level(void **state)
{
    (void)state;
    hr_guard guard = { 0 };
    repeat(&guard, 4, 70);
    const double before = hr_guard_loss_limit(&guard);
    for (int32_t i = 0; i < 1000; i++) {
        assert_int_equal(judge(&guard, 5 + i), HR_GUARD_LOSS_SPIKE);
        if (i % (HR_GUARD_ROW - 1) == HR_GUARD_ROW - 2) repeat(&guard, 4, 1);
    }
    assert_true(hr_guard_loss_limit(&guard) == before);
}

static void a_row_of_spikes_becomes_the_new_level(void **state)
{
    (void)state;
    hr_guard guard = { 0 };
    repeat(&guard, 2, 64);
    for (int32_t i = 1; i < HR_GUARD_ROW; i++)
        assert_int_equal(judge(&guard, 5), HR_GUARD_LOSS_SPIKE);
    assert_int_equal(hr_guard_peek(&guard, 5), HR_GUARD_FINE);
    repeat(&guard, 5, HR_GUARD_LEAST - HR_GUARD_ROW);
    assert_true(isinf(hr_guard_loss_limit(&guard)));
    repeat(&guard, 5, 1);
    assert_true(fabs(hr_guard_loss_limit(&guard) - 5.35) < 1e-12);
    assert_int_equal(judge(&guard, 5.4), HR_GUARD_LOSS_SPIKE);
    /* The norm window has continued. */
    assert_int_equal(guard.norm.count, HR_GUARD_WINDOW);
    /* Lower values are no spikes: the level follows once half of the window has them. */
    for (int32_t i = 0; i < 20; i++) assert_int_equal(judge(&guard, 1), HR_GUARD_FINE);
    assert_true(hr_guard_loss_limit(&guard) < 5);
}

/* A guard that is restored from bytes continues as the original. */
static void a_restored_state_continues_identically(void **state)
{
    (void)state;
    enum { STEPS = 1000 };
    uint64_t draw = 7;
    print_message("seed %llu\n", (unsigned long long)draw);
    hr_guard guard = { 0 }, restored = { 0 };
    int32_t spikes = 0;
    for (int32_t i = 0; i < STEPS; i++) {
        unsigned char bytes[HR_GUARD_WORDS * 8];
        const bool wrong = uniform(&draw) < 0.02, high = uniform(&draw) < 0.2;
        const double loss = wrong ? NAN : 3 + 0.1 * normal(&draw) + (high ? 20 : 0);
        const double norm = exp(normal(&draw));
        assert_true(hr_guard_is_valid(&restored));
        const hr_guard_verdict peeked = hr_guard_peek(&restored, loss);
        const hr_guard_verdict verdict = hr_guard_judge(&restored, loss, norm);
        assert_int_equal(hr_guard_judge(&guard, loss, norm), verdict);
        assert_int_equal(peeked == HR_GUARD_FINE,
                         verdict == HR_GUARD_FINE || verdict == HR_GUARD_NORM_SPIKE);
        assert_memory_equal(&guard, &restored, sizeof guard);
        spikes += verdict == HR_GUARD_LOSS_SPIKE;
        memcpy(bytes, &restored, sizeof bytes);
        memset(&restored, 0xff, sizeof restored);
        memcpy(&restored, bytes, sizeof bytes);
    }
    assert_in_range(spikes, STEPS / 10, STEPS / 2);
}

/* Losses that decrease as those of a model do, with the noise of batches: none is a spike, and
 * every jump by ten deviations plus the floor is. */
static void noise_is_no_spike_and_jumps_are(void **state)
{
    (void)state;
    uint64_t draw = 11;
    print_message("seed %llu\n", (unsigned long long)draw);
    const int32_t steps = 20000;
    hr_guard guard = { 0 };
    int32_t alarms = 0, missed = 0, jumps = 0;
    for (int32_t i = 0; i < steps; i++) {
        const double level = 2.5 + 8.5 / (1 + i / 200.0), noise = 0.05;
        const double norm = 0.5 * exp(0.2 * normal(&draw));
        const bool jump = i > 2000 && i % 97 == 0;
        const double loss = level + noise * normal(&draw) + (jump ? 16 * noise + 0.35 : 0);
        const hr_guard_verdict verdict = hr_guard_judge(&guard, loss, norm);
        jumps += jump;
        missed += jump && verdict != HR_GUARD_LOSS_SPIKE;
        alarms += !jump && verdict != HR_GUARD_FINE;
    }
    print_message("%d steps: %d alarms without a jump; %d of %d jumps missed\n", steps, alarms,
                  missed, jumps);
    assert_int_equal(alarms, 0);
    assert_int_equal(missed, 0);
}

static void invalid_states_are_refused(void **state)
{
    (void)state;
    hr_guard whole = { 0 };
    assert_true(hr_guard_is_valid(&whole));
    repeat(&whole, 2, 20);
    assert_true(hr_guard_is_valid(&whole));
    hr_guard wrong[10];
    for (int32_t i = 0; i < 10; i++) wrong[i] = whole;
    wrong[0].loss.count = -1;
    wrong[1].loss.count = HR_GUARD_WINDOW + 1;
    wrong[2].norm.next = HR_GUARD_WINDOW;
    wrong[3].norm.next = -1;
    wrong[4].loss.next = 3;
    wrong[5].loss.in_a_row = HR_GUARD_ROW;
    wrong[6].norm.in_a_row = -1;
    wrong[7].loss.values[5] = NAN;
    wrong[8].norm.values[63] = INFINITY;
    wrong[9].norm.row[2] = NAN;
    for (int32_t i = 0; i < 10; i++) assert_false(hr_guard_is_valid(&wrong[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_steps_are_never_spikes),
        cmocka_unit_test(the_limit_equals_the_one_computed_by_hand),
        cmocka_unit_test(constant_losses_have_the_floor_as_spread),
        cmocka_unit_test(non_finite_values_change_nothing),
        cmocka_unit_test(single_spikes_never_move_the_level),
        cmocka_unit_test(a_row_of_spikes_becomes_the_new_level),
        cmocka_unit_test(a_restored_state_continues_identically),
        cmocka_unit_test(noise_is_no_spike_and_jumps_are),
        cmocka_unit_test(invalid_states_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
