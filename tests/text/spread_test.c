/* SPDX-License-Identifier: Apache-2.0 */
/* spread_test.c - a walk around a circle, step by step, against the sums in closed form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/spread.h"

enum { MOST = 65536 };

static uint32_t state_of_draws = 1;

static int64_t draw(int64_t below)
{
    state_of_draws = state_of_draws * 1664525u + 1013904223u;
    return (int64_t)((uint64_t)state_of_draws * (uint64_t)below >> 32);
}

/* Walks around a circle of n places with three arcs; every place is met once. */
static void walk(int64_t n)
{
    static uint8_t met[MOST];
    const int64_t stride = hr_spread_stride(n), start = draw(n);
    const int64_t ends[] = { draw(n + 1), draw(n + 1) };
    const int64_t low = ends[0] < ends[1] ? ends[0] : ends[1], high = ends[0] + ends[1] - low;
    const int64_t first[] = { 0, low, high, n };
    int64_t count[3] = { 0 };
    memset(met, 0, sizeof met);
    for (int64_t i = 0; i <= n; i++) {
        for (int k = 0; k < 3; k++) {
            const int64_t length = first[k + 1] - first[k];
            assert_int_equal(hr_spread_count(n, stride, start, i, first[k], length), count[k]);
            assert_true(llabs(count[k] * n - i * length) <= 6 * n);
        }
        if (i == n) break;
        const int64_t place = (start + i * stride) % n;
        assert_int_equal(met[place]++, 0);
        count[place < low ? 0 : place < high ? 1 : 2]++;
    }
}

static void a_walk_comes_to_every_place_once_and_to_arcs_evenly(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 300; n++) walk(n);
    for (int64_t n = 301; n < MOST; n += 1 + draw(3000)) walk(n);
    walk(32002);
    walk(MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_walk_comes_to_every_place_once_and_to_arcs_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
