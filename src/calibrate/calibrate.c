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
#include "calibrate/disk.h"
#include "calibrate/machine.h"
#include "calibrate/prices.h"
#include "calibrate/rates_file.h"
#include "calibrate/sampling.h"

enum {
    CALLS_MOST = 16384,
    TIMES_MOST = 1 << 20,
    STEPS_LEAST = 2, /* of a visit, where there is time for them */
    STEPS_MOST = 8,
    VISIT_NS = 40000000 /* and as long, unless there were so many */
};

/* Where in the times of a call its time is read: the least is luck, the middle is company. */
static const double quiet_share = 0.2;

/* Times of calls are raised, or lowered, by no more to make up their steps. */
static const double levelled_most = 1.2;

/* ---- samples */

/* A call of a recipe: slot of its probe's times. */
typedef struct {
    int32_t recipe, slot;
    double per_step;   /* such calls in a step */
    int32_t last_time; /* HR_NONE: none */
} timed_call;

typedef struct {
    int32_t sample, before; /* before: an earlier time of the same call, or HR_NONE */
    float ns;
} call_time;

typedef struct {
    hr_price_sample *samples; /* [CALLS_MOST], beside `calls` until they are merged */
    timed_call *calls;        /* [CALLS_MOST] */
    call_time *times;         /* [TIMES_MOST] */
    double *errors;           /* [TIMES_MOST] */
    int32_t count, time_count;
} ledger;

/* Off the stack: who opens a probe plans for the stack as deep as it is then. */
typedef struct {
    const hr_calibrate_request *request;
    int64_t begin_ns; /* of everything */
    int32_t openings;
    ledger ledger;
    hr_time_samples samples;
    hr_speed_probe speed_probe;
    hr_speed now;
    hr_rates rates;
    void *disk; /* [HR_DISK_PIECE_BYTES] */
} desk;

/* HR_NONE when the ledger is full. */
static int32_t find_call(ledger *l, const hr_probe *probe, int32_t recipe, int32_t slot,
                         double per_step)
{
    const hr_program *program = &probe->compiled.program;
    for (int32_t i = 0; i < l->count; i++)
        if (l->calls[i].recipe == recipe && l->calls[i].slot == slot) return i;
    if (l->count == CALLS_MOST) return HR_NONE;
    const int32_t step = slot / 2;
    l->calls[l->count] = (timed_call){ recipe, slot, per_step, HR_NONE };
    l->samples[l->count] = (hr_price_sample){ .op = program->steps[step].op,
                                              .dtype = (uint8_t)hr_cost_dtype(program, step),
                                              .work = hr_cost_work(program, step, INT64_MAX,
                                                                   slot % 2, probe->pool.threads) };
    return l->count++;
}

/* All times of the steps of visit `index`. */
static void enter_all(ledger *l, const hr_probe *probe, int32_t recipe, int32_t index,
                      int32_t steps)
{
    const hr_program *program = &probe->compiled.program;
    for (int32_t slot = 0; slot < 2 * program->step_count; slot++) {
        const hr_probe_times *times = &probe->times[slot];
        if (times->count == 0 || program->ops[program->steps[slot / 2].op]->host) continue;
        const int32_t call = find_call(l, probe, recipe, slot, (double)times->calls / steps);
        for (int32_t k = 0; call != HR_NONE && k < times->count; k++) {
            if (l->time_count == TIMES_MOST) return;
            l->times[l->time_count] = (call_time){ index, l->calls[call].last_time,
                                                   (float)times->ns[k] };
            l->calls[call].last_time = l->time_count++;
        }
    }
}

/* Seconds since the calibration began. */
static double clock_of(void *context)
{
    const desk *d = context;
    return 1e-9 * (double)(hr_clock_ns() - d->begin_ns);
}

/* Enters what the probe timed in so many steps, and takes the pace after them. */
static hr_status end_visit(desk *d, const hr_probe *probe, hr_time_sample sample, int32_t steps,
                           hr_error *err)
{
    hr_time_samples *v = &d->samples;
    enter_all(&d->ledger, probe, sample.recipe, v->count, steps);
    const hr_status status = hr_speed_probe_take(&d->speed_probe, &d->now, err);
    sample.after = d->now;
    v->of[v->count++] = sample;
    return status;
}

