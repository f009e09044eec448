/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/calibrate.c - runs recipes and computes rates from their call times.
 *
 * The machine speed is measured before and after each time sample, and prices refer to one speed
 * (sampling.h). A low quantile of the times of a call is its time, since disturbances only make
 * calls longer. But the low times of all calls add up to less than any step takes: they are scaled
 * so that, at the median over recipes, they add up to the fastest step. */
#include "headroom/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/options.h"
#include "calibrate/disk.h"
#include "calibrate/file_rate.h"
#include "calibrate/machine.h"
#include "calibrate/prices.h"
#include "calibrate/rates_file.h"
#include "calibrate/sampling.h"
#include "ops/list.h"

enum {
    CALLS_MOST = 16384,
    TIMES_MOST = 1 << 20,
    STEPS_LEAST = 2, /* per time sample, if time allows */
    STEPS_MOST = 8,
    SAMPLE_NS = 40000000 /* minimum time of a sample with fewer than STEPS_MOST steps */
};

/* The quantile of the times of a call that is its time: the minimum is an outlier, and the median
 * includes the effect of other processes. */
static const double time_quantile = 0.2;

/* The largest factor, up or down, that scales call times to the step time. */
static const double step_factor_most = 1.2;

/* ---- samples */

/* A call of a recipe, by its slot in the times of the probe. */
typedef struct {
    int32_t recipe, slot;
    double per_step;   /* number of such calls per step */
    int32_t last_time; /* index into times; HR_NONE: none */
} timed_call;

typedef struct {
    int32_t sample, before; /* before: the previous time of the same call, or HR_NONE */
    float ns;
} call_time;

typedef struct {
    hr_price_sample *samples; /* [CALLS_MOST], parallel to `calls` until merge() */
    timed_call *calls;        /* [CALLS_MOST] */
    call_time *times;         /* [TIMES_MOST] */
    double *errors;           /* [TIMES_MOST] */
    int32_t count, time_count;
} timings;

/* Not on the stack: opening a probe sizes the stack by its current depth. */
typedef struct {
    const hr_calibrate_request *request;
    int64_t begin_ns; /* start of the calibration */
    int32_t runs;
    timings timings;
    hr_time_samples samples;
    hr_speed_probe speed_probe;
    hr_speed speed_now;
    hr_rates rates;
    void *disk; /* [HR_DISK_PIECE_BYTES] */
} calibration;

