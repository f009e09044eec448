/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/speed_probe.c - a small step's calls, added up by what they are bound by. */
#include "calibrate/speed_probe.h"

#include <math.h>

#include "base/cpu.h"
#include "calibrate/recipes.h"

enum { RUNS = 3 };

/* Two moments are alike when each part is as near. */
static const double alike_within = 0.1;

int32_t hr_speed_part(int32_t op)
{
    switch (op) {
    case HR_OP_linear:
    case HR_OP_linear_dx:
    case HR_OP_linear_dw: return HR_SPEED_PRODUCTS;
    case HR_OP_adamw:
    case HR_OP_sgd:
    case HR_OP_merge:
    case HR_OP_average:
    case HR_OP_sumsq: return HR_SPEED_UPDATES;
    default: return HR_SPEED_PASSES;
    }
}

/* The logarithm of how much longer the part takes in `a` that differs most. */
static double furthest(const hr_speed *a, const hr_speed *b)
{
    double most = 0;
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++) {
        const double longer = log(a->ns[i] / b->ns[i]);
        if (fabs(longer) > fabs(most)) most = longer;
    }
    return most;
}

double hr_speed_distance(const hr_speed *a, const hr_speed *b)
{
    return fabs(furthest(a, b));
}

bool hr_speed_like(const hr_speed *a, const hr_speed *b)
{
    return hr_speed_distance(a, b) <= log(1 + alike_within);
}

hr_speed hr_speed_slower(const hr_speed *a, const hr_speed *b)
{
    hr_speed slower;
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++) slower.ns[i] = fmax(a->ns[i], b->ns[i]);
    return slower;
}

double hr_speed_ratio(const hr_speed *now, const hr_speed *then)
{
    return exp(-furthest(now, then));
}

hr_status hr_speed_probe_open(hr_speed_probe *speed_probe, int32_t threads, uint32_t mask,
                              hr_error *err)
{
    hr_config config;
    hr_recipe_config(hr_recipe_pace((mask & HR_CPU_AMX) != 0), &config);
    *speed_probe = (hr_speed_probe){ .mask = mask };
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++) speed_probe->least.ns[i] = INFINITY;
    return hr_probe_open(&speed_probe->probe, &config, threads, mask, err);
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
    hr_probe_lap lap;
    hr_speed taken = { .ns = { 0 } };
    hr_probe_forget(probe);
    for (int32_t run = 0; run < RUNS; run++) {
        const hr_status status = hr_probe_step(probe, true, &lap, err);
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