/* Whether another step as long as this one was would end after `until`. */
static bool ends_after(desk *d, const hr_probe_lap *lap, double until)
{
    return clock_of(d) + 1e-9 * (double)lap->wall_ns > until;
}

/* A few steps; one, where another would not be through by `until`. */
static hr_status sample(desk *d, hr_probe *probe, int32_t recipe, double until, hr_error *err)
{
    hr_probe_lap lap;
    int32_t steps = 0;
    const int64_t begin = hr_clock_ns();
    hr_time_sample made = { .recipe = recipe, .step_ns = INFINITY, .before = d->now };
    hr_probe_forget(probe);
    while (steps < STEPS_LEAST || (steps < STEPS_MOST && hr_clock_ns() - begin < VISIT_NS)) {
        if (steps > 0 && ends_after(d, &lap, until)) break;
        const hr_status status = hr_probe_step(probe, true, &lap, err);
        if (status != HR_OK) return status;
        made.step_ns = fmin(made.step_ns, (double)lap.cpu_ns);
        steps++;
    }
    return end_visit(d, probe, made, steps, err);
}

/* A step to warm up, then as many visits as there is time for. Where there is little, the pace is
 * taken after one more step alone; where the first took all of it, that is the visit: colder than
 * others, but seen. */
static hr_status run_recipe(desk *d, hr_probe *probe, int32_t recipe, double begin,
                            const hr_time_samples_turn *turn, hr_error *err)
{
    hr_probe_lap lap;
    hr_time_sample only = { .recipe = recipe, .before = d->now };
    hr_status status = hr_probe_step(probe, true, &lap, err);
    only.step_ns = (double)lap.cpu_ns;
    if (status == HR_OK && 1e-9 * (double)lap.wall_ns > turn->most)
        return end_visit(d, probe, only, 1, err);
    if (status == HR_OK && ends_after(d, &lap, begin + turn->most))
        return sample(d, probe, recipe, begin, err);
    if (status == HR_OK) status = hr_speed_probe_take(&d->speed_probe, &d->now, err);
    for (int32_t i = 0; i < HR_TIME_SAMPLES_OPENED && status == HR_OK; i++) {
        if (i > 0 && clock_of(d) > begin + turn->enough) break;
        status = sample(d, probe, recipe, begin + turn->most, err);
    }
    return status;
}

static hr_status open_recipe(void *context, int32_t recipe, const hr_time_samples_turn *turn,
                             hr_error *err)
{
    desk *d = context;
    hr_config config;
    hr_probe probe;
    const hr_calibrate_request *request = d->request;
    const double begin = clock_of(d);
    if (request->progress)
        request->progress(request->context, d->openings++,
                          HR_TIME_SAMPLES_OPENINGS * d->samples.recipes);
    hr_recipe_config(hr_recipe_learned(recipe), &config);
    hr_status status = hr_probe_open(&probe, &config, d->speed_probe.probe.pool.threads,
                                     d->speed_probe.mask, err);
    if (status != HR_OK) return status;
    status = run_recipe(d, &probe, recipe, begin, turn, err);
    hr_probe_close(&probe);
    return status;
}

/* Each call's low time of all visits that are kept, as at `pace`. */
static void read_times(ledger *l, const hr_time_samples *v, const hr_speed *speed)
{
    for (int32_t i = 0; i < l->count; i++) {
        int32_t count = 0;
        for (int32_t t = l->calls[i].last_time; t != HR_NONE; t = l->times[t].before) {
            const hr_time_sample *from = &v->of[l->times[t].sample];
            if (from->kept)
                l->errors[count++] = l->times[t].ns *
                                     hr_time_samples_scale(from, speed, l->samples[i].op);
        }
        l->samples[i].ns = hr_prices_quantile(l->errors, count, quiet_share);
    }
}

/* How much longer the best step of a recipe is than its calls together: the middle of those that
 * were seen at the pace. */
