/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/speed_probe.h - how fast the machine is at a moment, in parts that move apart.
 *
 * A fixed small step tells it. Who shares a core slows matrix units to a half and less, vectors by
 * a third, memory hardly: one figure for all would call two moments alike that are not. */
#ifndef HR_CALIBRATE_SPEED_PROBE_H
#define HR_CALIBRATE_SPEED_PROBE_H

#include "calibrate/probe.h"
#include "plan/cost.h"

/* Of HR_SPEED_PARTS (plan/cost.h): products, the update of weights, everything else. */
enum { HR_SPEED_PRODUCTS, HR_SPEED_UPDATES, HR_SPEED_PASSES };

/* What the calls of each part took together, > 0. */
typedef struct {
    double ns[HR_SPEED_PARTS];
} hr_speed;

/* The part whose pace tells most of an operation's. */
int32_t hr_speed_part(int32_t op);

/* Of the part that differs most: 0 when it was as fast in both, and as far when it was twice as
 * fast as when it was half as fast. */
double hr_speed_distance(const hr_speed *a, const hr_speed *b);

/* Every part within a tenth. */
bool hr_speed_like(const hr_speed *a, const hr_speed *b);

/* Each part as it was where it was slower. */
hr_speed hr_speed_slower(const hr_speed *a, const hr_speed *b);

/* How fast `now` is beside `then`, by the part that differs most: 2 is twice as fast. */
double hr_speed_ratio(const hr_speed *now, const hr_speed *then);

/* Runs the small step. */
typedef struct {
    hr_probe probe;
    uint32_t mask;
    hr_speed least; /* each part, of all that were taken; infinite before */
} hr_speed_probe;

/* Errors   as hr_probe_open. */
HR_MUST_CHECK hr_status hr_speed_probe_open(hr_speed_probe *speed_probe, int32_t threads,
                                            uint32_t mask, hr_error *err);

/* Of each call the least of a few: a thread that was interrupted says nothing of the machine. */
HR_MUST_CHECK hr_status hr_speed_probe_take(hr_speed_probe *speed_probe, hr_speed *speed,
                                            hr_error *err);

void hr_speed_probe_close(hr_speed_probe *speed_probe);

#endif
