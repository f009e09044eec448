/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/sampling.c - compares paces, and shares out the time. */
#include "calibrate/sampling.h"

#include <math.h>

static hr_speed moment_of(const hr_time_sample *sample)
{
    return hr_speed_slower(&sample->before, &sample->after);
}

bool hr_time_samples_at(const hr_time_sample *sample, const hr_speed *speed)
{
    const hr_speed moment = moment_of(sample);
    return hr_speed_like(&moment, speed);
}

static int32_t count_at(const hr_time_samples *samples, int32_t recipe, const hr_speed *speed)
{
    int32_t count = 0;
    for (int32_t i = 0; i < samples->count; i++)
        count += samples->of[i].recipe == recipe && hr_time_samples_at(&samples->of[i], speed);
    return count;
}

static bool was_visited(const hr_time_samples *samples, int32_t recipe)
{
    for (int32_t i = 0; i < samples->count; i++)
        if (samples->of[i].recipe == recipe) return true;
    return false;
}

int32_t hr_time_samples_next(const hr_time_samples *samples, const hr_speed *now)
{
    int32_t next = 0;
    for (int32_t r = 0; r < samples->recipes; r++) {
        if (!was_visited(samples, r)) return r;
        if (count_at(samples, r, now) < count_at(samples, next, now)) next = r;
    }
    return next;
}

int32_t hr_time_samples_seen(const hr_time_samples *samples)
{
    int32_t seen = 0;
    for (int32_t r = 0; r < samples->recipes; r++) seen += was_visited(samples, r);
    return seen;
}

/* Of the time that is left a recipe that was never visited has its part; one that was, as much as
 * there would be of all the time for each opening. */
static hr_time_samples_turn turn_of(const hr_time_samples *samples, double seconds, double left)
{
    const int32_t unseen = samples->recipes - hr_time_samples_seen(samples);
    const double each = seconds / (HR_TIME_SAMPLES_OPENINGS * samples->recipes);
    const double most = fmax(left, 0) / (unseen > 0 ? unseen : 1);
    return (hr_time_samples_turn){ .enough = fmin(each, most), .most = most };
}

hr_status hr_time_samples_make(hr_time_samples *samples, const hr_time_samples_tour *tour,
                               const hr_speed *now, hr_error *err)
{
    double longest = 0;
    for (int32_t i = 0; i < HR_TIME_SAMPLES_OPENINGS * samples->recipes; i++) {
        const double begin = tour->clock(tour->context);
        const int32_t next = hr_time_samples_next(samples, now);
        const bool needed = next < HR_RECIPES_FIRST && !was_visited(samples, next);
        if (!needed && begin + longest > tour->seconds) break;
        const hr_time_samples_turn turn = turn_of(samples, tour->seconds, tour->seconds - begin);
        const hr_status status = tour->open(tour->context, next, &turn, err);
        if (status != HR_OK) return status;
        longest = fmax(longest, tour->clock(tour->context) - begin);
    }
    return HR_OK;
}

static int32_t recipes_at(const hr_time_samples *samples, const hr_speed *speed)
{
    int32_t seen = 0;
    for (int32_t r = 0; r < samples->recipes; r++) seen += count_at(samples, r, speed) > 0;
    return seen;
}

static double whole(const hr_speed *speed)
{
    double sum = 0;
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++) sum += speed->ns[i];
    return sum;
}

/* The middle of the moments that are like this one. */
static hr_speed centre(const hr_time_samples *samples, const hr_speed *speed)
{
    double sum[HR_SPEED_PARTS] = { 0 };
    int32_t count = 0;
    for (int32_t i = 0; i < samples->count; i++) {
        if (!hr_time_samples_at(&samples->of[i], speed)) continue;
        const hr_speed moment = moment_of(&samples->of[i]);
        for (int32_t k = 0; k < HR_SPEED_PARTS; k++) sum[k] += log(moment.ns[k]);
        count++;
    }
    hr_speed middle = *speed;
    for (int32_t k = 0; k < HR_SPEED_PARTS && count > 0; k++) middle.ns[k] = exp(sum[k] / count);
    return middle;
}

hr_speed hr_time_samples_speed(const hr_time_samples *samples)
{
    int32_t seen[HR_TIME_SAMPLES_EACH * HR_RECIPES_LEARNED_MOST], most = 0;
    hr_speed best = { .ns = { 0 } };
    double best_ns = INFINITY;
    for (int32_t i = 0; i < samples->count; i++) {
        const hr_speed moment = moment_of(&samples->of[i]);
        seen[i] = recipes_at(samples, &moment);
        if (seen[i] > most) most = seen[i];
    }
    for (int32_t i = 0; i < samples->count; i++) {
        const hr_speed moment = moment_of(&samples->of[i]);
        if (2 * seen[i] < most || whole(&moment) >= best_ns) continue;
        best = moment;
        best_ns = whole(&moment);
    }
    return centre(samples, &best);
}

void hr_time_samples_keep(hr_time_samples *samples, const hr_speed *speed)
{
    for (int32_t r = 0; r < samples->recipes; r++) {
        hr_time_sample *nearest = NULL;
        double least = INFINITY;
        for (int32_t i = 0; i < samples->count; i++) {
            hr_time_sample *sample = &samples->of[i];
            if (sample->recipe != r) continue;
            const hr_speed moment = moment_of(sample);
            const double distance = hr_speed_distance(&moment, speed);
            sample->kept = hr_time_samples_at(sample, speed);
            if (distance < least) nearest = sample;
            least = fmin(least, distance);
        }
        if (nearest) nearest->kept = true;
    }
}

double hr_time_samples_scale(const hr_time_sample *sample, const hr_speed *speed, int32_t op)
{
    /* Where it changed in between, low times are of the faster side, and nobody knows of which. */
    if (hr_time_samples_at(sample, speed) || !hr_speed_like(&sample->before, &sample->after))
        return 1;
    const int32_t part = hr_speed_part(op);
    return 2 * speed->ns[part] / (sample->before.ns[part] + sample->after.ns[part]);
}
