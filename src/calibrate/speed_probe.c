/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/speed_probe.c - sums the call times of a small step by class of operations. */
#include "calibrate/speed_probe.h"

#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "calibrate/recipes.h"
#include "ops/list.h"

enum { RUNS = 3 };

/* Two speeds are near each other if every class differs by at most this share. */
static const double near_within = 0.1;

int32_t hr_speed_part(int32_t op)
{
    switch (op) {
    case HR_OP_linear:
    case HR_OP_linear_dx:
    case HR_OP_linear_dw: return HR_SPEED_PRODUCTS;
    case HR_OP_sumsq: return HR_SPEED_UPDATES;
    default: /* in a training step only updates change state in place */
        return strchr(hr_op_table[op]->out, 'u') ? HR_SPEED_UPDATES : HR_SPEED_OTHERS;
    }
}

/* Returns log(a / b) of the class that differs most. */
static double log_ratio_max(const hr_speed *a, const hr_speed *b)
{
    double most = 0;
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++) {
        const double log_ratio = log(a->ns[i] / b->ns[i]);
        if (fabs(log_ratio) > fabs(most)) most = log_ratio;
    }
    return most;
}

double hr_speed_distance(const hr_speed *a, const hr_speed *b)
{
    return fabs(log_ratio_max(a, b));
}

bool hr_speed_is_near(const hr_speed *a, const hr_speed *b)
{
    return hr_speed_distance(a, b) <= log(1 + near_within);
}

hr_speed hr_speed_slower(const hr_speed *a, const hr_speed *b)
{
    hr_speed slower;
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++) slower.ns[i] = fmax(a->ns[i], b->ns[i]);
    return slower;
}

double hr_speed_ratio(const hr_speed *now, const hr_speed *then)
{
    return exp(-log_ratio_max(now, then));
}

hr_status hr_speed_probe_open(hr_speed_probe *speed_probe, const hr_backend *backend,
                              int32_t threads, uint32_t mask, hr_error *err)
{
    hr_config config;
    hr_recipe_config(hr_recipe_of_speed_probe((mask & HR_CPU_AMX) != 0), &config);
    *speed_probe = (hr_speed_probe){ .backend = backend, .mask = mask };
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++) speed_probe->least.ns[i] = INFINITY;
    return hr_probe_open(&speed_probe->probe, &config, backend, threads, mask, err);
}

static double least_ns(const hr_probe_times *times)
{
    int32_t least = INT32_MAX;
    for (int32_t i = 0; i < times->count; i++)
        if (times->ns[i] < least) least = times->ns[i];
    return times->count > 0 ? least : 0;
}

hr_status hr_speed_probe_take(hr_speed_probe *speed_probe, hr_speed *speed, hr_error *err)
{
    hr_probe *probe = &speed_probe->probe;
    const hr_program *program = &probe->compiled.program;
    hr_step_time time;
    hr_speed taken = { .ns = { 0 } };
    hr_probe_clear_times(probe);
    for (int32_t run = 0; run < RUNS; run++) {
        const hr_status status = hr_probe_step(probe, true, &time, err);
        if (status != HR_OK) return status;
    }
    for (int32_t i = 0; i < 2 * program->step_count; i++)
        taken.ns[hr_speed_part(program->steps[i / 2].op)] += least_ns(&probe->times[i]);
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++) {
        taken.ns[i] = fmax(taken.ns[i], 1);
        speed_probe->least.ns[i] = fmin(speed_probe->least.ns[i], taken.ns[i]);
    }
    *speed = taken;
    return HR_OK;
}

void hr_speed_probe_close(hr_speed_probe *speed_probe)
{
    hr_probe_close(&speed_probe->probe);
}
