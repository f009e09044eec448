/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/calibrate.c - runs recipes to learn prices, or to test them.
 *
 * A fixed small step, the pace, is run before and after each recipe: how fast is the machine now?
 * Prices are those of one pace, at which most recipes were seen: a machine that others use may have
 * two, and what was learnt at both is true of neither. Of the times of one call a low one is taken,
 * since what disturbs a call makes it longer; but the low times of all calls add up to less than
 * any step takes, so they are raised until, in the middle of all recipes, they add up to its best.
 */
#include "headroom/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/threads.h"
#include "calibrate/prices.h"
#include "calibrate/probe.h"
#include "calibrate/rates_file.h"
#include "calibrate/recipes.h"

enum {
    VISITS = 3, /* of each recipe, on a machine that is quick enough */
    SAMPLES_MOST = 32768,
    STEPS_LEAST = 2,
    STEPS_MOST = 30,
    BEST_OF = 5,
    TRIES = 3
};

/* Where in the times of a call its time is read: the least is luck, the middle is company. */
static const double quiet_share = 0.2;

/* Two moments are alike when their paces are as near. */
static const double counts_within = 0.1;

/* Times of calls are raised, or lowered, by no more to make up their steps. */
static const double levelled_most = 1.2;

static hr_status choose_machine(const hr_calibrate_request *request, uint32_t *mask,
                                int32_t *threads, hr_error *err)
{
    *mask = hr_cpu_detect();
    *threads = request->threads ? request->threads : hr_threads_default();
    if (*threads < 1 || *threads > HR_POOL_THREADS_MAX)
        return hr_fail(err, HR_USAGE, "calibration runs on 1 to %d threads, not on %d",
                       HR_POOL_THREADS_MAX, *threads);
    if (!request->kernels || !strcmp(request->kernels, "auto")) return HR_OK;
    const int64_t wanted = hr_cpu_mask_of(request->kernels);
    if (wanted < 0)
        return hr_fail(err, HR_USAGE,
                       "there are no kernels named \"%.40s\"; there are ref, avx2, avx512, "
                       "avx512bf16 and amx",
                       request->kernels);
    if ((uint32_t)wanted & ~*mask)
        return hr_fail(err, HR_USAGE, "this processor has no %.40s; its kernels are %s",
                       request->kernels, hr_cpu_rung_name(*mask));
    *mask = (uint32_t)wanted;
    return HR_OK;
}

/* ---- the pace */

typedef struct {
    hr_probe probe;
    uint32_t mask;
    double least_ns; /* of all runs so far */
} pace;

static hr_status open_pace(pace *p, int32_t threads, uint32_t mask, hr_error *err)
{
    hr_config config;
    hr_recipe_config(hr_recipe_pace(), &config);
    *p = (pace){ .mask = mask, .least_ns = INFINITY };
    return hr_probe_open(&p->probe, &config, threads, mask, err);
}

static hr_status take_pace(pace *p, double *ns, hr_error *err)
{
    hr_probe_lap lap = { 0 };
    hr_status status = HR_OK;
    *ns = INFINITY;
    for (int32_t i = 0; i < BEST_OF && status == HR_OK; i++) {
        status = hr_probe_step(&p->probe, false, &lap, err);
        *ns = fmin(*ns, (double)lap.cpu_ns);
    }
    p->least_ns = fmin(p->least_ns, *ns);
    return status;
}

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

/* A recipe that was run for a while. */
typedef struct {
    int32_t recipe;
    bool kept;
    double moment_ns; /* the slower of the paces before and after */
    double step_ns;   /* its best step */
} visit;

typedef struct {
    visit of[VISITS * HR_RECIPES_LEARNED_MOST];
    int32_t count, recipes;
} visits;

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

