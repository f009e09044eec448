/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/calibrate.c - runs recipes to learn prices.
 *
 * Before and after each recipe the pace is taken: how fast is the machine now? Prices are those of
 * one pace (visits.h). Of the times of one call a low one is taken, as what disturbs a call makes
 * it longer; but the low times of all calls add up to less than any step takes: they are raised
 * until, in the middle of all recipes, they add up to its best. */
#include "headroom/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "calibrate/machine.h"
#include "calibrate/prices.h"
#include "calibrate/rates_file.h"
#include "calibrate/visits.h"

enum { SAMPLES_MOST = 32768, STEPS_LEAST = 3, STEPS_MOST = 60 };

/* Where in the times of a call its time is read: the least is luck, the middle is company. */
static const double quiet_share = 0.2;

/* Times of calls are raised, or lowered, by no more to make up their steps. */
static const double levelled_most = 1.2;

/* ---- samples */

/* Where a sample came from: slot of the probe's times. */
typedef struct {
    int32_t visit, slot;
    double calls; /* such calls in a step */
} origin;

typedef struct {
    hr_price_sample *samples; /* [SAMPLES_MOST] */
    origin *origins;          /* [SAMPLES_MOST] */
    double *errors;           /* [SAMPLES_MOST] */
    int32_t count;
} ledger;

/* Off the stack: who opens a probe plans for the stack as deep as it is then. */
typedef struct {
    ledger ledger;
    hr_visits visits;
    hr_pacer pacer;
    hr_rates rates;
} desk;

static void enter(ledger *l, const hr_price_sample *sample, const origin *from)
{
    if (l->count == SAMPLES_MOST) return;
    l->origins[l->count] = *from;
    l->samples[l->count++] = *sample;
}

static void enter_all(ledger *l, const hr_probe *probe, int32_t index, int32_t steps)
{
    const hr_program *program = &probe->compiled.program;
    for (int32_t i = 0; i < 2 * program->step_count; i++) {
        const hr_probe_times *times = &probe->times[i];
        const int32_t step = i / 2;
        double ns[HR_PROBE_TIMES];
        if (times->count == 0 || program->ops[program->steps[step].op]->host) continue;
        for (int32_t k = 0; k < times->count; k++) ns[k] = times->ns[k];
        const hr_price_sample sample = { .op = program->steps[step].op,
                                         .dtype = (uint8_t)hr_cost_dtype(program, step),
                                         .ns = hr_prices_quantile(ns, times->count, quiet_share),
                                         .work = hr_cost_work(program, step, INT64_MAX, i % 2,
                                                              probe->pool.threads) };
        enter(l, &sample, &(origin){ index, i, (double)times->calls / steps });
    }
}

/* A step to warm up, then as many as there is time for. */
static hr_status learn(ledger *l, hr_visits *v, int32_t recipe, const hr_pacer *pacer,
                       double seconds, hr_error *err)
{
    hr_config config;
    hr_probe probe;
    hr_probe_lap lap;
    int32_t steps = 0;
    hr_visit *made = &v->of[v->count];
    hr_recipe_config(hr_recipe_learned(recipe), &config);
    *made = (hr_visit){ .recipe = recipe, .step_ns = INFINITY };
    const int64_t begin = hr_clock_ns();
    hr_status status = hr_probe_open(&probe, &config, pacer->probe.pool.threads, pacer->mask, err);
    if (status != HR_OK) return status;
    status = hr_probe_step(&probe, false, &lap, err);
    for (; steps < STEPS_MOST && status == HR_OK; steps++) {
        if (steps >= STEPS_LEAST && 1e-9 * (double)(hr_clock_ns() - begin) > seconds) break;
        status = hr_probe_step(&probe, true, &lap, err);
        made->step_ns = fmin(made->step_ns, (double)lap.cpu_ns);
    }
    if (status == HR_OK) enter_all(l, &probe, v->count++, steps);
    hr_probe_close(&probe);
    return status;
}

/* The same call of a recipe in all visits that are kept: the least of its times, as at `pace`. */
static void gather(ledger *l, const hr_visits *v, const hr_pace *pace)
{
    int32_t count = 0;
    for (int32_t i = 0; i < l->count; i++) {
        const hr_visit *from = &v->of[l->origins[i].visit];
        int32_t known = 0;
        if (!from->kept) continue;
        const double ns = l->samples[i].ns * hr_visits_scale(from, pace, l->samples[i].op);
        while (known < count && (l->origins[known].slot != l->origins[i].slot ||
                                 v->of[l->origins[known].visit].recipe != from->recipe))
            known++;
        if (known < count) {
            l->samples[known].ns = fmin(l->samples[known].ns, ns);
            continue;
        }
        l->samples[count] = l->samples[i];
        l->samples[count].ns = ns;
        l->origins[count++] = l->origins[i];
    }
    l->count = count;
}

