/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/check.c - compares predicted with measured step times.
 *
 * A step counts only if the machine speed before and after it is near that of the calibration: the
 * check tests the prices, not the load of the machine. Each prediction is made before its step runs
 * and never changes. */
#include "headroom/calibrate.h"

#include <math.h>
#include <stdio.h>

#include "base/options.h"
#include "calibrate/machine.h"
#include "calibrate/prices.h"
#include "calibrate/rates_file.h"
#include "calibrate/recipes.h"
#include "calibrate/speed_probe.h"
#include "model/family.h"

enum {
    BEST_OF = 5,
    STEPS_MOST = 20, /* maximum per row; BEST_OF of them have to run at the calibrated speed */
    WAITS_MOST = 24, /* speed measurements per row while the speed is another */
    TRIES_MOST = 3   /* runs of a row */
};

static void describe_recipe(const hr_recipe *recipe, hr_calibrate_row *row)
{
    const hr_config config = { .model.family = recipe->family };
    char shared[24] = "";
    if (recipe->n_kv_heads) snprintf(shared, sizeof shared, "/%lld", (long long)recipe->n_kv_heads);
    snprintf(row->recipe, sizeof row->recipe,
             "%s %s d=%lld L=%lld H=%lld%s ff=%lld V=%lld T=%lld B=%lldx%lld%s",
             hr_family_of(&config)->name, hr_format_name(recipe->format),
             (long long)recipe->d_model, (long long)recipe->n_layers, (long long)recipe->n_heads,
             shared, (long long)recipe->d_ff, (long long)recipe->vocab_size,
             (long long)recipe->seq_len, (long long)(recipe->batch / recipe->micro_batch),
             (long long)recipe->micro_batch,
             recipe->recompute == HR_RECOMPUTE_LAYERS ? " recompute" : "");
}

/* The steps of one recipe: those at the calibrated speed, or else the one nearest to it. */
typedef struct {
    hr_step_time best;
    hr_speed sampled;
    double distance;    /* of `sampled` from the calibrated speed */
    int32_t near_count; /* steps at the calibrated speed */
    double near_ns[BEST_OF];
} trial;

static void record_step(trial *t, const hr_step_time *time, const hr_speed *sampled,
                        const hr_speed *wanted)
{
    const double distance = hr_speed_distance(sampled, wanted);
    const bool is_near = hr_speed_is_near(sampled, wanted);
    if (is_near) t->near_ns[t->near_count++] = (double)time->cpu_ns;
    const bool is_better = is_near ? t->near_count == 1 || time->cpu_ns < t->best.cpu_ns
                                   : t->near_count == 0 && distance < t->distance;
    if (!is_better) return;
    t->best = *time;
    t->sampled = *sampled;
    t->distance = distance;
}

/* Returns the machine speed of the prices. Estimated prices have none: then it is the fastest
 * measured one. */
static hr_speed calibrated_speed(const hr_rates *rates, const hr_speed_probe *speed_probe)
{
    hr_speed speed = speed_probe->least;
    if (rates->pace_us[0] > 0)
        for (int32_t i = 0; i < HR_SPEED_PARTS; i++) speed.ns[i] = 1e3 * fmax(1, rates->pace_us[i]);
    return speed;
}

static hr_status run_row(hr_probe *probe, const hr_rates *rates, hr_speed_probe *speed_probe,
                         trial *t, hr_error *err)
{
    hr_step_time time;
    hr_speed before, after, wanted;
    int32_t waits = 0;
    *t = (trial){ .distance = INFINITY };
    hr_status status = hr_probe_step(probe, false, &time, err);
    if (status == HR_OK) status = hr_speed_probe_take(speed_probe, &before, err);
    for (int32_t i = 0; i < STEPS_MOST && t->near_count < BEST_OF && status == HR_OK; i++) {
        wanted = calibrated_speed(rates, speed_probe);
        while (waits < WAITS_MOST && status == HR_OK && !hr_speed_is_near(&before, &wanted)) {
            waits++;
            status = hr_speed_probe_take(speed_probe, &before, err);
            wanted = calibrated_speed(rates, speed_probe);
        }
        if (status == HR_OK) status = hr_probe_step(probe, false, &time, err);
        if (status == HR_OK) status = hr_speed_probe_take(speed_probe, &after, err);
        if (status != HR_OK) return status;
        const hr_speed sampled = hr_speed_slower(&before, &after);
        record_step(t, &time, &sampled, &wanted);
        before = after;
        if (waits == WAITS_MOST && i + 1 >= BEST_OF) break;
    }
    return status;
}

