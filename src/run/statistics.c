/* SPDX-License-Identifier: Apache-2.0 */
/* run/statistics.c - the guard's windows as numbers. */
#include "run/statistics.h"

#include <math.h>
#include <string.h>

static double *put_level(double *to, const hr_guard_level *level)
{
    memcpy(to, level->values, sizeof level->values);
    memcpy(to + HR_GUARD_WINDOW, level->row, sizeof level->row);
    to += HR_GUARD_WINDOW + HR_GUARD_ROW;
    *to++ = (double)level->count;
    *to++ = (double)level->next;
    *to++ = (double)level->in_a_row;
    return to;
}

static const double *read_level(const double *from, hr_guard_level *level)
{
    memcpy(level->values, from, sizeof level->values);
    memcpy(level->row, from + HR_GUARD_WINDOW, sizeof level->row);
    from += HR_GUARD_WINDOW + HR_GUARD_ROW;
    level->count = (int64_t)*from++;
    level->next = (int64_t)*from++;
    level->in_a_row = (int64_t)*from++;
    return from;
}

void hr_statistics_put(const hr_guard *guard, hr_run_state *state)
{
    _Static_assert((int)HR_GUARD_WORDS <= (int)HR_STATE_LEVELS, "they have room");
    put_level(put_level(state->levels, &guard->loss), &guard->norm);
    state->level_count = HR_GUARD_WORDS;
}

bool hr_statistics_read(const hr_run_state *state, hr_guard *guard)
{
    for (int64_t i = 0; i < state->level_count; i++)
        if (!isfinite(state->levels[i])) return false;
    if (state->level_count != HR_GUARD_WORDS) return false;
    read_level(read_level(state->levels, &guard->loss), &guard->norm);
    return hr_guard_is_valid(guard);
}
