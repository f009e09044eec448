/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/sampling.c - compares machine speeds and divides the time among recipes. */
#include "calibrate/sampling.h"

#include <math.h>

static hr_speed speed_of(const hr_time_sample *sample)
{
    return hr_speed_slower(&sample->before, &sample->after);
}

bool hr_time_sample_is_at(const hr_time_sample *sample, const hr_speed *speed)
{
    const hr_speed sampled = speed_of(sample);
    return hr_speed_is_near(&sampled, speed);
}

static int32_t count_at(const hr_time_samples *samples, int32_t recipe, const hr_speed *speed)
{
    int32_t count = 0;
    for (int32_t i = 0; i < samples->count; i++)
        count += samples->of[i].recipe == recipe && hr_time_sample_is_at(&samples->of[i], speed);
    return count;
}

static bool is_covered(const hr_time_samples *samples, int32_t recipe)
{
    for (int32_t i = 0; i < samples->count; i++)
        if (samples->of[i].recipe == recipe) return true;
    return false;
}

int32_t hr_time_samples_next(const hr_time_samples *samples, const hr_speed *now)
{
    int32_t next = 0;
    for (int32_t r = 0; r < samples->recipes; r++) {
        if (!is_covered(samples, r)) return r;
        if (count_at(samples, r, now) < count_at(samples, next, now)) next = r;
    }
    return next;
}

int32_t hr_time_samples_covered(const hr_time_samples *samples)
{
    int32_t covered = 0;
    for (int32_t r = 0; r < samples->recipes; r++) covered += is_covered(samples, r);
    return covered;
}

/* A recipe without samples gets an equal share of the remaining time. The soft limit is the time of
 * one run if all runs took the same. */
static hr_sampling_limits limits_of(const hr_time_samples *samples, double seconds, double left)
{
    const int32_t uncovered = samples->recipes - hr_time_samples_covered(samples);
    const double each = seconds / (HR_RUNS_PER_RECIPE * samples->recipes);
    const double most = fmax(left, 0) / (uncovered > 0 ? uncovered : 1);
    return (hr_sampling_limits){ .soft_seconds = fmin(each, most), .hard_seconds = most };
}

hr_status hr_time_samples_collect(hr_time_samples *samples, const hr_sampling_schedule *schedule,
                                  const hr_speed *now, hr_error *err)
{
    double longest = 0;
    for (int32_t i = 0; i < HR_RUNS_PER_RECIPE * samples->recipes; i++) {
        const double begin = schedule->clock(schedule->context);
        const int32_t next = hr_time_samples_next(samples, now);
        const bool required = next < HR_RECIPES_REQUIRED && !is_covered(samples, next);
        if (!required && begin + longest > schedule->seconds) break;
        const hr_sampling_limits limits = limits_of(samples, schedule->seconds,
                                                    schedule->seconds - begin);
        const hr_status status = schedule->run(schedule->context, next, &limits, err);
        if (status != HR_OK) return status;
        longest = fmax(longest, schedule->clock(schedule->context) - begin);
    }
    return HR_OK;
}

static int32_t covered_at(const hr_time_samples *samples, const hr_speed *speed)
{
    int32_t covered = 0;
    for (int32_t r = 0; r < samples->recipes; r++) covered += count_at(samples, r, speed) > 0;
    return covered;
}

static double sum_of(const hr_speed *speed)
{
    double sum = 0;
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++) sum += speed->ns[i];
    return sum;
}

/* Returns the geometric mean of the sample speeds near `speed`. */
static hr_speed mean_near(const hr_time_samples *samples, const hr_speed *speed)
{
    double sum[HR_SPEED_PARTS] = { 0 };
    int32_t count = 0;
    for (int32_t i = 0; i < samples->count; i++) {
        if (!hr_time_sample_is_at(&samples->of[i], speed)) continue;
        const hr_speed sampled = speed_of(&samples->of[i]);
        for (int32_t k = 0; k < HR_SPEED_PARTS; k++) sum[k] += log(sampled.ns[k]);
        count++;
    }
    hr_speed mean = *speed;
    for (int32_t k = 0; k < HR_SPEED_PARTS && count > 0; k++) mean.ns[k] = exp(sum[k] / count);
    return mean;
}

hr_speed hr_time_samples_speed(const hr_time_samples *samples)
{
    int32_t covered[HR_TIME_SAMPLES_PER_RECIPE * HR_RECIPES_MAX], most = 0;
    hr_speed best = { .ns = { 0 } };
    double best_ns = INFINITY;
    for (int32_t i = 0; i < samples->count; i++) {
        const hr_speed sampled = speed_of(&samples->of[i]);
        covered[i] = covered_at(samples, &sampled);
        if (covered[i] > most) most = covered[i];
    }
    for (int32_t i = 0; i < samples->count; i++) {
        const hr_speed sampled = speed_of(&samples->of[i]);
        if (2 * covered[i] < most || sum_of(&sampled) >= best_ns) continue;
        best = sampled;
        best_ns = sum_of(&sampled);
    }
    return mean_near(samples, &best);
}

void hr_time_samples_keep(hr_time_samples *samples, const hr_speed *speed)
{
    for (int32_t r = 0; r < samples->recipes; r++) {
        hr_time_sample *nearest = NULL;
        double least = INFINITY;
        for (int32_t i = 0; i < samples->count; i++) {
            hr_time_sample *sample = &samples->of[i];
            if (sample->recipe != r) continue;
            const hr_speed sampled = speed_of(sample);
            const double distance = hr_speed_distance(&sampled, speed);
            sample->kept = hr_time_sample_is_at(sample, speed);
            if (distance < least) nearest = sample;
            least = fmin(least, distance);
        }
        if (nearest) nearest->kept = true;
    }
}

double hr_time_sample_scale(const hr_time_sample *sample, const hr_speed *speed, int32_t op)
{
    /* If the speed changed during the sample, low times belong to its faster part, and the speed of
     * that part is unknown. */
    if (hr_time_sample_is_at(sample, speed) || !hr_speed_is_near(&sample->before, &sample->after))
        return 1;
    const int32_t part = hr_speed_part(op);
    return 2 * speed->ns[part] / (sample->before.ns[part] + sample->after.ns[part]);
}
