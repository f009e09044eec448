/* SPDX-License-Identifier: Apache-2.0 */
/* text/cursor.c - counts windows in blocks and passes. */
#include "text/cursor.h"

#include "base/checked.h"

static int64_t rounded_up(int64_t tokens, int64_t T)
{
    return tokens / T + (tokens % T != 0);
}

/* Windows of T tokens in a whole pass. */
static int64_t windows_of(hr_passes p, int64_t T)
{
    return p.tokens / p.unit * rounded_up(p.unit, T) + rounded_up(p.tokens % p.unit, T);
}

/* Tokens from `at` in a pass to the end of its block. */
static int64_t left_in_block(hr_passes p, int64_t at)
{
    return hr_min(p.unit - at % p.unit, p.tokens - at);
}

int64_t hr_passes_unit(const int64_t *lengths, int32_t count)
{
    enum { TIMES_MOST = 16 };
    int64_t longest = 1, best = 0;
    double least = 2;
    for (int32_t i = 0; i < count; i++) longest = hr_max(longest, lengths[i]);
    for (int64_t times = 1; times <= TIMES_MOST; times++) {
        const int64_t unit = times * longest;
        double lost = 0;
        for (int32_t i = 0; i < count; i++)
            lost += 1 - (double)unit / (double)(rounded_up(unit, lengths[i]) * lengths[i]);
        lost /= hr_max(count, 1);
        if (lost >= least) continue;
        least = lost;
        best = unit;
    }
    return best;
}

int64_t hr_passes_after(hr_passes p, int64_t position, int64_t windows, int64_t T)
{
    const int64_t a_block = rounded_up(p.unit, T), a_pass = windows_of(p, T);
    int64_t base = position - position % p.tokens, at = position % p.tokens;
    for (;;) {
        if (at == p.tokens) base += p.tokens;
        if (at == p.tokens) at = 0;
        if (at == 0) {
            base += windows / a_pass * p.tokens;
            windows %= a_pass;
        }
        if (at % p.unit == 0) {
            const int64_t blocks = hr_min((p.tokens - at) / p.unit, windows / a_block);
            at += blocks * p.unit;
            windows -= blocks * a_block;
            if (at == p.tokens) continue;
        }
        const int64_t left = left_in_block(p, at), here = rounded_up(left, T);
        if (windows < here) return base + at + windows * T;
        windows -= here;
        at += left;
    }
}

int64_t hr_passes_windows_to(hr_passes p, int64_t position, int64_t pass, int64_t T)
{
    const int64_t begun = position / p.tokens, at = position % p.tokens;
    if (begun >= pass) return 0;
    const int64_t left = left_in_block(p, at), after = p.tokens - at - left;
    return rounded_up(left, T) + after / p.unit * rounded_up(p.unit, T) +
           rounded_up(after % p.unit, T) + (pass - begun - 1) * windows_of(p, T);
}

int64_t hr_passes_window(hr_passes p, int64_t position, int64_t T)
{
    return hr_min(T, left_in_block(p, position % p.tokens));
}