/* A step to warm up, then steps by turns watched and not. */
static hr_status learn(ledger *l, visits *v, int32_t recipe, pace *p, double seconds, hr_error *err)
{
    hr_config config;
    hr_probe probe;
    hr_probe_lap lap;
    int32_t steps = 0;
    visit *made = &v->of[v->count];
    hr_recipe_config(hr_recipe_learned(recipe), &config);
    *made = (visit){ .recipe = recipe, .step_ns = INFINITY };
    const int64_t begin = hr_clock_ns();
    hr_status status = hr_probe_open(&probe, &config, p->probe.pool.threads, p->mask, err);
    if (status != HR_OK) return status;
    status = hr_probe_step(&probe, false, &lap, err);
    for (; steps < STEPS_MOST && status == HR_OK; steps++) {
        if (steps >= STEPS_LEAST && 1e-9 * (double)(hr_clock_ns() - begin) > seconds) break;
        status = hr_probe_step(&probe, true, &lap, err);
        if (status == HR_OK) status = hr_probe_step(&probe, false, &lap, err);
        made->step_ns = fmin(made->step_ns, (double)lap.cpu_ns);
    }
    if (status == HR_OK) enter_all(l, &probe, v->count++, steps);
    hr_probe_close(&probe);
    return status;
}

/* ---- which moments hold together */

/* 0 when the machine was as fast in both, and as far when it was twice as fast as when it was half
 * as fast. */
static double distance(double moment_ns, double pace_ns)
{
    return fabs(log(moment_ns / pace_ns));
}

static bool like(double moment_ns, double pace_ns)
{
    return distance(moment_ns, pace_ns) <= log(1 + counts_within);
}

/* Visits of a recipe at this pace. */
static int32_t visits_at(const visits *v, int32_t recipe, double pace_ns)
{
    int32_t count = 0;
    for (int32_t i = 0; i < v->count; i++)
        count += v->of[i].recipe == recipe && like(v->of[i].moment_ns, pace_ns);
    return count;
}

/* Whom to visit at this pace: all once, then whoever was seen at it least. */
static int32_t next_visit(const visits *v, double pace_ns)
{
    if (v->count < v->recipes) return v->count;
    int32_t next = 0;
    for (int32_t r = 1; r < v->recipes; r++)
        if (visits_at(v, r, pace_ns) < visits_at(v, next, pace_ns)) next = r;
    return next;
}

/* The pace at which most recipes were seen; of two, the faster. */
static double common_pace(const visits *v)
{
    double best_ns = INFINITY;
    int32_t most = 0;
    for (int32_t i = 0; i < v->count; i++) {
        int32_t seen = 0;
        for (int32_t r = 0; r < v->recipes; r++) seen += visits_at(v, r, v->of[i].moment_ns) > 0;
        if (seen < most || (seen == most && v->of[i].moment_ns >= best_ns)) continue;
        most = seen;
        best_ns = v->of[i].moment_ns;
    }
    return best_ns;
}

/* Of each recipe the visits at this pace; of one that has none, its nearest. */
static void keep_visits(visits *v, double pace_ns)
{
    for (int32_t r = 0; r < v->recipes; r++) {
        visit *nearest = NULL;
        for (int32_t i = 0; i < v->count; i++) {
            visit *one = &v->of[i];
            if (one->recipe != r) continue;
            one->kept = like(one->moment_ns, pace_ns);
            if (!nearest ||
                distance(one->moment_ns, pace_ns) < distance(nearest->moment_ns, pace_ns))
                nearest = one;
        }
        if (nearest) nearest->kept = true;
    }
}

/* The same call of a recipe in all visits that are kept: the least of its times. */
static void gather(ledger *l, const visits *v)
{
    int32_t count = 0;
    for (int32_t i = 0; i < l->count; i++) {
        const visit *from = &v->of[l->origins[i].visit];
        int32_t known = 0;
        if (!from->kept) continue;
        while (known < count && (l->origins[known].slot != l->origins[i].slot ||
                                 v->of[l->origins[known].visit].recipe != from->recipe))
            known++;
        if (known < count) {
            l->samples[known].ns = fmin(l->samples[known].ns, l->samples[i].ns);
            continue;
        }
        l->samples[count] = l->samples[i];
        l->origins[count++] = l->origins[i];
    }
    l->count = count;
}