/* How much longer the best step of a recipe is than its calls together: the middle of those that
 * were seen at the pace. */
static double step_share(const ledger *l, const hr_visits *v, const hr_pace *pace)
{
    double factors[HR_RECIPES_LEARNED_MOST];
    int32_t count = 0;
    for (int32_t r = 0; r < v->recipes; r++) {
        double calls_ns = 0, step_ns = INFINITY;
        for (int32_t i = 0; i < l->count; i++)
            if (v->of[l->origins[i].visit].recipe == r)
                calls_ns += l->origins[i].calls * l->samples[i].ns;
        for (int32_t i = 0; i < v->count; i++)
            if (v->of[i].recipe == r && hr_visits_at(&v->of[i], pace))
                step_ns = fmin(step_ns, v->of[i].step_ns);
        if (calls_ns > 0 && step_ns < INFINITY) factors[count++] = step_ns / calls_ns;
    }
    const double factor = count > 0 ? hr_prices_quantile(factors, count, 0.5) : 1;
    return fmin(fmax(factor, 1 / levelled_most), levelled_most);
}

/* The same work is one sample: the mean of its times, times `factor`. */
static void merge(ledger *l, double factor)
{
    int32_t count = 0;
    for (int32_t i = 0; i < l->count; i++) {
        const hr_price_sample sample = l->samples[i];
        int32_t same = 0;
        while (same < count &&
               (l->samples[same].op != sample.op || l->samples[same].dtype != sample.dtype ||
                memcmp(&l->samples[same].work, &sample.work, sizeof sample.work)))
            same++;
        if (same == count) {
            l->samples[count] = sample;
            l->samples[count].ns *= factor;
            l->errors[count++] = 1;
            continue;
        }
        l->samples[same].ns += (factor * sample.ns - l->samples[same].ns) / ++l->errors[same];
    }
    l->count = count;
}

/* Leaves the pace that the samples belong to. */
static hr_status learn_all(const hr_calibrate_request *request, desk *d, hr_pace *pace,
                           int32_t *recipes, hr_error *err)
{
    ledger *l = &d->ledger;
    hr_visits *v = &d->visits;
    hr_pace before;
    while (hr_recipe_learned(v->recipes) && (!request->recipes || v->recipes < request->recipes))
        v->recipes++;
    const int32_t most = HR_VISITS_EACH * v->recipes;
    *recipes = v->recipes;
    const int64_t begin = hr_clock_ns();
    hr_status status = hr_pacer_take(&d->pacer, &before, err);
    while (v->count < most && status == HR_OK) {
        if (v->count >= v->recipes && 1e-9 * (double)(hr_clock_ns() - begin) > request->seconds)
            break;
        if (request->progress) request->progress(request->context, v->count, most);
        hr_visit *made = &v->of[v->count];
        status = learn(l, v, hr_visits_next(v, &before), &d->pacer, request->seconds / most, err);
        if (status != HR_OK) return status;
        made->before = before;
        status = hr_pacer_take(&d->pacer, &before, err);
        made->after = before;
    }
    if (request->progress) request->progress(request->context, most, most);
    if (status != HR_OK) return status;
    *pace = hr_visits_pace(v);
    hr_visits_keep(v, pace);
    gather(l, v, pace);
    merge(l, step_share(l, v, pace));
    return HR_OK;
}

/* ---- what the report says of the machine */

static hr_status measure_fork_join(hr_memory *memory, int32_t threads, double *seconds,
                                   hr_error *err)
{
    hr_pool pool;
    void *stacks;
    const int64_t bytes = hr_pool_bytes(threads);
    hr_status status = hr_memory_stacks_open(memory, bytes, &stacks, err);
    if (status == HR_OK) status = hr_pool_open(&pool, stacks, bytes, threads, err);
    if (status != HR_OK) return status;
    *seconds = 1e-9 * (double)hr_probe_join_ns(&pool);
    hr_pool_close(&pool);
    return HR_OK;
}