/* Returns the index of a call, which is added if it is new; HR_NONE if the table is full. */
static int32_t find_call(timings *l, const hr_probe *probe, int32_t recipe, int32_t slot,
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

/* Records the times of all calls of time sample `index`. */
static void record_times(timings *l, const hr_probe *probe, int32_t recipe, int32_t index,
                         int32_t steps)
{
    const hr_program *program = &probe->compiled.program;
    for (int32_t slot = 0; slot < 2 * program->step_count; slot++) {
        const hr_probe_times *times = &probe->times[slot];
        if (times->count == 0 || hr_step_op(program, &program->steps[slot / 2])->host) continue;
        const int32_t call = find_call(l, probe, recipe, slot, (double)times->calls / steps);
        for (int32_t k = 0; call != HR_NONE && k < times->count; k++) {
            if (l->time_count == TIMES_MOST) return;
            l->times[l->time_count] = (call_time){ index, l->calls[call].last_time,
                                                   (float)times->ns[k] };
            l->calls[call].last_time = l->time_count++;
        }
    }
}

/* Returns the seconds since the calibration began. */
static double elapsed_seconds(void *context)
{
    const calibration *d = context;
    return 1e-9 * (double)(hr_clock_ns() - d->begin_ns);
}

/* Records the times of the probe, from `steps` steps, and measures the machine speed after them. */
static hr_status end_sample(calibration *d, const hr_probe *probe, hr_time_sample sample,
                            int32_t steps, hr_error *err)
{
    hr_time_samples *v = &d->samples;
    record_times(&d->timings, probe, sample.recipe, v->count, steps);
    const hr_status status = hr_speed_probe_take(&d->speed_probe, &d->speed_now, err);
    sample.after = d->speed_now;
    v->of[v->count++] = sample;
    return status;
}

/* Returns whether another step of this duration would end after `until`. */
static bool ends_after(calibration *d, const hr_step_time *time, double until)
{
    return elapsed_seconds(d) + 1e-9 * (double)time->wall_ns > until;
}

/* Takes one time sample: a few steps, or one if a second would end after `until`. */
static hr_status take_sample(calibration *d, hr_probe *probe, int32_t recipe, double until,
                             hr_error *err)
{
    hr_step_time time;
    int32_t steps = 0;
    const int64_t begin = hr_clock_ns();
    hr_time_sample made = { .recipe = recipe, .step_ns = INFINITY, .before = d->speed_now };
    hr_probe_clear_times(probe);
    while (steps < STEPS_LEAST || (steps < STEPS_MOST && hr_clock_ns() - begin < SAMPLE_NS)) {
        if (steps > 0 && ends_after(d, &time, until)) break;
        const hr_status status = hr_probe_step(probe, true, &time, err);
        if (status != HR_OK) return status;
        made.step_ns = fmin(made.step_ns, (double)time.cpu_ns);
        steps++;
    }
    return end_sample(d, probe, made, steps, err);
}

/* Runs a warm-up step, then as many samples as time allows. If time is short, takes one step and
 * then the speed. If the warm-up step alone exceeded the limit, it is the sample: slower than with
 * warm caches, but it covers the recipe. */
static hr_status sample_recipe(calibration *d, hr_probe *probe, int32_t recipe, double begin,
                               const hr_sampling_limits *limits, hr_error *err)
{
    hr_step_time time;
    hr_time_sample warm_up = { .recipe = recipe, .before = d->speed_now };
    hr_status status = hr_probe_step(probe, true, &time, err);
    warm_up.step_ns = (double)time.cpu_ns;
    if (status == HR_OK && 1e-9 * (double)time.wall_ns > limits->hard_seconds)
        return end_sample(d, probe, warm_up, 1, err);
    if (status == HR_OK && ends_after(d, &time, begin + limits->hard_seconds))
        return take_sample(d, probe, recipe, begin, err);
    if (status == HR_OK) status = hr_speed_probe_take(&d->speed_probe, &d->speed_now, err);
    for (int32_t i = 0; i < HR_TIME_SAMPLES_PER_RUN && status == HR_OK; i++) {
        if (i > 0 && elapsed_seconds(d) > begin + limits->soft_seconds) break;
        status = take_sample(d, probe, recipe, begin + limits->hard_seconds, err);
    }
    return status;
}

static hr_status run_recipe(void *context, int32_t recipe, const hr_sampling_limits *limits,
                            hr_error *err)
{
    calibration *d = context;
    hr_config config;
    hr_probe probe;
    const hr_calibrate_request *request = d->request;
    const double begin = elapsed_seconds(d);
    if (request->progress)
        request->progress(request->context, d->runs++, HR_RUNS_PER_RECIPE * d->samples.recipes);
    hr_recipe_config(hr_recipe_of_calibration(recipe), &config);
    hr_status status = hr_probe_open(&probe, &config, d->speed_probe.backend,
                                     d->speed_probe.probe.pool.threads, d->speed_probe.mask, err);
    if (status != HR_OK) return status;
    status = sample_recipe(d, &probe, recipe, begin, limits, err);
    hr_probe_close(&probe);
    return status;
}

/* Computes the time of each call: a low quantile over the kept samples, scaled to `speed`. */
static void read_times(timings *l, const hr_time_samples *v, const hr_speed *speed)
{
    for (int32_t i = 0; i < l->count; i++) {
        int32_t count = 0;
        for (int32_t t = l->calls[i].last_time; t != HR_NONE; t = l->times[t].before) {
            const hr_time_sample *from = &v->of[l->times[t].sample];
            if (from->kept)
                l->errors[count++] = l->times[t].ns *
                                     hr_time_sample_scale(from, speed, l->samples[i].op);
        }
        l->samples[i].ns = hr_prices_quantile(l->errors, count, time_quantile);
    }
}

/* Returns the ratio of the fastest step of a recipe to the sum of its call times: the median over
 * the recipes that were sampled at this speed. */
static double step_factor(const timings *l, const hr_time_samples *v, const hr_speed *speed)
{
    double factors[HR_RECIPES_MAX];
    int32_t count = 0;
    for (int32_t r = 0; r < v->recipes; r++) {
        double calls_ns = 0, step_ns = INFINITY;
        for (int32_t i = 0; i < l->count; i++)
            if (l->calls[i].recipe == r) calls_ns += l->calls[i].per_step * l->samples[i].ns;
        for (int32_t i = 0; i < v->count; i++)
            if (v->of[i].recipe == r && hr_time_sample_is_at(&v->of[i], speed))
                step_ns = fmin(step_ns, v->of[i].step_ns);
        if (calls_ns > 0 && step_ns < INFINITY) factors[count++] = step_ns / calls_ns;
    }
    const double factor = count > 0 ? hr_prices_quantile(factors, count, 0.5) : 1;
    return fmin(fmax(factor, 1 / step_factor_most), step_factor_most);
}

/* Merges samples of the same work: the mean of their times, times `factor`. */
static void merge(timings *l, double factor)
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

/* Runs the recipes and computes the price samples.
 *   speed  out: the machine speed that the samples refer to */
static hr_status measure_all(calibration *d, hr_speed *speed, hr_error *err)
{
    hr_time_samples *v = &d->samples;
    const hr_calibrate_request *request = d->request;
    while (hr_recipe_of_calibration(v->recipes) &&
           (!request->recipes || v->recipes < request->recipes))
        v->recipes++;
    const int32_t most = HR_RUNS_PER_RECIPE * v->recipes;
    const hr_sampling_schedule schedule = { request->seconds, elapsed_seconds, run_recipe, d };
    hr_status status = hr_speed_probe_take(&d->speed_probe, &d->speed_now, err);
    if (status == HR_OK) status = hr_time_samples_collect(v, &schedule, &d->speed_now, err);
    if (request->progress) request->progress(request->context, most, most);
    if (status != HR_OK) return status;
    *speed = hr_time_samples_speed(v);
    hr_time_samples_keep(v, speed);
    read_times(&d->timings, v, speed);
    merge(&d->timings, step_factor(&d->timings, v, speed));
    return HR_OK;
}

/* ---- the report */

static hr_status measure_fork_join(hr_memory *memory, int32_t threads, double *seconds,
                                   hr_error *err)
{
    hr_pool pool;
    void *stacks;
    const int64_t bytes = hr_pool_bytes(threads);
    hr_status status = hr_memory_stacks_open(memory, bytes, &stacks, err);
    if (status == HR_OK) status = hr_pool_open(&pool, stacks, bytes, threads, err);
    if (status != HR_OK) return status;
    *seconds = 1e-9 * (double)hr_probe_fork_join_ns(&pool);
    hr_pool_close(&pool);
    return HR_OK;
}

static void describe(const timings *l, const hr_rates *rates, hr_calibrate_report *report)
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
        /* Moments and weights are read and written, the gradient is read. */
        if (sample->op == HR_OP_adamw) {
            double bytes = (double)sample->work.amount[HR_TERM_IN];
            if (bytes < 1 << 24) continue; /* less than this may fit into the caches */
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

static hr_status open_calibration(hr_memory *memory, calibration **opened, hr_error *err)
{
    hr_region region;
    const timings *l = NULL;
    const int64_t calls = CALLS_MOST * (int64_t)(sizeof *l->samples + sizeof *l->calls);
    const int64_t times = TIMES_MOST * (int64_t)(sizeof *l->times + sizeof *l->errors);
    const int64_t bytes = calls + times + HR_DISK_PIECE_BYTES + (int64_t)sizeof(calibration) + 512;
    hr_status status = hr_memory_open(memory, err);
    if (status == HR_OK) status = hr_memory_region_open(memory, "calibration", bytes, &region, err);
    if (status != HR_OK) return status;
    calibration *d = hr_region_take(&region, 1, sizeof *d);
    d->timings.samples = hr_region_take(&region, CALLS_MOST, sizeof *d->timings.samples);
    d->timings.calls = hr_region_take(&region, CALLS_MOST, sizeof *d->timings.calls);
    d->timings.times = hr_region_take(&region, TIMES_MOST, sizeof *d->timings.times);
    d->timings.errors = hr_region_take(&region, TIMES_MOST, sizeof *d->timings.errors);
    d->disk = hr_region_take(&region, HR_DISK_PIECE_BYTES, 1);
    *opened = d;
    return HR_OK;
}

static hr_status calibrate(const hr_calibrate_request *request, hr_memory *memory, int64_t begin_ns,
                           hr_calibrate_report *report, hr_error *err)
{
    calibration *d = NULL;
    hr_speed speed;
    hr_rates_machine machine;
    const hr_backend *backend;
    uint32_t mask;
    int32_t threads;
    hr_status status = hr_calibrate_machine(request, &backend, &mask, &threads, err);
    if (status == HR_OK) status = hr_directory_check(request->directory, err);
    if (status == HR_OK) status = open_calibration(memory, &d, err);
    if (status == HR_OK) status = measure_fork_join(memory, threads, &report->fork_join, err);
    if (status == HR_OK) status = hr_directory_make(request->directory, err);
    if (status == HR_OK) status = hr_disk_measure(request->directory, d->disk, &report->disk, err);
    if (status == HR_OK)
        status = hr_file_rate_measure(request->directory, memory, &report->file_write,
                                      &report->file_read, err);
    if (status == HR_OK) status = hr_speed_probe_open(&d->speed_probe, backend, threads, mask, err);
    if (status != HR_OK) return status;
    d->request = request;
    d->begin_ns = begin_ns;
    status = measure_all(d, &speed, err);
    hr_speed_probe_close(&d->speed_probe);
    if (status != HR_OK) return status;
    report->recipes = hr_time_samples_covered(&d->samples);
    report->left_out = d->samples.recipes - report->recipes;
    hr_rates_guess(backend, mask, threads, &d->rates);
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++)
        d->rates.pace_us[i] = (int32_t)fmin(fmax(1e-3 * speed.ns[i], 1), INT32_MAX);
    d->rates.disk_rate = (int64_t)fmin(report->disk, 1e15);
    d->rates.file_write_rate = (int64_t)fmin(report->file_write, 1e15);
    d->rates.file_read_rate = (int64_t)fmin(report->file_read, 1e15);
    hr_prices_fit(d->timings.samples, d->timings.count, &d->rates);
    describe(&d->timings, &d->rates, report);
    report->threads = threads;
    snprintf(report->rung, sizeof report->rung, "%s", hr_cpu_rung_name(mask));
    char name[HR_RATES_NAME_BYTES];
    hr_rates_machine_of(backend, mask, threads, &machine);
    hr_rates_name(&machine, name);
    snprintf(report->file, sizeof report->file, "%s/%s", request->directory, name);
    return hr_rates_save(request->directory, backend, &machine, request->date, &d->rates, err);
}

hr_status hr_calibrate(const hr_calibrate_request *given, hr_calibrate_report *report,
                       hr_error *err)
{
    const int64_t begin = hr_clock_ns();
    hr_memory memory = { 0 };
    hr_calibrate_report made = { .seconds = 0 };
    hr_calibrate_request request;
    hr_status status = hr_options_take(&request, sizeof request, given, err);
    if (status == HR_OK) status = calibrate(&request, &memory, begin, &made, err);
    hr_memory_close(&memory);
    made.seconds = 1e-9 * (double)(hr_clock_ns() - begin);
    if (status == HR_OK) *report = made;
    return status;
}
