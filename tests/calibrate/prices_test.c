/* SPDX-License-Identifier: Apache-2.0 */
/* prices_test.c - the fit recovers known prices from times with noise and disturbed calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "calibrate/prices.h"

enum { SEED = 20250312, SAMPLES = 400, OP = 3 };

static double uniform(uint64_t round, uint32_t what)
{
    return hr_random_unit(hr_random_mix(SEED + (round << 8) + what));
}

/* Calls with FLOPs and bytes over several decades. Input 1 costs nothing, input 2 has no bytes. */
static void make_samples(hr_price_sample *samples, double noise, bool disturbed)
{
    for (uint64_t i = 0; i < SAMPLES; i++) {
        hr_price_sample *sample = &samples[i];
        *sample = (hr_price_sample){ .op = OP, .dtype = 1 };
        int64_t *amount = sample->work.amount;
        amount[HR_TERM_FLOPS] = (int64_t)exp(10 + 12 * uniform(i, 0));
        amount[HR_TERM_IN] = (int64_t)exp(8 + 10 * uniform(i, 1));
        amount[HR_TERM_IN + 1] = (int64_t)exp(8 + 10 * uniform(i, 2));
        amount[HR_TERM_OUT] = (int64_t)exp(8 + 10 * uniform(i, 3));
        sample->ns = 3000 + 5e-4 * (double)amount[HR_TERM_FLOPS] +
                     0.03 * (double)amount[HR_TERM_IN] + 0.1 * (double)amount[HR_TERM_OUT];
        sample->ns *= 1 + noise * (2 * uniform(i, 4) - 1);
        if (disturbed && i % 10 == 0) sample->ns *= 3;
    }
}

static void near(int64_t found, double known, double share)
{
    if (fabs((double)found / known - 1) > share)
        fail_msg("found %lld, expected %g", (long long)found, known);
}

static void expect_known(const hr_rate *rate, double share)
{
    near(rate->call_ps, 3e6, share);
    near(rate->unit_as[HR_TERM_FLOPS], 5e5, share);
    near(rate->unit_as[HR_TERM_IN], 3e7, share);
    near(rate->unit_as[HR_TERM_OUT], 1e8, share);
}

static void known_prices_are_recovered(void **state)
{
    (void)state;
    static hr_price_sample samples[SAMPLES];
    static hr_rates rates;
    make_samples(samples, 0, false);
    hr_prices_fit(samples, SAMPLES, &rates);
    expect_known(&rates.op[OP][1], 0.001);
    assert_true(rates.op[OP][1].unit_as[HR_TERM_IN + 1] < 10000);
    make_samples(samples, 0.05, false);
    hr_prices_fit(samples, SAMPLES, &rates);
    expect_known(&rates.op[OP][1], 0.05);
}

static void disturbed_calls_hardly_change_the_prices(void **state)
{
    (void)state;
    static hr_price_sample samples[SAMPLES];
    static hr_rates rates;
    make_samples(samples, 0.02, true);
    hr_prices_fit(samples, SAMPLES, &rates);
    expect_known(&rates.op[OP][1], 0.1);
}

static void operations_without_samples_keep_their_price(void **state)
{
    (void)state;
    static hr_price_sample samples[SAMPLES];
    static hr_rates rates, before;
    for (int32_t op = 0; op < HR_RATE_OPS_MOST; op++)
        for (int32_t dtype = 0; dtype < 2; dtype++)
            for (int32_t t = 0; t < HR_TERM_COUNT; t++)
                rates.op[op][dtype].unit_as[t] = 1000 * op + 100 * dtype + t + 1;
    before = rates;
    make_samples(samples, 0, false);
    hr_prices_fit(samples, SAMPLES, &rates);
    assert_int_equal(rates.op[OP][1].unit_as[HR_TERM_IN + 2],
                     before.op[OP][1].unit_as[HR_TERM_IN + 2]);
    before.op[OP][1] = rates.op[OP][1];
    assert_memory_equal(&rates, &before, sizeof rates);
    hr_prices_fit(samples, 0, &rates);
    assert_memory_equal(&rates, &before, sizeof rates);
}

/* A single time does not say what it depends on: it scales all rates, so twice the work takes
 * longer. */
static void one_sample_scales_the_previous_rates(void **state)
{
    (void)state;
    static hr_rates rates;
    hr_price_sample sample = { .op = OP, .dtype = 1, .ns = 50000 };
    sample.work.amount[HR_TERM_IN] = 1 << 16;
    sample.work.amount[HR_TERM_OUT] = 1 << 15;
    memset(&rates, 0, sizeof rates);
    rates.op[OP][1].call_ps = 2000000;
    rates.op[OP][1].unit_as[HR_TERM_IN] = 100000000;
    rates.op[OP][1].unit_as[HR_TERM_OUT] = 300000000;
    rates.op[OP][1].unit_as[HR_TERM_OUT + 1] = 5;
    hr_prices_fit(&sample, 1, &rates);
    const hr_rate *rate = &rates.op[OP][1];
    assert_true(fabs((double)hr_cost_of(rate, &sample.work) / 50e6 - 1) < 1e-6);
    assert_int_equal(rate->call_ps, 2000000);
    assert_int_equal(rate->unit_as[HR_TERM_OUT + 1], 5);
    sample.work.amount[HR_TERM_IN] *= 2;
    sample.work.amount[HR_TERM_OUT] *= 2;
    assert_true(fabs((double)hr_cost_of(rate, &sample.work) / 98e6 - 1) < 1e-6);
    sample.ns = 1000; /* less than the previous price of a call */
    hr_prices_fit(&sample, 1, &rates);
    assert_int_equal(hr_cost_of(rate, &sample.work), 1000000);
}

/* An input that makes calls shorter: its price must not become negative. */
static void no_price_is_negative(void **state)
{
    (void)state;
    static hr_price_sample samples[SAMPLES];
    static hr_rates rates;
    make_samples(samples, 0, false);
    for (int32_t i = 0; i < SAMPLES; i++)
        samples[i].ns /= 1 + 1e-7 * (double)samples[i].work.amount[HR_TERM_IN + 1];
    hr_prices_fit(samples, SAMPLES, &rates);
    const hr_rate *rate = &rates.op[OP][1];
    assert_true(rate->call_ps >= 0);
    for (int32_t t = 0; t < HR_TERM_COUNT; t++) assert_true(rate->unit_as[t] >= 0);
}

static void a_quantile_has_its_share_below(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 200; round++) {
        double values[64];
        const int32_t count = 1 + (int32_t)(63 * uniform(round, 0));
        const double share = uniform(round, 1);
        for (int32_t i = 0; i < count; i++) values[i] = floor(20 * uniform(round, 2 + (uint32_t)i));
        const double found = hr_prices_quantile(values, count, share);
        int32_t below = 0, same = 0;
        for (int32_t i = 0; i < count; i++) {
            below += values[i] < found;
            same += values[i] == found;
        }
        assert_true(below <= (int32_t)(share * count) && same > 0);
        assert_true(below + same > (int32_t)(share * count));
    }
    assert_true(hr_prices_quantile(NULL, 0, 0.5) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_prices_are_recovered),
        cmocka_unit_test(disturbed_calls_hardly_change_the_prices),
        cmocka_unit_test(operations_without_samples_keep_their_price),
        cmocka_unit_test(one_sample_scales_the_previous_rates),
        cmocka_unit_test(no_price_is_negative),
        cmocka_unit_test(a_quantile_has_its_share_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
