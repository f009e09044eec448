/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/prices.c - nonnegative least squares by coordinate descent.
 *
 * The normal equations of one group are at most 16 x 16. Each iteration sets one coordinate to its
 * optimum with the others fixed, or to 0 if the optimum is negative. The sum of squares is convex
 * and never increases. Disturbed calls lie far from their price: they get a smaller weight, and the
 * fit is repeated. */
#include "calibrate/prices.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { UNKNOWNS = 1 + HR_TERM_COUNT, SWEEPS_MOST = 20000, ROUNDS = 8 };

/* Relative error from which the weight of a call decreases. */
static const double error_far = 0.15;

typedef struct {
    double product[UNKNOWNS][UNKNOWNS], right[UNKNOWNS];
    double scale[UNKNOWNS]; /* 0: the amount is 0 in every sample */
    double rate[UNKNOWNS];  /* nanoseconds per unit */
} equations;

/* The coefficients of the unknowns for one sample. */
static void amounts_of(const hr_price_sample *sample, double *amount)
{
    amount[0] = 1;
    for (int32_t t = 0; t < HR_TERM_COUNT; t++) amount[1 + t] = (double)sample->work.amount[t];
}

static double price(const double *rate, const hr_price_sample *sample)
{
    double amount[UNKNOWNS], sum = 0;
    amounts_of(sample, amount);
    for (int32_t u = 0; u < UNKNOWNS; u++) sum += amount[u] * rate[u];
    return sum;
}

static bool in_group(const hr_price_sample *sample, int32_t op, int32_t dtype)
{
    return sample->op == op && sample->dtype == dtype && sample->ns > 0;
}

/* Sums the squares of price - ns, divided by both: a price of twice the time counts as much as one
 * of half of it. */
static void collect(equations *e, const hr_price_sample *samples, int32_t count, int32_t op,
                    int32_t dtype, bool priced)
{
    memset(e->product, 0, sizeof e->product);
    memset(e->right, 0, sizeof e->right);
    for (int32_t i = 0; i < count; i++) {
        if (!in_group(&samples[i], op, dtype)) continue;
        double amount[UNKNOWNS], weight = 1;
        const double ns = samples[i].ns, before = priced ? price(e->rate, &samples[i]) : ns;
        amounts_of(&samples[i], amount);
        if (before > 0) {
            const double error = (fmax(before / ns, ns / before) - 1) / error_far;
            weight = ns / before / (1 + error * error);
        }
        for (int32_t u = 0; u < UNKNOWNS; u++) amount[u] /= ns;
        for (int32_t u = 0; u < UNKNOWNS; u++) {
            e->right[u] += weight * amount[u];
            for (int32_t v = 0; v < UNKNOWNS; v++)
                e->product[u][v] += weight * amount[u] * amount[v];
        }
    }
    for (int32_t u = 0; u < UNKNOWNS; u++) e->scale[u] = sqrt(e->product[u][u]);
}

/* Solves in units in which every diagonal element is 1. */
static void solve(equations *e)
{
    double value[UNKNOWNS];
    for (int32_t u = 0; u < UNKNOWNS; u++) value[u] = e->rate[u] * e->scale[u];
    for (int32_t sweep = 0; sweep < SWEEPS_MOST; sweep++) {
        double moved = 0, largest = 0;
        for (int32_t u = 0; u < UNKNOWNS; u++) {
            if (e->scale[u] == 0) continue;
            double rest = e->right[u] / e->scale[u];
            for (int32_t v = 0; v < UNKNOWNS; v++)
                if (v != u && e->scale[v] > 0)
                    rest -= e->product[u][v] / (e->scale[u] * e->scale[v]) * value[v];
            const double better = rest > 0 ? rest : 0;
            moved = fmax(moved, fabs(better - value[u]));
            largest = fmax(largest, better);
            value[u] = better;
        }
        if (moved <= 1e-9 * largest) break;
    }
    for (int32_t u = 0; u < UNKNOWNS; u++)
        e->rate[u] = e->scale[u] > 0 ? value[u] / e->scale[u] : 0;
}

static int64_t rounded(double value, int64_t most)
{
    return value >= (double)most ? most : (int64_t)(value + 0.5);
}

/* Returns the only sample of a group; null if there are several or none. */
static const hr_price_sample *only_sample(const hr_price_sample *samples, int32_t count, int32_t op,
                                          int32_t dtype)
{
    const hr_price_sample *only = NULL;
    for (int32_t i = 0; i < count; i++) {
        if (samples[i].op != op || samples[i].dtype != dtype) continue;
        if (only) return NULL;
        only = &samples[i];
    }
    return only;
}

/* Least squares would turn a single time into a price per call, independent of the size. Scales the
 * previous rates to that time instead. */
static void scale_to(const hr_price_sample *only, hr_rate *rate)
{
    const double ps = 1e3 * only->ns;
    const double priced = (double)(hr_cost_of(rate, &only->work) - rate->call_ps);
    if (priced <= 0 || ps <= (double)rate->call_ps) {
        rate->call_ps = rounded(ps, HR_RATE_CALL_PS_MOST);
        for (int32_t t = 0; t < HR_TERM_COUNT; t++)
            if (only->work.amount[t]) rate->unit_as[t] = 0;
        return;
    }
    const double factor = (ps - (double)rate->call_ps) / priced;
    for (int32_t t = 0; t < HR_TERM_COUNT; t++)
        if (only->work.amount[t])
            rate->unit_as[t] = rounded(factor * (double)rate->unit_as[t], HR_RATE_UNIT_AS_MOST);
}

static void fit_group(const hr_price_sample *samples, int32_t count, int32_t op, int32_t dtype,
                      hr_rate *rate)
{
    equations e = { .rate = { 0 } };
    const hr_price_sample *only = only_sample(samples, count, op, dtype);
    if (only) {
        scale_to(only, rate);
        return;
    }
    for (int32_t round = 0; round < ROUNDS; round++) {
        collect(&e, samples, count, op, dtype, round > 0);
        if (e.scale[0] == 0) return;
        solve(&e);
    }
    rate->call_ps = rounded(1e3 * e.rate[0], HR_RATE_CALL_PS_MOST);
    for (int32_t t = 0; t < HR_TERM_COUNT; t++)
        if (e.scale[1 + t] > 0)
            rate->unit_as[t] = rounded(1e9 * e.rate[1 + t], HR_RATE_UNIT_AS_MOST);
}

double hr_prices_quantile(double *values, int32_t count, double share)
{
    const int32_t k = hr_min(count - 1, (int64_t)(share * count));
    int32_t low = 0, high = count - 1;
    while (low < high) {
        const double pivot = values[low + (high - low) / 2];
        int32_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot) i++;
            while (values[j] > pivot) j--;
            if (i > j) break;
            const double swapped = values[i];
            values[i++] = values[j];
            values[j--] = swapped;
        }
        if (k > j && k < i) break;
        if (k <= j) high = j;
        else low = i;
    }
    return count > 0 ? values[k] : 0;
}

void hr_prices_fit(const hr_price_sample *samples, int32_t count, hr_rates *rates)
{
    for (int32_t op = 0; op < HR_RATE_OPS_MOST; op++)
        for (int32_t dtype = 0; dtype < HR_COMPUTES; dtype++)
            fit_group(samples, count, op, dtype, &rates->op[op][dtype]);
}