static void describe(const ledger *l, const hr_rates *rates, hr_calibrate_report *report)
{
    for (int32_t i = 0; i < l->count; i++) {
        const hr_price_sample *sample = &l->samples[i];
        const hr_rate *rate = &rates->op[sample->op][sample->dtype];
        const double priced = 1e-3 * (double)hr_cost_of(rate, &sample->work);
        const double per_second = 1e9 / sample->ns;
        l->errors[i] = fabs(priced / sample->ns - 1);
        if (sample->op == HR_OP_linear || sample->op == HR_OP_linear_dx) {
            double *most = &report->products[sample->dtype];
            *most = fmax(*most, per_second * (double)sample->work.amount[HR_TERM_FLOPS]);
        }
        if (sample->op == HR_OP_adamw) { /* state is read and written, a gradient is read */
            double bytes = (double)sample->work.amount[HR_TERM_IN];
            if (bytes < 1 << 24) continue; /* this much leaves the caches */
            for (int32_t k = 0; k < 3; k++)
                bytes += 2 * (double)sample->work.amount[HR_TERM_OUT + k];
            bytes += (double)sample->work.amount[HR_TERM_OUT + 3];
            report->memory = fmax(report->memory, per_second * bytes);
        }
    }
    report->calls = l->count;
    report->error_median = hr_prices_quantile(l->errors, l->count, 0.5);
    report->error_high = hr_prices_quantile(l->errors, l->count, 0.9);
}

static hr_status open_desk(hr_memory *memory, desk **opened, hr_error *err)
{
    hr_region region;
    const ledger *l = NULL;
    const int64_t each = sizeof *l->samples + sizeof *l->origins + sizeof *l->errors;
    const int64_t bytes = SAMPLES_MOST * each + (int64_t)sizeof(desk) + 256;
    hr_status status = hr_memory_open(memory, err);
    if (status == HR_OK) status = hr_memory_region_open(memory, "calibration", bytes, &region, err);
    if (status != HR_OK) return status;
    desk *d = hr_region_take(&region, 1, sizeof *d);
    d->ledger.samples = hr_region_take(&region, SAMPLES_MOST, sizeof *d->ledger.samples);
    d->ledger.origins = hr_region_take(&region, SAMPLES_MOST, sizeof *d->ledger.origins);
    d->ledger.errors = hr_region_take(&region, SAMPLES_MOST, sizeof *d->ledger.errors);
    *opened = d;
    return HR_OK;
}

static hr_status calibrate(const hr_calibrate_request *request, hr_memory *memory,
                           hr_calibrate_report *report, hr_error *err)
{
    desk *d = NULL;
    hr_pace pace;
    hr_rates_machine machine;
    uint32_t mask;
    int32_t threads;
    hr_status status = hr_calibrate_machine(request, &mask, &threads, err);
    if (status == HR_OK) status = hr_directory_check(request->directory, err);
    if (status == HR_OK) status = open_desk(memory, &d, err);
    if (status == HR_OK) status = measure_fork_join(memory, threads, &report->fork_join, err);
    if (status == HR_OK) status = hr_pacer_open(&d->pacer, threads, mask, err);
    if (status != HR_OK) return status;
    status = learn_all(request, d, &pace, &report->recipes, err);
    hr_pacer_close(&d->pacer);
    if (status != HR_OK) return status;
    hr_rates_guess(hr_op_table, HR_OP_COUNT, mask, threads, &d->rates);
    for (int32_t i = 0; i < HR_PACE_PARTS; i++)
        d->rates.pace_us[i] = (int32_t)fmin(fmax(1e-3 * pace.ns[i], 1), INT32_MAX);
    hr_prices_fit(d->ledger.samples, d->ledger.count, &d->rates);
    describe(&d->ledger, &d->rates, report);
    report->threads = threads;
    snprintf(report->rung, sizeof report->rung, "%s", hr_cpu_rung_name(mask));
    char name[HR_RATES_NAME_BYTES];
    hr_rates_machine_of(hr_op_table, HR_OP_COUNT, mask, threads, &machine);
    hr_rates_name(&machine, name);
    snprintf(report->file, sizeof report->file, "%s/%s", request->directory, name);
    return hr_rates_save(request->directory, hr_op_table, HR_OP_COUNT, &machine, request->date,
                         &d->rates, err);
}

hr_status hr_calibrate(const hr_calibrate_request *request, hr_calibrate_report *report,
                       hr_error *err)
{
    const int64_t begin = hr_clock_ns();
    hr_memory memory = { 0 };
    hr_calibrate_report made = { .seconds = 0 };
    const hr_status status = calibrate(request, &memory, &made, err);
    hr_memory_close(&memory);
    made.seconds = 1e-9 * (double)(hr_clock_ns() - begin);
    if (status == HR_OK) *report = made;
    return status;
}
