/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/sampling.h - the sampling schedule, and the selection of time samples.
 *
 * A shared machine has two or more speeds, and prices from mixed samples are valid at none of them.
 * A time sample is a few steps of one recipe between two measurements of the machine speed. */
#ifndef HR_CALIBRATE_SAMPLING_H
#define HR_CALIBRATE_SAMPLING_H

#include "calibrate/recipes.h"
#include "calibrate/speed_probe.h"

enum {
    HR_TIME_SAMPLES_PER_RECIPE = 12, /* maximum */
    HR_RUNS_PER_RECIPE = 3,          /* if time allows: apart in time, so at different speeds */
    HR_TIME_SAMPLES_PER_RUN = HR_TIME_SAMPLES_PER_RECIPE / HR_RUNS_PER_RECIPE /* maximum */
};

typedef struct {
    int32_t recipe;
    bool kept;
    hr_speed before, after;
    double step_ns; /* its fastest step */
} hr_time_sample;

typedef struct {
    hr_time_sample of[HR_TIME_SAMPLES_PER_RECIPE * HR_RECIPES_MAX];
    int32_t count, recipes;
} hr_time_samples;

/* Returns whether the slower of the speeds before and after a sample is near `speed`. */
bool hr_time_sample_is_at(const hr_time_sample *sample, const hr_speed *speed);

/* Limits for one run of a recipe, in seconds from its start. */
typedef struct {
    double soft_seconds; /* after this no time sample begins, except the first */
    double hard_seconds; /* after this no step begins, except the first */
} hr_sampling_limits;

/* How samples are taken, and the clock. */
typedef struct {
    double seconds;                 /* end of sampling, by the clock */
    double (*clock)(void *context); /* seconds */
    hr_status (*run)(void *context, int32_t recipe, const hr_sampling_limits *limits,
                     hr_error *err);
    void *context;
} hr_sampling_schedule;

/* Runs recipes until each ran HR_RUNS_PER_RECIPE times or the time is over. A run begins only if a
 * run as long as the longest so far would end in time. The first HR_RECIPES_REQUIRED recipes always
 * run: without them some operations would have no samples.
 *
 *   now  current machine speed; `run` updates it, and adds at least one time sample
 *
 * Errors   those of `run`, immediately. */
HR_MUST_CHECK hr_status hr_time_samples_collect(hr_time_samples *samples,
                                                const hr_sampling_schedule *schedule,
                                                const hr_speed *now, hr_error *err);

/* Returns the number of recipes with at least one time sample. */
int32_t hr_time_samples_covered(const hr_time_samples *samples);

/* Returns the recipe to sample next: the first without a sample, then the one with the fewest
 * samples at the speed `now`. */
int32_t hr_time_samples_next(const hr_time_samples *samples, const hr_speed *now);

/* Selects the machine speed that prices refer to: the fastest speed at which at least half as many
 * recipes were sampled as at the most sampled one. Returns the geometric mean of the samples near
 * it. */
hr_speed hr_time_samples_speed(const hr_time_samples *samples);

/* Marks the samples to keep: for each recipe those at this speed, or else the nearest one. */
void hr_time_samples_keep(hr_time_samples *samples, const hr_speed *speed);

/* Returns the factor that converts times of an operation in a sample to `speed`: 1, unless the
 * whole sample was at another speed. */
double hr_time_sample_scale(const hr_time_sample *sample, const hr_speed *speed, int32_t op);

#endif
