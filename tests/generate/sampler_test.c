/* SPDX-License-Identifier: Apache-2.0 */
/* sampler_test.c - sampling from logits: the remaining candidates against a plain sort, their
 * frequencies, and that the token depends only on (seed, count, logits). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "generate/sampler.h"

enum { SEED = 31, V = 157, DRAWS = 4000 }; /* more than a block, and a tail */

static float logits[V];
static hr_candidate scratch[V];

static void make_logits(uint64_t turn)
{
    for (int32_t v = 0; v < V; v++)
        logits[v] = (float)(hr_random_mix(SEED + turn * V + (uint64_t)v) % 13) - 6;
}

/* All tokens, the likeliest first, and their probabilities: by definition, with insertion sort. */
static int32_t left_of(const hr_sampling *s, int32_t order[V], double p[V])
{
    double sum = 0, held = 0;
    int32_t most = s->top_k && s->top_k < V ? (int32_t)s->top_k : V, kept = 0;
    for (int32_t v = 0; v < V; v++) {
        int32_t at = v;
        for (; at > 0 && logits[order[at - 1]] < logits[v]; at--) order[at] = order[at - 1];
        order[at] = v;
    }
    for (int32_t i = 0; i < most; i++)
        sum += p[i] = exp(((double)logits[order[i]] - logits[order[0]]) / s->temperature);
    for (; kept < most; kept++) {
        if (kept && (held >= s->top_p * sum || p[kept] < s->min_p * p[0])) break;
        held += p[kept];
    }
    for (int32_t i = 0; i < kept; i++) p[i] /= held;
    return kept;
}

static int32_t pick(const hr_sampling *s, int64_t count)
{
    static int32_t before[DRAWS];
    return hr_sampler_sample(s, logits, HR_F32, V, before, count, scratch);
}

static void tokens_are_sampled_with_their_probabilities(void **state)
{
    (void)state;
    static const hr_sampling all[] = {
        { 1, 1, 0, 1, 0, 1 },     { 1, 0.7, 5, 1, 0, 2 },     { 1, 1.5, 0, 0.6, 0, 3 },
        { 1, 1, 0, 1, 0.3, 4 },   { 1, 2, 12, 0.8, 0.01, 5 }, { 1, 1, 1, 1, 0, 6 },
        { 1, 1, V + 9, 1, 0, 7 }, { 1, 0.3, 3, 0.01, 0, 8 },
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        int32_t order[V], times[V] = { 0 };
        double p[V];
        make_logits(k);
        const int32_t kept = left_of(&all[k], order, p);
        for (int64_t i = 0; i < DRAWS; i++) times[pick(&all[k], i)]++;
        int32_t drawn = 0;
        for (int32_t i = 0; i < kept; i++) {
            const double mean = DRAWS * p[i], deviation = sqrt(mean * (1 - p[i]));
            drawn += times[order[i]];
            assert_true(fabs(times[order[i]] - mean) <= 5 * deviation + 1);
        }
        assert_int_equal(drawn, DRAWS);
    }
}

static void temperature_0_takes_the_likeliest_token_and_the_first_on_ties(void **state)
{
    (void)state;
    const hr_sampling s = { 1, 0, 0, 1, 0, 9 };
    for (uint64_t turn = 0; turn < 20; turn++) {
        make_logits(turn);
        int32_t best = 0;
        for (int32_t v = 1; v < V; v++)
            if (logits[v] > logits[best]) best = v;
        assert_int_equal(pick(&s, (int64_t)turn), best);
    }
}

static void equal_seeds_draw_equal_tokens_and_different_seeds_do_not(void **state)
{
    (void)state;
    hr_sampling s = { 1, 1, 0, 0.9, 0, 10 };
    int32_t first[200], differ = 0;
    make_logits(3);
    for (int64_t i = 0; i < 200; i++) first[i] = pick(&s, i);
    for (int64_t i = 0; i < 200; i++) assert_int_equal(pick(&s, i), first[i]);
    s.seed++;
    for (int64_t i = 0; i < 200; i++) differ += pick(&s, i) != first[i];
    assert_true(differ > 50);
}