static double step_share(const ledger *l, const hr_time_samples *v, const hr_speed *speed)
{
    double factors[HR_RECIPES_LEARNED_MOST];
    int32_t count = 0;
    for (int32_t r = 0; r < v->recipes; r++) {
        double calls_ns = 0, step_ns = INFINITY;
        for (int32_t i = 0; i < l->count; i++)
            if (l->calls[i].recipe == r) calls_ns += l->calls[i].per_step * l->samples[i].ns;
        for (int32_t i = 0; i < v->count; i++)
            if (v->of[i].recipe == r && hr_time_samples_at(&v->of[i], speed))
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
static hr_status learn_all(desk *d, hr_speed *speed, hr_error *err)
{
    hr_time_samples *v = &d->samples;
    const hr_calibrate_request *request = d->request;
    while (hr_recipe_learned(v->recipes) && (!request->recipes || v->recipes < request->recipes))
        v->recipes++;
    const int32_t most = HR_TIME_SAMPLES_OPENINGS * v->recipes;
    const hr_time_samples_tour tour = { request->seconds, clock_of, open_recipe, d };
    hr_status status = hr_speed_probe_take(&d->speed_probe, &d->now, err);
    if (status == HR_OK) status = hr_time_samples_make(v, &tour, &d->now, err);
    if (request->progress) request->progress(request->context, most, most);
    if (status != HR_OK) return status;
    *speed = hr_time_samples_speed(v);
    hr_time_samples_keep(v, speed);
    read_times(&d->ledger, v, speed);
    merge(&d->ledger, step_share(&d->ledger, v, speed));
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
    const int64_t calls = CALLS_MOST * (int64_t)(sizeof *l->samples + sizeof *l->calls);
    const int64_t times = TIMES_MOST * (int64_t)(sizeof *l->times + sizeof *l->errors);
    const int64_t bytes = calls + times + HR_DISK_PIECE_BYTES + (int64_t)sizeof(desk) + 512;
    hr_status status = hr_memory_open(memory, err);
    if (status == HR_OK) status = hr_memory_region_open(memory, "calibration", bytes, &region, err);
    if (status != HR_OK) return status;
    desk *d = hr_region_take(&region, 1, sizeof *d);
    d->ledger.samples = hr_region_take(&region, CALLS_MOST, sizeof *d->ledger.samples);
    d->ledger.calls = hr_region_take(&region, CALLS_MOST, sizeof *d->ledger.calls);
    d->ledger.times = hr_region_take(&region, TIMES_MOST, sizeof *d->ledger.times);
    d->ledger.errors = hr_region_take(&region, TIMES_MOST, sizeof *d->ledger.errors);
    d->disk = hr_region_take(&region, HR_DISK_PIECE_BYTES, 1);
    *opened = d;
    return HR_OK;
}

static hr_status calibrate(const hr_calibrate_request *request, hr_memory *memory, int64_t begin_ns,
                           hr_calibrate_report *report, hr_error *err)
{
    desk *d = NULL;
    hr_speed speed;
    hr_rates_machine machine;
    uint32_t mask;
    int32_t threads;
    hr_status status = hr_calibrate_machine(request, &mask, &threads, err);
    if (status == HR_OK) status = hr_directory_check(request->directory, err);
    if (status == HR_OK) status = open_desk(memory, &d, err);
    if (status == HR_OK) status = measure_fork_join(memory, threads, &report->fork_join, err);
    if (status == HR_OK) status = hr_directory_make(request->directory, err);
    if (status == HR_OK) status = hr_disk_measure(request->directory, d->disk, &report->disk, err);
    if (status == HR_OK) status = hr_speed_probe_open(&d->speed_probe, threads, mask, err);
    if (status != HR_OK) return status;
    d->request = request;
    d->begin_ns = begin_ns;
    status = learn_all(d, &speed, err);
    hr_speed_probe_close(&d->speed_probe);
    if (status != HR_OK) return status;
    report->recipes = hr_time_samples_seen(&d->samples);
    report->left_out = d->samples.recipes - report->recipes;
    hr_rates_guess(hr_op_table, HR_OP_COUNT, mask, threads, &d->rates);
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++)
        d->rates.pace_us[i] = (int32_t)fmin(fmax(1e-3 * speed.ns[i], 1), INT32_MAX);
    d->rates.disk_rate = (int64_t)fmin(report->disk, 1e15);
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
    const hr_status status = calibrate(request, &memory, begin, &made, err);
    hr_memory_close(&memory);
    made.seconds = 1e-9 * (double)(hr_clock_ns() - begin);
    if (status == HR_OK) *report = made;
    return status;
}
