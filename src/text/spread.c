/* SPDX-License-Identifier: Apache-2.0 */
/* text/spread.c - strides around a circle, and sums of floors. */
#include "text/spread.h"

#include "base/checked.h"

/* The largest quotient in the algorithm of Euclid; INT64_MAX if a and n have a common divisor. */
static int64_t largest_quotient(int64_t n, int64_t a)
{
    int64_t most = 0;
    while (a > 0) {
        const int64_t rest = n % a;
        most = hr_max(most, n / a);
        n = a;
        a = rest;
    }
    return n == 1 ? most : INT64_MAX;
}

/* The smaller the quotients, the more even the walk. */
int64_t hr_spread_stride(int64_t n)
{
    enum { TRIED = 64 };
    int64_t stride = 1, least = INT64_MAX;
    for (int64_t a = hr_max(n * 618 / 1000, 1), last = hr_min(a + TRIED, n); a < last; a++) {
        const int64_t quotient = largest_quotient(n, a);
        if (quotient >= least) continue;
        least = quotient;
        stride = a;
    }
    return stride;
}

/* sum of floor((a i + start) / n) for 0 <= i < count. */
static int64_t floor_sum(int64_t count, int64_t n, int64_t a, int64_t start)
{
    int64_t sum = 0;
    for (;;) {
        sum += count * (count - 1) / 2 * (a / n) + count * (start / n);
        const int64_t rest = a % n, end = rest * count + start % n;
        if (end < n) return sum;
        count = end / n;
        start = end % n;
        a = n;
        n = rest;
    }
}

/* x mod n < c exactly if floor((x + n) / n) - floor((x + n - c) / n) is 1. */
int64_t hr_spread_count(int64_t n, int64_t stride, int64_t start, int64_t steps, int64_t first,
                        int64_t length)
{
    return floor_sum(steps, n, stride, start + n - first) -
           floor_sum(steps, n, stride, start + n - first - length);
}
