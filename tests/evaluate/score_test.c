/* SPDX-License-Identifier: Apache-2.0 */
/* score_test.c - what a token costs: beside sums in long double, far from zero, and of what is not
 * finite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "base/bf16.h"
#include "base/random.h"
#include "evaluate/score.h"

enum { COUNT = 1000 };

static void is_the_cross_entropy(void **state)
{
    (void)state;
    static const double middles[] = { 0, 1e4, -1e4, 3e38 };
    for (size_t m = 0; m < sizeof middles / sizeof *middles; m++)
        for (int32_t n = 1; n <= COUNT; n = 3 * n + 1) {
            float logits[COUNT];
            hr_bf16 halves[COUNT];
            long double sum = 0, half_sum = 0;
            for (int32_t i = 0; i < n; i++) {
                const double x = (double)(hr_random_mix((uint64_t)(i + n)) >> 40) / (1 << 20) - 8;
                logits[i] = (float)(middles[m] + x);
                halves[i] = hr_bf16_from_f32(logits[i]);
            }
            const int32_t target = n / 3;
            const float half = hr_bf16_to_f32(halves[target]);
            for (int32_t i = 0; i < n; i++) {
                sum += expl((long double)logits[i] - logits[target]);
                half_sum += expl((long double)hr_bf16_to_f32(halves[i]) - half);
            }
            const double wanted = (double)logl(sum), half_wanted = (double)logl(half_sum);
            const double got = hr_score(logits, HR_F32, n, target);
            const double half_got = hr_score(halves, HR_BF16, n, target);
            assert_true(fabs(got - wanted) <= 1e-12 * (1 + fabs(wanted)));
            assert_true(fabs(half_got - half_wanted) <= 1e-12 * (1 + fabs(half_wanted)));
        }
}

static void extremes_do_not_overflow(void **state)
{
    (void)state;
    const float far[] = { 3e38f, -3e38f };
    assert_true(hr_score(far, HR_F32, 2, 0) == 0);
    assert_true(hr_score(far, HR_F32, 2, 1) > 5e38);
    assert_true(isfinite(hr_score(far, HR_F32, 2, 1)));
}

static void what_is_not_finite_shows(void **state)
{
    (void)state;
    for (int32_t at = 0; at < 5; at++)
        for (int32_t target = 0; target < 5; target++) {
            float logits[5] = { 1, 2, 3, 4, 5 };
            logits[at] = NAN;
            assert_false(isfinite(hr_score(logits, HR_F32, 5, target)));
            logits[at] = INFINITY;
            assert_false(isfinite(hr_score(logits, HR_F32, 5, target)));
        }
    const float none[] = { -INFINITY, -INFINITY };
    assert_false(isfinite(hr_score(none, HR_F32, 2, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(is_the_cross_entropy),
                                        cmocka_unit_test(extremes_do_not_overflow),
                                        cmocka_unit_test(what_is_not_finite_shows) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
