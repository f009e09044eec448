/* SPDX-License-Identifier: Apache-2.0 */
/* report/runs.c - losses of a run in a fixed number of points, and the keys in which recipes
 * differ. */
#include "headroom/runs.h"

#include <math.h>
#include <string.h>

static void add(hr_run_loss *to, const hr_run_loss *point)
{
    to->step += point->step;
    to->tokens += point->tokens;
    to->seconds += point->seconds;
    to->loss += point->loss;
}

/* Each pair of full points becomes one. */
static void halve(hr_run_losses *losses)
{
    for (int32_t i = 0; i < HR_RUN_LOSSES_MOST / 2; i++) {
        losses->points[i] = losses->points[2 * i];
        add(&losses->points[i], &losses->points[2 * i + 1]);
    }
    losses->count = HR_RUN_LOSSES_MOST / 2;
    losses->stride *= 2;
    losses->last_count = losses->stride;
}

void hr_run_losses_add(hr_run_losses *losses, hr_run_loss point)
{
    if (!isfinite(point.loss + point.step + point.tokens + point.seconds)) return;
    if (!losses->stride) losses->stride = losses->last_count = 1;
    if (losses->count == HR_RUN_LOSSES_MOST && losses->last_count == losses->stride) halve(losses);
    if (!losses->count || losses->last_count == losses->stride) {
        losses->points[losses->count++] = point;
        losses->last_count = 1;
        return;
    }
    add(&losses->points[losses->count - 1], &point);
    losses->last_count++;
}

hr_run_loss hr_run_losses_at(const hr_run_losses *losses, int32_t i)
{
    const hr_run_loss *sum = &losses->points[i];
    const double count = i + 1 < losses->count ? losses->stride : losses->last_count;
    return (hr_run_loss){ sum->step / count, sum->tokens / count, sum->seconds / count,
                          sum->loss / count };
}

const char *hr_run_value(const hr_run *run, const char *key, char text[HR_VALUE_BYTES])
{
    if (!run->recipe || hr_config_get(run->recipe, key, text, HR_VALUE_BYTES, NULL) != HR_OK)
        return "-";
    return *text ? text : "unset";
}

static bool differs(const hr_run *runs, int32_t count, const char *key)
{
    char first[HR_VALUE_BYTES], other[HR_VALUE_BYTES];
    int32_t known = 0;
    while (known < count && !runs[known].recipe) known++;
    for (int32_t i = known + 1; i < count; i++)
        if (runs[i].recipe &&
            strcmp(hr_run_value(&runs[known], key, first), hr_run_value(&runs[i], key, other)) != 0)
            return true;
    return false;
}

const hr_key *hr_runs_next_difference(const hr_run *runs, int32_t count, int32_t from, int32_t *row)
{
    const hr_key *key;
    for (int32_t k = from; (key = hr_config_key(k)); k++) {
        if (!strcmp(key->name, "train.out") || !differs(runs, count, key->name)) continue;
        *row = k;
        return key;
    }
    return NULL;
}
