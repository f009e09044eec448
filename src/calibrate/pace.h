/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/pace.h - how fast the machine is at a moment, in parts that move apart.
 *
 * A fixed small step tells it. Who shares a core slows matrix units to a half and less, vectors by
 * a third, memory hardly: one figure for all would call two moments alike that are not. */
#ifndef HR_CALIBRATE_PACE_H
#define HR_CALIBRATE_PACE_H

#include "calibrate/probe.h"
#include "plan/cost.h"

/* Of HR_PACE_PARTS (plan/cost.h): products, the update of weights, everything else. */
enum { HR_PACE_PRODUCTS, HR_PACE_UPDATES, HR_PACE_PASSES };

/* What the calls of each part took together, > 0. */
typedef struct {
    double ns[HR_PACE_PARTS];
} hr_pace;

/* The part whose pace tells most of an operation's. */
int32_t hr_pace_part(int32_t op);

/* Of the part that differs most: 0 when it was as fast in both, and as far when it was twice as
 * fast as when it was half as fast. */
double hr_pace_distance(const hr_pace *a, const hr_pace *b);

/* Every part within a tenth. */
bool hr_pace_like(const hr_pace *a, const hr_pace *b);

/* Each part as it was where it was slower. */
hr_pace hr_pace_slower(const hr_pace *a, const hr_pace *b);

/* How fast `now` is beside `then`, by the part that differs most: 2 is twice as fast. */
double hr_pace_speed(const hr_pace *now, const hr_pace *then);

/* Runs the small step. */
typedef struct {
    hr_probe probe;
    uint32_t mask;
    hr_pace least; /* each part, of all that were taken; infinite before */
} hr_pacer;

/* Errors   as hr_probe_open. */
HR_MUST_CHECK hr_status hr_pacer_open(hr_pacer *pacer, int32_t threads, uint32_t mask,
                                      hr_error *err);

/* Of each call the least of a few: a thread that was interrupted says nothing of the machine. */
HR_MUST_CHECK hr_status hr_pacer_take(hr_pacer *pacer, hr_pace *pace, hr_error *err);

void hr_pacer_close(hr_pacer *pacer);

#endif
