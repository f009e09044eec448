/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate/calibrate.c - runs recipes to learn prices, or to test them.
 *
 * The recipes are run three times over, so that a minute in which the machine was slow is not all
 * that is known of any of them, and of the times of one call a low one is taken: what disturbs a
 * call makes it longer. */
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

enum { PASSES = 3, SAMPLES_MOST = 4096, STEPS_LEAST = 3, STEPS_MOST = 60, BEST_OF = 5, TRIES = 3 };

/* Where in the times of a call its time is read: the least is luck, the middle is company. */
static const double quiet_share = 0.2;

/* The same code that a check compares with its best must be at least so fast. */
static const double busy_below = 0.9;

static hr_status choose_machine(const hr_calibrate_request *request, uint32_t *mask,
                                int32_t *threads, hr_error *err)
{
    *mask = hr_cpu_detect();
    *threads = request->threads ? request->threads : hr_threads_default();
    if (*threads >= 1 && *threads <= HR_POOL_THREADS_MAX) return HR_OK;
    return hr_fail(err, HR_USAGE, "calibration runs on 1 to %d threads, not on %d",
                   HR_POOL_THREADS_MAX, *threads);
}

/* ---- samples */

typedef struct {
    hr_price_sample *samples; /* [SAMPLES_MOST] */
    double *errors;           /* [SAMPLES_MOST] */
    int32_t count;
} ledger;

/* The same work measured again: the smaller time holds. */
static void enter(ledger *l, const hr_price_sample *sample)
{
    for (int32_t i = 0; i < l->count; i++) {
        hr_price_sample *known = &l->samples[i];
        if (known->op != sample->op || known->dtype != sample->dtype ||
            memcmp(&known->work, &sample->work, sizeof known->work))
            continue;
        known->ns = fmin(known->ns, sample->ns);
        return;
    }
    if (l->count < SAMPLES_MOST) l->samples[l->count++] = *sample;
}

static void enter_all(ledger *l, const hr_probe *probe)
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
        enter(l, &sample);
    }
}

static hr_status learn(ledger *l, const hr_recipe *recipe, int32_t threads, uint32_t mask,
                       double seconds, hr_error *err)
{
    hr_config config;
    hr_probe probe;
    hr_probe_lap lap;
    hr_recipe_config(recipe, &config);
    const int64_t begin = hr_clock_ns();
    hr_status status = hr_probe_open(&probe, &config, threads, mask, err);
    if (status != HR_OK) return status;
    status = hr_probe_step(&probe, false, &lap, err);
    for (int32_t i = 0; i < STEPS_MOST && status == HR_OK; i++) {
        if (i >= STEPS_LEAST && 1e-9 * (double)(hr_clock_ns() - begin) > seconds) break;
        status = hr_probe_step(&probe, true, &lap, err);
    }
    if (status == HR_OK) enter_all(l, &probe);
    hr_probe_close(&probe);
    return status;
}

/* Every pass is a whole one; on a machine so slow that they take twice their time, one may do. */
static hr_status learn_all(const hr_calibrate_request *request, ledger *l, int32_t threads,
                           uint32_t mask, int32_t *recipes, hr_error *err)
{
    int32_t count = 0;
    hr_status status = HR_OK;
    while (hr_recipe_learned(count) && (!request->recipes || count < request->recipes)) count++;
    *recipes = count;
    const int64_t begin = hr_clock_ns();
    for (int32_t i = 0; i < PASSES * count && status == HR_OK; i++) {
        const double elapsed = 1e-9 * (double)(hr_clock_ns() - begin);
        if (i > 0 && i % count == 0 && elapsed > 2 * request->seconds) break;
        if (request->progress) request->progress(request->context, i, PASSES * count);
        status = learn(l, hr_recipe_learned(i % count), threads, mask,
                       request->seconds / (PASSES * count), err);
    }
    if (request->progress) request->progress(request->context, PASSES * count, PASSES * count);
    return status;
}

/* ---- what the report says of the machine */

static void nothing(void *context, int32_t thread, int32_t threads)
{
    (void)context, (void)thread, (void)threads;
}

static hr_status measure_fork_join(hr_memory *memory, int32_t threads, double *seconds,
                                   hr_error *err)
{
    enum { RUNS = 2000 };
    hr_pool pool;
    void *stacks;
    const int64_t bytes = hr_pool_bytes(threads);
    hr_status status = hr_memory_stacks_open(memory, bytes, &stacks, err);
    if (status == HR_OK) status = hr_pool_open(&pool, stacks, bytes, threads, err);
    if (status != HR_OK) return status;
    int64_t least = INT64_MAX;
    for (int32_t i = 0; i < RUNS; i++) {
        const int64_t begin = hr_clock_ns();
        hr_pool_run(&pool, nothing, 0);
        least = hr_min(least, hr_clock_ns() - begin);
    }
    hr_pool_close(&pool);
    *seconds = 1e-9 * (double)least;
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
    const int64_t bytes = SAMPLES_MOST * (int64_t)(sizeof *l->samples + sizeof *l->errors) + 256;
    hr_status status = hr_memory_open(memory, err);
    if (status == HR_OK) status = hr_memory_region_open(memory, "calibration", bytes, &region, err);
    if (status != HR_OK) return status;
    l->samples = hr_region_take(&region, SAMPLES_MOST, sizeof *l->samples);
    l->errors = hr_region_take(&region, SAMPLES_MOST, sizeof *l->errors);
    return HR_OK;
}

