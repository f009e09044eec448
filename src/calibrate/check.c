/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/check.c - predicts steps, and runs them while the machine is as it was at the
 * calibration: every step between two paces. What is asked is how good the prices are, and not how
 * much the machine moved; a prediction is made before its step is run and never changed. */
#include "headroom/calibrate.h"

#include <math.h>
#include <stdio.h>

#include "calibrate/machine.h"
#include "calibrate/prices.h"
#include "calibrate/rates_file.h"
#include "calibrate/recipes.h"
#include "calibrate/speed_probe.h"
#include "model/family.h"

enum {
    BEST_OF = 5,
    STEPS_MOST = 20, /* of which so many are to be like the calibration */
    WAITS = 24,      /* for the machine to be so again, between two steps */
    TRIES = 3        /* of a row */
};

static void describe_recipe(const hr_recipe *recipe, hr_calibrate_row *row)
{
    const hr_config config = { .model.family = recipe->family };
    char shared[24] = "";
    if (recipe->n_kv_heads) snprintf(shared, sizeof shared, "/%lld", (long long)recipe->n_kv_heads);
    snprintf(row->recipe, sizeof row->recipe,
             "%s %s d=%lld L=%lld H=%lld%s ff=%lld V=%lld T=%lld %lldx%lld%s",
             hr_family_of(&config)->name, recipe->format == HR_FORMAT_BF16 ? "bf16" : "fp32",
             (long long)recipe->d_model, (long long)recipe->n_layers, (long long)recipe->n_heads,
             shared, (long long)recipe->d_ff, (long long)recipe->vocab_size,
             (long long)recipe->seq_len, (long long)(recipe->batch / recipe->micro_batch),
             (long long)recipe->micro_batch,
             recipe->recompute == HR_RECOMPUTE_LAYERS ? " again" : "");
}

/* Steps of a recipe between paces: those that were like the calibration, else the nearest. */
typedef struct {
    hr_probe_lap best;
    hr_speed moment;
    double distance; /* of the moment */
    int32_t held;    /* steps that were like the calibration */
    double held_ns[BEST_OF];
} trial;

static void note(trial *t, const hr_probe_lap *lap, const hr_speed *moment, const hr_speed *wanted)
{
    const double distance = hr_speed_distance(moment, wanted);
    const bool like = hr_speed_like(moment, wanted);
    if (like) t->held_ns[t->held++] = (double)lap->cpu_ns;
    const bool better = like ? t->held == 1 || lap->cpu_ns < t->best.cpu_ns
                             : t->held == 0 && distance < t->distance;
    if (!better) return;
    t->best = *lap;
    t->moment = *moment;
    t->distance = distance;
}

/* What the prices were measured at. A guess was measured at none: the best there is. */
static hr_speed pace_of(const hr_rates *rates, const hr_speed_probe *speed_probe)
{
    hr_speed speed = speed_probe->least;
    if (rates->pace_us[0] > 0)
        for (int32_t i = 0; i < HR_SPEED_PARTS; i++) speed.ns[i] = 1e3 * fmax(1, rates->pace_us[i]);
    return speed;
}

static hr_status run_row(hr_probe *probe, const hr_rates *rates, hr_speed_probe *speed_probe,
                         trial *t, hr_error *err)
{
    hr_probe_lap lap;
    hr_speed before, after, wanted;
    int32_t waits = 0;
    *t = (trial){ .distance = INFINITY };
    hr_status status = hr_probe_step(probe, false, &lap, err);
    if (status == HR_OK) status = hr_speed_probe_take(speed_probe, &before, err);
    for (int32_t i = 0; i < STEPS_MOST && t->held < BEST_OF && status == HR_OK; i++) {
        wanted = pace_of(rates, speed_probe);
        while (waits < WAITS && status == HR_OK && !hr_speed_like(&before, &wanted)) {
            waits++;
            status = hr_speed_probe_take(speed_probe, &before, err);
            wanted = pace_of(rates, speed_probe);
        }
        if (status == HR_OK) status = hr_probe_step(probe, false, &lap, err);
        if (status == HR_OK) status = hr_speed_probe_take(speed_probe, &after, err);
        if (status != HR_OK) return status;
        const hr_speed moment = hr_speed_slower(&before, &after);
        note(t, &lap, &moment, &wanted);
        before = after;
        if (waits == WAITS && i + 1 >= BEST_OF) break;
    }
    return status;
}

