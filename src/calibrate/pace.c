/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/pace.c - a small step's calls, added up by what they are bound by. */
#include "calibrate/pace.h"

#include <math.h>

#include "base/cpu.h"
#include "calibrate/recipes.h"

enum { RUNS = 3 };

/* Two moments are alike when each part is as near. */
static const double alike_within = 0.1;

int32_t hr_pace_part(int32_t op)
{
    switch (op) {
    case HR_OP_linear:
    case HR_OP_linear_dx:
    case HR_OP_linear_dw: return HR_PACE_PRODUCTS;
    case HR_OP_adamw:
    case HR_OP_sgd:
    case HR_OP_merge:
    case HR_OP_average:
    case HR_OP_sumsq: return HR_PACE_UPDATES;
    default: return HR_PACE_PASSES;
    }
}

/* The logarithm of how much longer the part takes in `a` that differs most. */
static double furthest(const hr_pace *a, const hr_pace *b)
{
    double most = 0;
    for (int32_t i = 0; i < HR_PACE_PARTS; i++) {
        const double longer = log(a->ns[i] / b->ns[i]);
        if (fabs(longer) > fabs(most)) most = longer;
    }
    return most;
}

double hr_pace_distance(const hr_pace *a, const hr_pace *b)
{
    return fabs(furthest(a, b));
}

bool hr_pace_like(const hr_pace *a, const hr_pace *b)
{
    return hr_pace_distance(a, b) <= log(1 + alike_within);
}

hr_pace hr_pace_slower(const hr_pace *a, const hr_pace *b)
{
    hr_pace slower;
    for (int32_t i = 0; i < HR_PACE_PARTS; i++) slower.ns[i] = fmax(a->ns[i], b->ns[i]);
    return slower;
}

double hr_pace_speed(const hr_pace *now, const hr_pace *then)
{
    return exp(-furthest(now, then));
}

hr_status hr_pacer_open(hr_pacer *pacer, int32_t threads, uint32_t mask, hr_error *err)
{
    hr_config config;
    hr_recipe_config(hr_recipe_pace((mask & HR_CPU_AMX) != 0), &config);
    *pacer = (hr_pacer){ .mask = mask };
    for (int32_t i = 0; i < HR_PACE_PARTS; i++) pacer->least.ns[i] = INFINITY;
    return hr_probe_open(&pacer->probe, &config, threads, mask, err);
}

static double least_ns(const hr_probe_times *times)
{
    int32_t least = INT32_MAX;
    for (int32_t i = 0; i < times->count; i++)
        if (times->ns[i] < least) least = times->ns[i];
    return times->count > 0 ? least : 0;
}

hr_status hr_pacer_take(hr_pacer *pacer, hr_pace *pace, hr_error *err)
{
    hr_probe *probe = &pacer->probe;
    const hr_program *program = &probe->compiled.program;
    hr_probe_lap lap;
    hr_pace taken = { .ns = { 0 } };
    hr_probe_forget(probe);
    for (int32_t run = 0; run < RUNS; run++) {
        const hr_status status = hr_probe_step(probe, true, &lap, err);
        if (status != HR_OK) return status;
    }
    for (int32_t i = 0; i < 2 * program->step_count; i++)
        taken.ns[hr_pace_part(program->steps[i / 2].op)] += least_ns(&probe->times[i]);
    for (int32_t i = 0; i < HR_PACE_PARTS; i++) {
        taken.ns[i] = fmax(taken.ns[i], 1);
        pacer->least.ns[i] = fmin(pacer->least.ns[i], taken.ns[i]);
    }
    *pace = taken;
    return HR_OK;
}

void hr_pacer_close(hr_pacer *pacer)
{
    hr_probe_close(&pacer->probe);
}