static hr_status calibrate(const hr_calibrate_request *request, hr_memory *memory,
                           hr_calibrate_report *report, hr_error *err)
{
    ledger l = { .count = 0 };
    hr_rates rates;
    hr_rates_machine machine;
    uint32_t mask;
    int32_t threads;
    hr_status status = choose_machine(request, &mask, &threads, err);
    if (status == HR_OK) status = hr_directory_check(request->directory, err);
    if (status == HR_OK) status = open_ledger(memory, &l, err);
    if (status == HR_OK) status = measure_fork_join(memory, threads, &report->fork_join, err);
    if (status == HR_OK) status = learn_all(request, &l, threads, mask, &report->recipes, err);
    if (status != HR_OK) return status;
    hr_rates_guess(hr_op_table, HR_OP_COUNT, mask, threads, &rates);
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

/* A small step that is run again and again: how fast is the machine now? */
typedef struct {
    hr_probe probe;
    double least_ns; /* of all runs so far */
} pace;

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
static hr_status check_one(const hr_rates *rates, int32_t index, uint32_t mask, pace *p,
                           hr_calibrate_row *row, double *slowest_ns, hr_error *err)
{
    hr_config config;
    hr_probe probe;
    double before_ns, after_ns;
    const hr_recipe *recipe = hr_recipe_tested(index, &row->unseen);
    hr_recipe_config(recipe, &config);
    describe_recipe(recipe, row);
    hr_status status = hr_probe_open(&probe, &config, rates->threads, mask, err);
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
    double all[HR_CALIBRATE_CHECKS_MAX], quiet[HR_CALIBRATE_CHECKS_MAX];
    int32_t quiets = 0;
    for (int32_t i = 0; i < count; i++) {
        all[i] = fabs(rows[i].error);
        if (!rows[i].busy) quiet[quiets++] = all[i];
    }
    verdict->rows = count;
    verdict->busy = count - quiets;
    verdict->error_median = hr_prices_quantile(all, count, 0.5);
    verdict->error_high = hr_prices_quantile(all, count, 0.9);
    verdict->quiet_median = hr_prices_quantile(quiet, quiets, 0.5);
    verdict->quiet_high = hr_prices_quantile(quiet, quiets, 0.9);
}

/* How fast the machine can be is known better with every row, so the rows are judged together. */
static void judge(hr_calibrate_row *rows, const double *slowest_ns, int32_t count, double least_ns)
{
    for (int32_t i = 0; i < count; i++) {
        rows[i].speed = least_ns / slowest_ns[i];
        rows[i].busy = rows[i].speed < busy_below;
    }
}

/* A row that ran in a bad moment is run again; the best moment of its tries holds. */
static hr_status check_all(const hr_calibrate_request *request, const hr_rates *rates,
                           uint32_t mask, pace *p, hr_calibrate_row *rows, hr_error *err)
{
    double slowest_ns[HR_CALIBRATE_CHECKS_MAX];
    const int32_t count = request->checks;
    int32_t done = 0, all = count;
    for (int32_t i = 0; i < count; i++) slowest_ns[i] = INFINITY;
    for (int32_t i = 0; i < TRIES * count; i++) {
        hr_calibrate_row row = { .busy = false };
        double row_ns;
        if (i % count == 0 && i > 0) {
            judge(rows, slowest_ns, count, p->least_ns);
            for (int32_t k = 0; k < count; k++) all += rows[k].busy;
        }
        if (i >= count && !rows[i % count].busy) continue;
        if (request->progress) request->progress(request->context, done++, all);
        const hr_status status = check_one(rates, i % count, mask, p, &row, &row_ns, err);
        if (status != HR_OK) return status;
        if (row_ns >= slowest_ns[i % count]) continue;
        row.busy = rows[i % count].busy;
        rows[i % count] = row;
        slowest_ns[i % count] = row_ns;
    }
    if (request->progress) request->progress(request->context, all, all);
    judge(rows, slowest_ns, count, p->least_ns);
    return HR_OK;
}

static hr_status check(const hr_calibrate_request *request, const hr_rates *rates, uint32_t mask,
                       hr_calibrate_verdict *verdict, hr_error *err)
{
    hr_calibrate_row rows[HR_CALIBRATE_CHECKS_MAX] = { 0 };
    hr_config config;
    pace p = { .least_ns = INFINITY };
    hr_recipe_config(hr_recipe_learned(1), &config);
    hr_status status = hr_probe_open(&p.probe, &config, rates->threads, mask, err);
    if (status != HR_OK) return status;
    status = check_all(request, rates, mask, &p, rows, err);
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