static void repeated_tokens_are_penalized_once_for_either_sign(void **state)
{
    (void)state;
    const int32_t before[] = { 0, 2, 0, 0 };
    const float raised[] = { 3, 2, 1.9f }, sunken[] = { -1, -1.5f, -4 };
    const hr_sampling s = { 2, 0, 0, 1, 0, 0 };
    assert_int_equal(hr_sampler_sample(&s, raised, HR_F32, 3, before, 4, scratch), 1); /* 3 / 2 */
    assert_int_equal(hr_sampler_sample(&s, raised, HR_F32, 3, before, 0, scratch), 0);
    assert_int_equal(hr_sampler_sample(&s, sunken, HR_F32, 3, before, 4, scratch), 1); /* -1 x 2 */
    const hr_sampling mild = { 1.4, 0, 0, 1, 0, 0 }; /* 3 / 1.4 once, not three times */
    assert_int_equal(hr_sampler_sample(&mild, raised, HR_F32, 3, before, 4, scratch), 0);
}

static void non_finite_logits_give_no_token(void **state)
{
    (void)state;
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    const hr_sampling greedy = { .repetition_penalty = 1, .top_p = 1 };
    const hr_sampling drawn = { .repetition_penalty = 1, .temperature = 1, .top_k = 3, .top_p = 1 };
    for (int32_t at = 0; at < 3 * V; at++) {
        make_logits(1);
        assert_in_range(hr_sampler_sample(&greedy, logits, HR_F32, V, NULL, 0, scratch), 0, V - 1);
        logits[at / 3] = bad[at % 3];
        assert_int_equal(hr_sampler_sample(&greedy, logits, HR_F32, V, NULL, 0, scratch), -1);
        assert_int_equal(hr_sampler_sample(&drawn, logits, HR_F32, V, NULL, 0, scratch), -1);
    }
}

static void numbers_out_of_range_are_refused(void **state)
{
    (void)state;
    static const hr_sampling wrong[] = { { 1, -1, 0, 1, 0, 0 },     { 1, 1, -1, 1, 0, 0 },
                                         { 1, 1, 0, 0, 0, 0 },      { 1, 1, 0, 1.1, 0, 0 },
                                         { 1, 1, 0, 1, -0.1, 0 },   { 0, 1, 0, 1, 0, 0 },
                                         { 1, NAN, 0, 1, 0, 0 },    { 1, 1, 0, NAN, 0, 0 },
                                         { 0.0099, 1, 0, 1, 0, 0 }, { 101, 1, 0, 1, 0, 0 },
                                         { 1e-39, 1, 0, 1, 0, 0 },  { NAN, 1, 0, 1, 0, 0 } };
    hr_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(hr_sampler_check(&wrong[i], &err), HR_USAGE);
    static const hr_sampling right[] = { { 1.2, 0.8, 40, 0.95, 0.05, 7 },
                                         { 0.01, 0, 0, 1, 0, 0 },
                                         { 100, 100, 0, 1, 1, 0 } };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        assert_int_equal(hr_sampler_check(&right[i], &err), HR_OK);
    const hr_sampling above = { 1, 1, 0, 1.0000001, 0, 0 };
    assert_int_equal(hr_sampler_check(&above, &err), HR_USAGE);
    assert_string_equal(err.message, "--top-p 1.0000001 is not above 0 and at most 1");
}

/* Dividing by less than 1, or multiplying by more, can overflow a large logit. */
static void logits_that_overflow_by_the_penalty_give_no_token(void **state)
{
    (void)state;
    const int32_t before[] = { 1 };
    const float raised[] = { 1, 3e37f, 2 }, sunken[] = { 1, -3e37f, 2 };
    const float *const both[] = { raised, sunken };
    for (int32_t k = 0; k < 4; k++) {
        hr_sampling s = { k & 1 ? 100 : 0.01, 1, k & 2 ? 2 : 0, 1, 0, 0 };
        assert_int_equal(hr_sampler_sample(&s, both[k & 1], HR_F32, 3, before, 1, scratch), -1);
        s.temperature = 0;
        assert_int_equal(hr_sampler_sample(&s, both[k & 1], HR_F32, 3, before, 1, scratch), -1);
        s.repetition_penalty = 2;
        assert_in_range(hr_sampler_sample(&s, both[k & 1], HR_F32, 3, before, 1, scratch), 0, 2);
    }
}

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_sampled_with_their_probabilities),
        cmocka_unit_test(temperature_0_takes_the_likeliest_token_and_the_first_on_ties),
        cmocka_unit_test(equal_seeds_draw_equal_tokens_and_different_seeds_do_not),
        cmocka_unit_test(repeated_tokens_are_penalized_once_for_either_sign),
        cmocka_unit_test(non_finite_logits_give_no_token),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(logits_that_overflow_by_the_penalty_give_no_token),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