static hr_status check_one(const hr_rates *rates, int32_t index, hr_speed_probe *speed_probe,
                           hr_calibrate_row *row, trial *t, hr_error *err)
{
    hr_config config;
    hr_probe probe;
    const hr_recipe *recipe = hr_recipe_of_check(index, &row->unseen);
    hr_recipe_config(recipe, &config);
    describe_recipe(recipe, row);
    hr_status status = hr_probe_open(&probe, &config, rates->backend, rates->threads,
                                     speed_probe->mask, err);
    if (status != HR_OK) return status;
    row->predicted_seconds = 1e-12 * (double)hr_cost_program(&probe.compiled.program, rates);
    status = run_row(&probe, rates, speed_probe, t, err);
    hr_probe_close(&probe);
    if (status != HR_OK) return status;
    row->measured_seconds = 1e-9 * (double)t->best.cpu_ns;
    row->wall_seconds = 1e-9 * (double)t->best.wall_ns;
    row->error = row->predicted_seconds / row->measured_seconds - 1;
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

/* Returns whether the fastest step is within a tenth of the median of the five. Otherwise the speed
 * changed during that step or during most of the others, although it was the same before and after
 * them. */
static bool is_steady(const trial *t)
{
    double ns[BEST_OF];
    for (int32_t i = 0; i < BEST_OF; i++) ns[i] = t->near_ns[i];
    return (double)t->best.cpu_ns >= 0.9 * hr_prices_quantile(ns, BEST_OF, 0.5);
}

/* Sets the speed of a row, and whether the row counts: enough steps ran at the calibrated speed. */
static void rate_row(hr_calibrate_row *row, const trial *t, const hr_speed *wanted)
{
    row->speed = hr_speed_ratio(&t->sampled, wanted);
    row->counts = t->near_count == BEST_OF && hr_speed_is_near(&t->sampled, wanted) && is_steady(t);
}

/* More steps at the calibrated speed are better; with equal counts, the nearer speed. */
static bool is_better(const trial *a, const trial *b)
{
    return a->near_count > b->near_count ||
           (a->near_count == b->near_count && a->distance < b->distance);
}

/* Not on the stack: opening a probe sizes the stack by its current depth. */
typedef struct {
    hr_rates rates;
    hr_speed_probe speed_probe;
    hr_calibrate_row rows[HR_CALIBRATE_CHECKS_MAX];
    trial trials[HR_CALIBRATE_CHECKS_MAX];
} check_state;

static hr_status open_check(hr_memory *memory, check_state **opened, hr_error *err)
{
    hr_region region;
    hr_status status = hr_memory_open(memory, err);
    if (status == HR_OK)
        status = hr_memory_region_open(memory, "check", (int64_t)sizeof(check_state) + 64, &region,
                                       err);
    if (status == HR_OK) *opened = hr_region_take(&region, 1, sizeof **opened);
    return status;
}

/* Runs each row that does not count again, and keeps its best try. */
static hr_status check_all(const hr_calibrate_request *request, check_state *d, hr_error *err)
{
    hr_speed wanted;
    const int32_t count = request->checks;
    int32_t done = 0, all = count;
    for (int32_t i = 0; i < TRIES_MOST * count; i++) {
        hr_calibrate_row row = { .counts = false };
        trial t;
        const int32_t k = i % count;
        if (k == 0 && i > 0)
            for (int32_t r = 0; r < count; r++) all += !d->rows[r].counts;
        if (i >= count && d->rows[k].counts) continue;
        if (request->progress) request->progress(request->context, done++, all);
        const hr_status status = check_one(&d->rates, k, &d->speed_probe, &row, &t, err);
        if (status != HR_OK) return status;
        if (i >= count && !is_better(&t, &d->trials[k])) continue;
        d->rows[k] = row;
        d->trials[k] = t;
        wanted = calibrated_speed(&d->rates, &d->speed_probe);
        rate_row(&d->rows[k], &t, &wanted);
    }
    if (request->progress) request->progress(request->context, all, all);
    wanted = calibrated_speed(&d->rates, &d->speed_probe);
    for (int32_t r = 0; r < count; r++) rate_row(&d->rows[r], &d->trials[r], &wanted);
    return HR_OK;
}

static hr_status check(const hr_calibrate_request *request, hr_memory *memory,
                       hr_calibrate_verdict *verdict, hr_error *err)
{
    check_state *d = NULL;
    const hr_backend *backend;
    uint32_t mask;
    int32_t threads;
    hr_status status = hr_calibrate_machine(request, &backend, &mask, &threads, err);
    if (status == HR_OK) status = open_check(memory, &d, err);
    if (status == HR_OK)
        status = hr_rates_load(request->directory, backend, mask, threads, &d->rates,
                               verdict->source, err);
    if (status == HR_OK) status = hr_speed_probe_open(&d->speed_probe, backend, threads, mask, err);
    if (status != HR_OK) return status;
    status = check_all(request, d, err);
    hr_speed_probe_close(&d->speed_probe);
    if (status != HR_OK) return status;
    for (int32_t i = 0; i < request->checks && request->row; i++)
        request->row(request->context, &d->rows[i]);
    conclude(d->rows, request->checks, verdict);
    return HR_OK;
}

hr_status hr_calibrate_check(const hr_calibrate_request *given, hr_calibrate_verdict *verdict,
                             hr_error *err)
{
    hr_memory memory = { 0 };
    hr_calibrate_verdict made = { .rows = 0 };
    hr_calibrate_request request;
    hr_status status = hr_options_take(&request, sizeof request, given, err);
    if (status != HR_OK) return status;
    if (request.checks < 1 || request.checks > HR_CALIBRATE_CHECKS_MAX)
        return hr_fail(err, HR_USAGE, "--recipes takes 1 to %d, not %d", HR_CALIBRATE_CHECKS_MAX,
                       request.checks);
    status = check(&request, &memory, &made, err);
    hr_memory_close(&memory);
    if (status == HR_OK) *verdict = made;
    return status;
}
