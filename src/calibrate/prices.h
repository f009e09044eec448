/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/prices.h - from timed calls to rates.
 *
 * For each operation and type, the rates >= 0 whose prices are nearest to the times, each call's
 * error counting as a part of its time: a call of microseconds weighs as much as one of
 * milliseconds. */
#ifndef HR_CALIBRATE_PRICES_H
#define HR_CALIBRATE_PRICES_H

#include "plan/cost.h"

typedef struct {
    int16_t op;
    uint8_t dtype; /* of hr_cost_dtype */
    double ns;
    hr_work work;
} hr_price_sample;

/* Replaces the rates of every operation and type that has samples.
 *
 *   rates  in: what holds where nothing was measured, a guess say; out. A term that no sample has
 *          keeps the rate that it came with
 *
 * Cost  samples are looked at a few times for each operation. */
void hr_prices_fit(const hr_price_sample *samples, int32_t count, hr_rates *rates);

/* The value with this share of them below it; 0 of none. Puts them in another order. */
double hr_prices_quantile(double *values, int32_t count, double share);

#endif
