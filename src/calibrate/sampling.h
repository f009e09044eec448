/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/sampling.h - which of the times that were taken hold together.
 *
 * A machine that others use has two speeds or more, and what was learnt at several is true of none.
 * A visit is a few steps of a recipe between two paces. */
#ifndef HR_CALIBRATE_SAMPLING_H
#define HR_CALIBRATE_SAMPLING_H

#include "calibrate/recipes.h"
#include "calibrate/speed_probe.h"

enum {
    HR_TIME_SAMPLES_EACH = 12,    /* of a recipe at most */
    HR_TIME_SAMPLES_OPENINGS = 3, /* of a recipe, where there is time: moments that are far apart */
    HR_TIME_SAMPLES_OPENED = HR_TIME_SAMPLES_EACH /
                             HR_TIME_SAMPLES_OPENINGS /* in an opening, at most */
};

typedef struct {
    int32_t recipe;
    bool kept;
    hr_speed before, after;
    double step_ns; /* its best step */
} hr_time_sample;

typedef struct {
    hr_time_sample of[HR_TIME_SAMPLES_EACH * HR_RECIPES_LEARNED_MOST];
    int32_t count, recipes;
} hr_time_samples;

/* Whether the machine was so on both sides of a visit. */
bool hr_time_samples_at(const hr_time_sample *sample, const hr_speed *speed);

/* How long a recipe may be open, in seconds. */
typedef struct {
    double enough; /* after which no visit begins but the first */
    double most;   /* after which no step does, if there was one */
} hr_time_samples_turn;

/* What is run, and by which clock. */
typedef struct {
    double seconds;                 /* since the clock's zero */
    double (*clock)(void *context); /* seconds */
    hr_status (*open)(void *context, int32_t recipe, const hr_time_samples_turn *turn,
                      hr_error *err);
    void *context;
} hr_time_samples_tour;

/* Opens recipes until each had HR_TIME_SAMPLES_OPENINGS or the time is over: nothing is opened that
 * would not be through by then, were it as long as the longest so far. The first HR_RECIPES_FIRST
 * are opened in any case: without them there would be operations that nobody saw.
 *
 *   now  the machine's pace; `open` keeps it up, and enters at least one visit
 *
 * Errors   of `open`, at once. */
HR_MUST_CHECK hr_status hr_time_samples_make(hr_time_samples *samples,
                                             const hr_time_samples_tour *tour, const hr_speed *now,
                                             hr_error *err);

/* Recipes that were visited. */
int32_t hr_time_samples_seen(const hr_time_samples *samples);

/* Whom to visit at this pace: all once, then whoever was seen at it least. */
int32_t hr_time_samples_next(const hr_time_samples *samples, const hr_speed *now);

/* The pace that prices are to be of: the fastest at which at least half as many recipes were seen
 * as at any other; the middle of the moments like it. */
hr_speed hr_time_samples_speed(const hr_time_samples *samples);

/* Keeps of each recipe the visits at this pace; of one that has none, the one nearest to it. */
void hr_time_samples_keep(hr_time_samples *samples, const hr_speed *speed);

/* What times of such an operation in a visit are multiplied by, to be as at `pace`: 1, but where
 * the whole visit was at another. */
double hr_time_samples_scale(const hr_time_sample *sample, const hr_speed *speed, int32_t op);

#endif
