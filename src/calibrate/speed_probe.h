/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/speed_probe.h - measures the current machine speed, separately for each class of
 * operations.
 *
 * A fixed small step measures it. Another process on the same core slows matrix units to half or
 * less, vector units by a third, and memory hardly at all. A single number could not tell such
 * states apart. */
#ifndef HR_CALIBRATE_SPEED_PROBE_H
#define HR_CALIBRATE_SPEED_PROBE_H

#include "calibrate/probe.h"
#include "plan/cost.h"

/* The HR_SPEED_PARTS (plan/cost.h) classes of operations: matrix products, weight updates, all
 * others. */
enum { HR_SPEED_PRODUCTS, HR_SPEED_UPDATES, HR_SPEED_OTHERS };

/* A machine speed: the total time of the probe's calls of each class, > 0. */
typedef struct {
    double ns[HR_SPEED_PARTS];
} hr_speed;

/* Returns the class of an operation. */
int32_t hr_speed_part(int32_t op);

/* Returns the distance of two speeds: the largest |log ratio| of a class; 0 for equal speeds. */
double hr_speed_distance(const hr_speed *a, const hr_speed *b);

/* Returns whether the speeds differ by at most 10 % in every class. */
bool hr_speed_is_near(const hr_speed *a, const hr_speed *b);

/* Returns the slower time of each class. */
hr_speed hr_speed_slower(const hr_speed *a, const hr_speed *b);

/* Returns the speed `now` relative to `then`, by the class that differs most: 2 is twice as
 * fast. */
double hr_speed_ratio(const hr_speed *now, const hr_speed *then);

/* The probe that runs the small step. */
typedef struct {
    hr_probe probe;
    const hr_backend *backend;
    uint32_t mask;
    hr_speed least; /* the smallest time of each class so far; infinite before the first */
} hr_speed_probe;

/* Errors as hr_probe_open. */
HR_MUST_CHECK hr_status hr_speed_probe_open(hr_speed_probe *speed_probe, const hr_backend *backend,
                                            int32_t threads, uint32_t mask, hr_error *err);

/* Measures the machine speed. Takes the minimum of a few runs for each call, to leave out
 * interrupts. */
HR_MUST_CHECK hr_status hr_speed_probe_take(hr_speed_probe *speed_probe, hr_speed *speed,
                                            hr_error *err);

void hr_speed_probe_close(hr_speed_probe *speed_probe);

#endif
