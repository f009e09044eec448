/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/prices.h - computes rates from timed calls.
 *
 * For each operation and dtype: the nonnegative rates that minimize the relative error of the
 * predicted times. The error is relative, so a call of microseconds has the same weight as one of
 * milliseconds. */
#ifndef HR_CALIBRATE_PRICES_H
#define HR_CALIBRATE_PRICES_H

#include "plan/cost.h"

typedef struct {
    int16_t op;
    uint8_t dtype; /* as hr_cost_dtype */
    double ns;
    hr_work work;
} hr_price_sample;

/* Replaces the rates of every operation and dtype that has samples.
 *
 *   rates  in: rates for operations without samples, for example an estimate; out. A term that is 0
 *          in every sample keeps its rate
 *
 * Cost  a few passes over the samples for each operation. */
void hr_prices_fit(const hr_price_sample *samples, int32_t count, hr_rates *rates);

/* Returns the value that has the given share of the values below it; 0 if count is 0. Reorders the
 * values. */
double hr_prices_quantile(double *values, int32_t count, double share);

#endif
