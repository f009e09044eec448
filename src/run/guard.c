/* SPDX-License-Identifier: Apache-2.0 */
/* run/guard.c - two independent windows, one of losses and one of gradient norms. */
#include "run/guard.h"

#include <math.h>
#include <string.h>

_Static_assert(sizeof(hr_guard) == HR_GUARD_WORDS * sizeof(int64_t), "nothing between the fields");

typedef struct {
    double relative, least; /* the floor is relative * max(|median|, least) */
} floor_of;

/* A cross-entropy has an absolute scale: 0.01 nats are small at any level. A norm has none. */
static const floor_of loss_floor = { 0.01, 1 }, norm_floor = { 0.1, 0 };

/* Sorts values [count] by insertion and returns the median. At most 64 values: some thousand
 * comparisons. */
static double median(double *values, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        const double value = values[i];
        int64_t to = i;
        for (; to > 0 && values[to - 1] > value; to--) values[to] = values[to - 1];
        values[to] = value;
    }
    const double above = values[count / 2];
    return count % 2 ? above : values[count / 2 - 1] / 2 + above / 2;
}

static double limit(const hr_guard_level *level, floor_of least)
{
    const double deviations = 7, per_deviation = 1.4826;
    double sorted[HR_GUARD_WINDOW];
    if (level->count < HR_GUARD_LEAST) return INFINITY;
    memcpy(sorted, level->values, (size_t)level->count * sizeof *sorted);
    const double middle = median(sorted, level->count);
    for (int64_t i = 0; i < level->count; i++) sorted[i] = fabs(level->values[i] - middle);
    const double spread = per_deviation * median(sorted, level->count) +
                          least.relative * fmax(fabs(middle), least.least);
    return spread > 0 ? middle + deviations * spread : INFINITY;
}

static bool is_spike(const hr_guard_level *level, double value, floor_of least)
{
    return level->in_a_row < HR_GUARD_ROW - 1 && value > limit(level, least);
}

static void push(hr_guard_level *level, double value)
{
    level->values[level->next] = value;
    level->next = (level->next + 1) % HR_GUARD_WINDOW;
    if (level->count < HR_GUARD_WINDOW) level->count++;
}

/* Replaces the window by the values of the row. */
static void restart_window(hr_guard_level *level)
{
    hr_guard_level restarted = { 0 };
    for (int64_t i = 0; i < level->in_a_row; i++) push(&restarted, level->row[i]);
    *level = restarted;
}

static bool add_value(hr_guard_level *level, double value, floor_of least)
{
    const bool above = value > limit(level, least);
    if (above) level->row[level->in_a_row++] = value;
    if (above && level->in_a_row < HR_GUARD_ROW) return true;
    if (above) {
        restart_window(level);
        return false;
    }
    memset(level->row, 0, sizeof level->row);
    level->in_a_row = 0;
    push(level, value);
    return false;
}

hr_guard_verdict hr_guard_judge(hr_guard *guard, double loss, double grad_norm)
{
    if (!isfinite(loss) || !isfinite(grad_norm)) return HR_GUARD_NOT_FINITE;
    const bool loss_spike = add_value(&guard->loss, loss, loss_floor);
    const bool norm_spike = add_value(&guard->norm, grad_norm, norm_floor);
    return loss_spike ? HR_GUARD_LOSS_SPIKE : norm_spike ? HR_GUARD_NORM_SPIKE : HR_GUARD_FINE;
}

hr_guard_verdict hr_guard_peek(const hr_guard *guard, double loss)
{
    if (!isfinite(loss)) return HR_GUARD_NOT_FINITE;
    return is_spike(&guard->loss, loss, loss_floor) ? HR_GUARD_LOSS_SPIKE : HR_GUARD_FINE;
}

double hr_guard_loss_limit(const hr_guard *guard)
{
    return limit(&guard->loss, loss_floor);
}

double hr_guard_norm_limit(const hr_guard *guard)
{
    return limit(&guard->norm, norm_floor);
}

static bool is_whole(const hr_guard_level *level)
{
    const int64_t count = level->count;
    if (count < 0 || count > HR_GUARD_WINDOW || level->next < 0 || level->next >= HR_GUARD_WINDOW)
        return false;
    if (count < HR_GUARD_WINDOW && level->next != count) return false;
    if (level->in_a_row < 0 || level->in_a_row >= HR_GUARD_ROW) return false;
    for (int64_t i = 0; i < HR_GUARD_WINDOW; i++)
        if (!isfinite(level->values[i])) return false;
    for (int64_t i = 0; i < HR_GUARD_ROW; i++)
        if (!isfinite(level->row[i])) return false;
    return true;
}

bool hr_guard_is_valid(const hr_guard *guard)
{
    return is_whole(&guard->loss) && is_whole(&guard->norm);
}