static hr_status check_one(const hr_rates *rates, int32_t index, hr_speed_probe *speed_probe,
                           hr_calibrate_row *row, trial *t, hr_error *err)
{
    hr_config config;
    hr_probe probe;
    const hr_recipe *recipe = hr_recipe_tested(index, &row->unseen);
    hr_recipe_config(recipe, &config);
    describe_recipe(recipe, row);
    hr_status status = hr_probe_open(&probe, &config, rates->threads, speed_probe->mask, err);
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

/* A best step further than a tenth from the middle of the five ran, or most of the others did,
 * while the machine was otherwise than on both sides of it. */
static bool steady(const trial *t)
{
    double ns[BEST_OF];
    for (int32_t i = 0; i < BEST_OF; i++) ns[i] = t->held_ns[i];
    return (double)t->best.cpu_ns >= 0.9 * hr_prices_quantile(ns, BEST_OF, 0.5);
}

/* How fast the machine was in a row, and whether it was so in as many steps as are asked. */
static void judge(hr_calibrate_row *row, const trial *t, const hr_speed *wanted)
{
    row->speed = hr_speed_ratio(&t->moment, wanted);
    row->counts = t->held == BEST_OF && hr_speed_like(&t->moment, wanted) && steady(t);
}

/* The more steps were like the calibration the better; of none, the nearest. */
static bool better(const trial *a, const trial *b)
{
    return a->held > b->held || (a->held == b->held && a->distance < b->distance);
}

/* Off the stack: who opens a probe plans for the stack as deep as it is then. */
typedef struct {
    hr_rates rates;
    hr_speed_probe speed_probe;
    hr_calibrate_row rows[HR_CALIBRATE_CHECKS_MAX];
    trial trials[HR_CALIBRATE_CHECKS_MAX];
} desk;

static hr_status open_desk(hr_memory *memory, desk **opened, hr_error *err)
{
    hr_region region;
    hr_status status = hr_memory_open(memory, err);
    if (status == HR_OK)
        status = hr_memory_region_open(memory, "check", (int64_t)sizeof(desk) + 64, &region, err);
    if (status == HR_OK) *opened = hr_region_take(&region, 1, sizeof **opened);
    return status;
}

/* A row that does not count is run again; the best of its tries holds. */
static hr_status check_all(const hr_calibrate_request *request, desk *d, hr_error *err)
{
    hr_speed wanted;
    const int32_t count = request->checks;
    int32_t done = 0, all = count;
    for (int32_t i = 0; i < TRIES * count; i++) {
        hr_calibrate_row row = { .counts = false };
        trial t;
        const int32_t k = i % count;
        if (k == 0 && i > 0)
            for (int32_t r = 0; r < count; r++) all += !d->rows[r].counts;
        if (i >= count && d->rows[k].counts) continue;
        if (request->progress) request->progress(request->context, done++, all);
        const hr_status status = check_one(&d->rates, k, &d->speed_probe, &row, &t, err);
        if (status != HR_OK) return status;
        if (i >= count && !better(&t, &d->trials[k])) continue;
        d->rows[k] = row;
        d->trials[k] = t;
        wanted = pace_of(&d->rates, &d->speed_probe);
        judge(&d->rows[k], &t, &wanted);
    }
    if (request->progress) request->progress(request->context, all, all);
    wanted = pace_of(&d->rates, &d->speed_probe);
    for (int32_t r = 0; r < count; r++) judge(&d->rows[r], &d->trials[r], &wanted);
    return HR_OK;
}

static hr_status check(const hr_calibrate_request *request, hr_memory *memory,
                       hr_calibrate_verdict *verdict, hr_error *err)
{
    desk *d = NULL;
    uint32_t mask;
    int32_t threads;
    hr_status status = hr_calibrate_machine(request, &mask, &threads, err);
    if (status == HR_OK) status = open_desk(memory, &d, err);
    if (status == HR_OK)
        status = hr_rates_load(request->directory, hr_op_table, HR_OP_COUNT, mask, threads,
                               &d->rates, verdict->source, err);
    if (status == HR_OK) status = hr_speed_probe_open(&d->speed_probe, threads, mask, err);
    if (status != HR_OK) return status;
    status = check_all(request, d, err);
    hr_speed_probe_close(&d->speed_probe);
    if (status != HR_OK) return status;
    for (int32_t i = 0; i < request->checks && request->row; i++)
        request->row(request->context, &d->rows[i]);
    conclude(d->rows, request->checks, verdict);
    return HR_OK;
}

hr_status hr_calibrate_check(const hr_calibrate_request *request, hr_calibrate_verdict *verdict,
                             hr_error *err)
{
    hr_memory memory = { 0 };
    hr_calibrate_verdict made = { .rows = 0 };
    if (request->checks < 1 || request->checks > HR_CALIBRATE_CHECKS_MAX)
        return hr_fail(err, HR_USAGE, "--recipes takes 1 to %d, not %d", HR_CALIBRATE_CHECKS_MAX,
                       request->checks);
    const hr_status status = check(request, &memory, &made, err);
    hr_memory_close(&memory);
    if (status == HR_OK) *verdict = made;
    return status;
}