/* How much longer the best step of a recipe is than its calls together: the middle of all. */
static double step_share(const ledger *l, const visits *v)
{
    double factors[HR_RECIPES_LEARNED_MOST];
    int32_t count = 0;
    for (int32_t r = 0; r < v->recipes; r++) {
        double calls_ns = 0, step_ns = INFINITY;
        for (int32_t i = 0; i < l->count; i++)
            if (v->of[l->origins[i].visit].recipe == r)
                calls_ns += l->origins[i].calls * l->samples[i].ns;
        for (int32_t i = 0; i < v->count; i++)
            if (v->of[i].recipe == r && v->of[i].kept) step_ns = fmin(step_ns, v->of[i].step_ns);
        if (calls_ns > 0) factors[count++] = step_ns / calls_ns;
    }
    const double factor = hr_prices_quantile(factors, count, 0.5);
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
static hr_status learn_all(const hr_calibrate_request *request, ledger *l, pace *p, double *pace_ns,
                           int32_t *recipes, hr_error *err)
{
    visits v = { .count = 0 };
    double before_ns, after_ns;
    while (hr_recipe_learned(v.recipes) && (!request->recipes || v.recipes < request->recipes))
        v.recipes++;
    const int32_t most = VISITS * v.recipes;
    *recipes = v.recipes;
    const int64_t begin = hr_clock_ns();
    hr_status status = take_pace(p, &before_ns, err);
    while (v.count < most && status == HR_OK) {
        if (v.count >= v.recipes && 1e-9 * (double)(hr_clock_ns() - begin) > request->seconds)
            break;
        if (request->progress) request->progress(request->context, v.count, most);
        status = learn(l, &v, next_visit(&v, before_ns), p, request->seconds / most, err);
        if (status == HR_OK) status = take_pace(p, &after_ns, err);
        if (status != HR_OK) return status;
        v.of[v.count - 1].moment_ns = fmax(before_ns, after_ns);
        before_ns = after_ns;
    }
    if (request->progress) request->progress(request->context, most, most);
    if (status != HR_OK) return status;
    *pace_ns = common_pace(&v);
    keep_visits(&v, *pace_ns);
    gather(l, &v);
    merge(l, step_share(l, &v));
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

static hr_status open_ledger(hr_memory *memory, ledger *l, hr_error *err)
{
    hr_region region;
    const int64_t each = sizeof *l->samples + sizeof *l->origins + sizeof *l->errors;
    const int64_t bytes = SAMPLES_MOST * each + 256;
    hr_status status = hr_memory_open(memory, err);
    if (status == HR_OK) status = hr_memory_region_open(memory, "calibration", bytes, &region, err);
    if (status != HR_OK) return status;
    l->samples = hr_region_take(&region, SAMPLES_MOST, sizeof *l->samples);
    l->origins = hr_region_take(&region, SAMPLES_MOST, sizeof *l->origins);
    l->errors = hr_region_take(&region, SAMPLES_MOST, sizeof *l->errors);
    return HR_OK;
}

static hr_status calibrate(const hr_calibrate_request *request, hr_memory *memory,
                           hr_calibrate_report *report, hr_error *err)
{
    ledger l = { .count = 0 };
    pace p;
    double pace_ns;
    hr_rates rates;
    hr_rates_machine machine;
    uint32_t mask;
    int32_t threads;
    hr_status status = choose_machine(request, &mask, &threads, err);
    if (status == HR_OK) status = hr_directory_check(request->directory, err);
    if (status == HR_OK) status = open_ledger(memory, &l, err);
    if (status == HR_OK) status = measure_fork_join(memory, threads, &report->fork_join, err);
    if (status == HR_OK) status = open_pace(&p, threads, mask, err);
    if (status != HR_OK) return status;
    status = learn_all(request, &l, &p, &pace_ns, &report->recipes, err);
    hr_probe_close(&p.probe);
    if (status != HR_OK) return status;
    hr_rates_guess(hr_op_table, HR_OP_COUNT, mask, threads, &rates);
    rates.pace_us = (int32_t)fmin(1e-3 * pace_ns, INT32_MAX);
    hr_prices_fit(l.samples, l.count, &rates);
    describe(&l, &rates, report);
    report->threads = threads;
    snprintf(report->rung, sizeof report->rung, "%s", hr_cpu_rung_name(mask));
    char name[HR_RATES_NAME_BYTES];
    hr_rates_machine_of(hr_op_table, HR_OP_COUNT, mask, threads, &machine);
    hr_rates_name(&machine, name);
    snprintf(report->file, sizeof report->file, "%s/%s", request->directory, name);
    return hr_rates_save(request->directory, hr_op_table, HR_OP_COUNT, &machine, request->date,
                         &rates, err);
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

/* ---- the check */

static void describe_recipe(const hr_recipe *recipe, hr_calibrate_row *row)
{
    snprintf(row->recipe, sizeof row->recipe,
             "%s %s d=%lld L=%lld H=%lld ff=%lld V=%lld T=%lld %lldx%lld%s",
             recipe->family == HR_FAMILY_NEEDLE ? "needle" : "gpt_neox",
             recipe->format == HR_FORMAT_BF16 ? "bf16" : "fp32", (long long)recipe->d_model,
             (long long)recipe->n_layers, (long long)recipe->n_heads, (long long)recipe->d_ff,
             (long long)recipe->vocab_size, (long long)recipe->seq_len,
             (long long)(recipe->batch / recipe->micro_batch), (long long)recipe->micro_batch,
             recipe->recompute == HR_RECOMPUTE_LAYERS ? " again" : "");
}

static hr_status run_row(hr_probe *probe, hr_calibrate_row *row, hr_error *err)
{
    hr_probe_lap lap;
    hr_status status = hr_probe_step(probe, false, &lap, err);
    double cpu_ns = INFINITY, wall_ns = INFINITY;
    for (int32_t i = 0; i < BEST_OF && status == HR_OK; i++) {
        status = hr_probe_step(probe, false, &lap, err);
        cpu_ns = fmin(cpu_ns, (double)lap.cpu_ns);
        wall_ns = fmin(wall_ns, (double)lap.wall_ns);
    }
    row->measured_seconds = 1e-9 * cpu_ns;
    row->wall_seconds = 1e-9 * wall_ns;
    return status;
}

/* Leaves in `slowest_ns` the slower of the paces before and after. */
static hr_status check_one(const hr_rates *rates, int32_t index, pace *p, hr_calibrate_row *row,
                           double *slowest_ns, hr_error *err)
{
    hr_config config;
    hr_probe probe;
    double before_ns, after_ns;
    const hr_recipe *recipe = hr_recipe_tested(index, &row->unseen);
    hr_recipe_config(recipe, &config);
    describe_recipe(recipe, row);
    hr_status status = hr_probe_open(&probe, &config, rates->threads, p->mask, err);
    if (status != HR_OK) return status;
    row->predicted_seconds = 1e-12 * (double)hr_cost_program(&probe.compiled.program, rates);
    status = take_pace(p, &before_ns, err);
    if (status == HR_OK) status = run_row(&probe, row, err);
    if (status == HR_OK) status = take_pace(p, &after_ns, err);
    hr_probe_close(&probe);
    if (status != HR_OK) return status;
    row->error = row->predicted_seconds / row->measured_seconds - 1;
    *slowest_ns = fmax(before_ns, after_ns);
    return HR_OK;
}

static void conclude(const hr_calibrate_row *rows, int32_t count, hr_calibrate_verdict *verdict)
{
    double all[HR_CALIBRATE_CHECKS_MAX], counted[HR_CALIBRATE_CHECKS_MAX];
    double speeds[HR_CALIBRATE_CHECKS_MAX];
    verdict->counted = 0;
    for (int32_t i = 0; i < count; i++) {
        all[i] = fabs(rows[i].error);
        speeds[i] = rows[i].speed;
        if (rows[i].counts) counted[verdict->counted++] = all[i];
    }
    verdict->rows = count;
    verdict->speed = hr_prices_quantile(speeds, count, 0.5);
    verdict->error_median = hr_prices_quantile(all, count, 0.5);
    verdict->error_high = hr_prices_quantile(all, count, 0.9);
    verdict->counted_median = hr_prices_quantile(counted, verdict->counted, 0.5);
    verdict->counted_high = hr_prices_quantile(counted, verdict->counted, 0.9);
}

/* How fast the machine was in a row, beside `pace_ns`. */
static void judge(hr_calibrate_row *rows, const double *moment_ns, int32_t count, double pace_ns)
{
    for (int32_t i = 0; i < count; i++) {
        rows[i].speed = pace_ns / moment_ns[i];
        rows[i].counts = like(moment_ns[i], pace_ns);
    }
}

/* What the prices were measured at. A guess was measured at none: the best there is. */
static double pace_of(const hr_rates *rates, const pace *p)
{
    return rates->pace_us > 0 ? 1e3 * rates->pace_us : p->least_ns;
}

/* A row whose moment was not the calibration's is run again; the nearest moment of its tries
 * holds. */
static hr_status check_all(const hr_calibrate_request *request, const hr_rates *rates, pace *p,
                           hr_calibrate_row *rows, hr_error *err)
{
    double moment_ns[HR_CALIBRATE_CHECKS_MAX];
    const int32_t count = request->checks;
    int32_t done = 0, all = count;
    for (int32_t i = 0; i < TRIES * count; i++) {
        hr_calibrate_row row = { .counts = false };
        double now_ns;
        const int32_t k = i % count;
        const double pace_ns = pace_of(rates, p);
        if (k == 0 && i > 0) {
            judge(rows, moment_ns, count, pace_ns);
            for (int32_t r = 0; r < count; r++) all += !rows[r].counts;
        }
        if (i >= count && rows[k].counts) continue;
        if (request->progress) request->progress(request->context, done++, all);
        const hr_status status = check_one(rates, k, p, &row, &now_ns, err);
        if (status != HR_OK) return status;
        if (i >= count && distance(now_ns, pace_ns) >= distance(moment_ns[k], pace_ns)) continue;
        rows[k] = row;
        moment_ns[k] = now_ns;
    }
    if (request->progress) request->progress(request->context, all, all);
    judge(rows, moment_ns, count, pace_of(rates, p));
    return HR_OK;
}

static hr_status check(const hr_calibrate_request *request, const hr_rates *rates, uint32_t mask,
                       hr_calibrate_verdict *verdict, hr_error *err)
{
    hr_calibrate_row rows[HR_CALIBRATE_CHECKS_MAX] = { 0 };
    pace p;
    hr_status status = open_pace(&p, rates->threads, mask, err);
    if (status != HR_OK) return status;
    status = check_all(request, rates, &p, rows, err);
    hr_probe_close(&p.probe);
    if (status != HR_OK) return status;
    for (int32_t i = 0; i < request->checks && request->row; i++)
        request->row(request->context, &rows[i]);
    conclude(rows, request->checks, verdict);
    return HR_OK;
}

hr_status hr_calibrate_check(const hr_calibrate_request *request, hr_calibrate_verdict *verdict,
                             hr_error *err)
{
    hr_calibrate_verdict made = { .rows = 0 };
    hr_rates rates;
    uint32_t mask;
    int32_t threads;
    if (request->checks < 1 || request->checks > HR_CALIBRATE_CHECKS_MAX)
        return hr_fail(err, HR_USAGE, "a check runs 1 to %d recipes, not %d",
                       HR_CALIBRATE_CHECKS_MAX, request->checks);
    hr_status status = choose_machine(request, &mask, &threads, err);
    if (status == HR_OK)
        status = hr_rates_load(request->directory, hr_op_table, HR_OP_COUNT, mask, threads, &rates,
                               made.source, err);
    if (status != HR_OK) return status;
    status = check(request, &rates, mask, &made, err);
    if (status == HR_OK) *verdict = made;
    return status;
}
