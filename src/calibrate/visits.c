/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/visits.c - compares paces, and shares out the time. */
#include "calibrate/visits.h"

#include <math.h>

static hr_pace moment_of(const hr_visit *visit)
{
    return hr_pace_slower(&visit->before, &visit->after);
}

bool hr_visits_at(const hr_visit *visit, const hr_pace *pace)
{
    const hr_pace moment = moment_of(visit);
    return hr_pace_like(&moment, pace);
}

static int32_t count_at(const hr_visits *visits, int32_t recipe, const hr_pace *pace)
{
    int32_t count = 0;
    for (int32_t i = 0; i < visits->count; i++)
        count += visits->of[i].recipe == recipe && hr_visits_at(&visits->of[i], pace);
    return count;
}

static bool was_visited(const hr_visits *visits, int32_t recipe)
{
    for (int32_t i = 0; i < visits->count; i++)
        if (visits->of[i].recipe == recipe) return true;
    return false;
}

int32_t hr_visits_next(const hr_visits *visits, const hr_pace *now)
{
    int32_t next = 0;
    for (int32_t r = 0; r < visits->recipes; r++) {
        if (!was_visited(visits, r)) return r;
        if (count_at(visits, r, now) < count_at(visits, next, now)) next = r;
    }
    return next;
}

int32_t hr_visits_seen(const hr_visits *visits)
{
    int32_t seen = 0;
    for (int32_t r = 0; r < visits->recipes; r++) seen += was_visited(visits, r);
    return seen;
}

/* Of the time that is left a recipe that was never visited has its part; one that was, as much as
 * there would be of all the time for each opening. */
static hr_visits_turn turn_of(const hr_visits *visits, double seconds, double left)
{
    const int32_t unseen = visits->recipes - hr_visits_seen(visits);
    const double each = seconds / (HR_VISITS_OPENINGS * visits->recipes);
    const double most = fmax(left, 0) / (unseen > 0 ? unseen : 1);
    return (hr_visits_turn){ .enough = fmin(each, most), .most = most };
}

hr_status hr_visits_make(hr_visits *visits, const hr_visits_tour *tour, const hr_pace *now,
                         hr_error *err)
{
    double longest = 0;
    for (int32_t i = 0; i < HR_VISITS_OPENINGS * visits->recipes; i++) {
        const double begin = tour->clock(tour->context);
        const int32_t next = hr_visits_next(visits, now);
        const bool needed = next < HR_RECIPES_FIRST && !was_visited(visits, next);
        if (!needed && begin + longest > tour->seconds) break;
        const hr_visits_turn turn = turn_of(visits, tour->seconds, tour->seconds - begin);
        const hr_status status = tour->open(tour->context, next, &turn, err);
        if (status != HR_OK) return status;
        longest = fmax(longest, tour->clock(tour->context) - begin);
    }
    return HR_OK;
}

static int32_t recipes_at(const hr_visits *visits, const hr_pace *pace)
{
    int32_t seen = 0;
    for (int32_t r = 0; r < visits->recipes; r++) seen += count_at(visits, r, pace) > 0;
    return seen;
}

static double whole(const hr_pace *pace)
{
    double sum = 0;
    for (int32_t i = 0; i < HR_PACE_PARTS; i++) sum += pace->ns[i];
    return sum;
}

/* The middle of the moments that are like this one. */
static hr_pace centre(const hr_visits *visits, const hr_pace *pace)
{
    double sum[HR_PACE_PARTS] = { 0 };
    int32_t count = 0;
    for (int32_t i = 0; i < visits->count; i++) {
        if (!hr_visits_at(&visits->of[i], pace)) continue;
        const hr_pace moment = moment_of(&visits->of[i]);
        for (int32_t k = 0; k < HR_PACE_PARTS; k++) sum[k] += log(moment.ns[k]);
        count++;
    }
    hr_pace middle = *pace;
    for (int32_t k = 0; k < HR_PACE_PARTS && count > 0; k++) middle.ns[k] = exp(sum[k] / count);
    return middle;
}

hr_pace hr_visits_pace(const hr_visits *visits)
{
    int32_t seen[HR_VISITS_EACH * HR_RECIPES_LEARNED_MOST], most = 0;
    hr_pace best = { .ns = { 0 } };
    double best_ns = INFINITY;
    for (int32_t i = 0; i < visits->count; i++) {
        const hr_pace moment = moment_of(&visits->of[i]);
        seen[i] = recipes_at(visits, &moment);
        if (seen[i] > most) most = seen[i];
    }
    for (int32_t i = 0; i < visits->count; i++) {
        const hr_pace moment = moment_of(&visits->of[i]);
        if (2 * seen[i] < most || whole(&moment) >= best_ns) continue;
        best = moment;
        best_ns = whole(&moment);
    }
    return centre(visits, &best);
}

void hr_visits_keep(hr_visits *visits, const hr_pace *pace)
{
    for (int32_t r = 0; r < visits->recipes; r++) {
        hr_visit *nearest = NULL;
        double least = INFINITY;
        for (int32_t i = 0; i < visits->count; i++) {
            hr_visit *visit = &visits->of[i];
            if (visit->recipe != r) continue;
            const hr_pace moment = moment_of(visit);
            const double distance = hr_pace_distance(&moment, pace);
            visit->kept = hr_visits_at(visit, pace);
            if (distance < least) nearest = visit;
            least = fmin(least, distance);
        }
        if (nearest) nearest->kept = true;
    }
}

double hr_visits_scale(const hr_visit *visit, const hr_pace *pace, int32_t op)
{
    /* Where it changed in between, low times are of the faster side, and nobody knows of which. */
    if (hr_visits_at(visit, pace) || !hr_pace_like(&visit->before, &visit->after)) return 1;
    const int32_t part = hr_pace_part(op);
    return 2 * pace->ns[part] / (visit->before.ns[part] + visit->after.ns[part]);
}
