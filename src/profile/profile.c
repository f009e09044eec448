/* SPDX-License-Identifier: Apache-2.0 */
/* profile/profile.c - observes a run: adds up the time of each operation by part of the model and
 * direction, what the threads did in it, and the bytes of the process. */
#include "headroom/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/options.h"
#include "headroom/stages.h"
#include "mem/process.h"
#include "ops/list.h"
#include "plan/cost.h"
#include "plan/lifetimes.h"
#include "profile/names.h"
#include "profile/timeline.h"
#include "report/details.h"
#include "report/html.h"
#include "report/profile_page.h"
#include "run/observer.h"

enum { PARTS = HR_BLOCK_HEAD + 1, DIRECTIONS = HR_DIR_RECOMPUTED + 1 };
enum { SAMPLE_NS = 4000000 }; /* between two readings of the bytes of the process */

/* What a compute thread does. */
enum { COMPUTES, WAITS_FOR_THREADS, WAITS_FOR_FILES, WAITS_FOR_MAIN, DOINGS };

typedef struct {
    const hr_train_events *events;
    hr_profile_report *report;
    /* 1 + the row of the report; 0: none yet. Rows have the sums of all measured steps until the
     * end */
    int16_t rows[HR_RATE_OPS_MOST][PARTS][DIRECTIONS];
    hr_profile_row beyond; /* of operations for which the report has no room */
    hr_timeline *trace;    /* null: none */
    const hr_config *config;
    hr_plan_details *details; /* for a page; null: none */
    hr_region scratch;
    int64_t steps_seen, last_step;
    int64_t step_ns;      /* wall time of the measured steps */
    int64_t begun_ns;     /* of the current step; 0: it has not begun */
    int64_t operation_ns; /* when the current operation began */
    int64_t sampled_ns;   /* when the bytes of the process were read */
    int64_t resident;     /* what was read */
    int32_t threads;
    int64_t thread_ns[HR_THREADS_MOST]; /* in operations, by thread */
    int64_t did_ns[DOINGS];             /* of all threads */
    int64_t computed_ns;                /* of all threads, when the current operation began */
    /* before the measured steps, and so far */
    hr_space_moved moved[2], base_moved[2];
} profiler;

static bool is_of_a_step(hr_loop_id section)
{
    return section == HR_LOOP_FETCH || section == HR_LOOP_NORM || section == HR_LOOP_STEP ||
           section == HR_LOOP_UPDATE;
}

static hr_profile_row *row_of(profiler *p, const hr_program *program, int32_t step)
{
    const hr_step *s = &program->steps[step];
    hr_profile_report *report = p->report;
    int16_t *row = &p->rows[s->op][s->block][s->direction];
    if (!*row && report->row_count == HR_PROFILE_ROWS_MOST) return &p->beyond;
    if (!*row) {
        report->rows[report->row_count] = (hr_profile_row){
            .operation = hr_step_op(program, s)->name,
            .part = hr_profile_part(s->block),
            .direction = hr_profile_direction(s->direction),
        };
        *row = (int16_t)++report->row_count;
    }
    return &report->rows[*row - 1];
}

/* A program too large for the memory leaves a page without its chart. */
static void explain(profiler *p, const hr_program *program, const hr_plan *plan)
{
    hr_error ignored;
    if (hr_details(p->config, program, plan, &p->scratch, p->details, &ignored) != HR_OK)
        p->details->curve_count = 0;
}

static void begin_curve(hr_profile_curve *curve, const hr_program *program, const hr_plan *plan)
{
    hr_details_step(program, &curve->first, &curve->last);
    const int64_t steps = curve->last - curve->first + 1;
    curve->count = (int32_t)hr_min(steps, HR_PLAN_CURVE_MOST);
    for (int32_t i = 0; i < curve->count; i++)
        curve->live[i] = hr_lifetimes_most(
            plan, (int32_t)(curve->first + i * steps / curve->count),
            (int32_t)(curve->first + (i + 1) * steps / curve->count - 1));
}

/* The part of the curve that has an operation: the last that begins at it or before. */
static int32_t part_with(const hr_profile_curve *curve, int32_t step)
{
    const int64_t steps = curve->last - curve->first + 1;
    return (int32_t)(((step - curve->first + 1) * (int64_t)curve->count - 1) / steps);
}

static void note_resident(profiler *p, int32_t step, int64_t now_ns)
{
    int64_t *resident = &p->report->curve.resident[part_with(&p->report->curve, step)];
    if (!p->sampled_ns || now_ns - p->sampled_ns >= SAMPLE_NS) {
        p->resident = hr_process_now_bytes();
        p->sampled_ns = now_ns;
    }
    *resident = hr_max(*resident, p->resident);
}

static const hr_device *time_threads(void *context, const hr_device *device, hr_pool *pool)
{
    profiler *p = context;
    hr_pool_time(pool, CLOCK_MONOTONIC, p->thread_ns);
    return device;
}

static int64_t computed_ns(const profiler *p)
{
    int64_t sum = 0;
    for (int32_t t = 0; t < p->threads; t++) sum += p->thread_ns[t];
    return sum;
}

static hr_status placed(void *context, const hr_executor *executor, const hr_rates *rates,
                        hr_error *err)
{
    profiler *p = context;
    const hr_program *program = executor->program;
    const int64_t unit_as =
        rates->op[HR_OP_linear][hr_product_dtype((hr_dtype)program->dtype)].unit_as[HR_TERM_FLOPS];
    (void)err;
    p->threads = executor->plan->process.threads;
    begin_curve(&p->report->curve, program, executor->plan);
    if (p->trace) hr_timeline_place(p->trace, program, executor->plan, rates);
    if (p->details) explain(p, program, executor->plan);
    if (rates->pace_us[0] && unit_as) p->report->ceiling_flops = 1e18 / (double)unit_as;
    for (int32_t s = 0; s < program->step_count; s++) {
        if (!is_of_a_step(hr_step_section(program, s))) continue;
        hr_profile_row *row = row_of(p, program, s);
        row->planned_seconds += hr_cost_seconds(rates, hr_cost_step_total(program, rates, s));
        row->flops += hr_cost_flops(program, s);
    }
    return HR_OK;
}

static void tell(const profiler *p, const hr_program *program, int32_t step)
{
    char work[48];
    const int32_t first = program->loops[hr_program_loop(program, HR_LOOP_STEP)].step_first;
    const int32_t last = program->loops[hr_program_loop(program, HR_LOOP_STEP)].step_last;
    if (!p->events->working || step < first || step > last) return;
    snprintf(work, sizeof work, "operations of step %lld", (long long)p->steps_seen + 1);
    p->events->working(p->events->context, work, step - first + 1, last - first + 1);
}

static void before(void *context, const hr_executor *executor, int32_t step)
{
    profiler *p = context;
    p->computed_ns = computed_ns(p);
    p->operation_ns = hr_clock_ns();
    if (!p->begun_ns && is_of_a_step(hr_step_section(executor->program, step)))
        p->begun_ns = p->operation_ns;
}

/* Divides the time of all threads in an operation. */
static void count_threads(profiler *p, const hr_program *program, int32_t step, hr_profile_row *row,
                          int64_t wall_ns)
{
    const hr_op *op = hr_step_op(program, &program->steps[step]);
    const int64_t computed = hr_min(computed_ns(p) - p->computed_ns, wall_ns * p->threads);
    const int64_t rest = wall_ns * p->threads - computed;
    const bool moves = op->transfer != HR_TRANSFER_NONE || program->steps[step].op == HR_OP_lookup;
    const bool shares = !op->host && p->threads > 1;
    p->did_ns[COMPUTES] += computed;
    p->did_ns[moves ? WAITS_FOR_FILES : shares ? WAITS_FOR_THREADS : WAITS_FOR_MAIN] += rest;
    row->waited_seconds += 1e-9 * (double)rest / p->threads;
}

static void watch(void *context, const hr_executor *executor, int32_t step)
{
    profiler *p = context;
    const int64_t now_ns = hr_clock_ns();
    if (!is_of_a_step(hr_step_section(executor->program, step))) return;
    hr_profile_row *row = row_of(p, executor->program, step);
    row->calls++;
    row->seconds += 1e-9 * (double)(now_ns - p->operation_ns);
    count_threads(p, executor->program, step, row, now_ns - p->operation_ns);
    note_resident(p, step, now_ns);
    if (p->trace && p->steps_seen + 1 == p->last_step)
        hr_timeline_add(p->trace, step, p->operation_ns, now_ns, p->resident);
    tell(p, executor->program, step);
}

/* Leaves what is known before any step has run. */
static void forget_times(profiler *p)
{
    for (int32_t i = 0; i < p->report->row_count; i++) {
        hr_profile_row *row = &p->report->rows[i];
        row->calls = row->seconds = row->waited_seconds = 0;
    }
    memset(p->did_ns, 0, sizeof p->did_ns);
    memset(p->report->curve.resident, 0, sizeof p->report->curve.resident);
    p->moved[0] = p->moved[1];
    p->base_moved[0] = p->base_moved[1];
    p->step_ns = 0;
}

static hr_status stepped(void *context, const hr_run_state *state, const hr_measures *measures,
                         hr_error *err)
{
    profiler *p = context;
    hr_profile_report *report = p->report;
    (void)err;
    p->step_ns += hr_clock_ns() - p->begun_ns;
    p->last_step = hr_min(p->last_step, state->steps);
    if (p->trace) hr_timeline_flush(p->trace);
    p->begun_ns = 0;
    p->steps_seen++;
    p->moved[1] = measures->moved;
    p->base_moved[1] = measures->base_moved;
    if (p->steps_seen <= report->warm_up_steps) forget_times(p);
    return HR_OK;
}

static int slowest_first(const void *a, const void *b)
{
    const hr_profile_row *left = a, *right = b;
    return (left->seconds < right->seconds) - (left->seconds > right->seconds);
}

/* Makes sums of all steps those of one step, and leaves out what was not called. */
static void finish_rows(hr_profile_report *report)
{
    const double steps = (double)report->steps;
    int32_t count = 0;
    for (int32_t i = 0; i < report->row_count; i++) {
        hr_profile_row row = report->rows[i];
        if (row.calls == 0) continue;
        row.calls /= steps;
        row.seconds /= steps;
        row.waited_seconds /= steps;
        report->rows[count++] = row;
    }
    report->row_count = count;
    qsort(report->rows, (size_t)count, sizeof *report->rows, slowest_first);
}

static void add(hr_profile_row *to, const hr_profile_row *row)
{
    to->calls += row->calls;
    to->seconds += row->seconds;
    to->planned_seconds += row->planned_seconds;
    to->waited_seconds += row->waited_seconds;
    to->flops += row->flops;
}

/* Adds a row to that of its part of the model and direction. */
static void take_part(hr_profile_report *report, const hr_profile_row *row)
{
    int32_t k = 0;
    while (k < report->part_count && (strcmp(report->parts[k].part, row->part) != 0 ||
                                      strcmp(report->parts[k].direction, row->direction) != 0))
        k++;
    if (k == HR_PROFILE_PARTS_MOST) return;
    if (k == report->part_count)
        report->parts[report->part_count++] = (hr_profile_row){ .part = row->part,
                                                                .direction = row->direction };
    add(&report->parts[k], row);
}

static void take_engine(hr_profile_report *report, const char *engine, const char *doing,
                        double seconds, double bytes)
{
    HR_ASSERT(report->engine_count < HR_PROFILE_ENGINES_MOST);
    report->engines[report->engine_count++] = (hr_profile_engine){ engine, doing, seconds, bytes };
}

/* A file that has moved nothing has no rows. */
static void take_file(hr_profile_report *report, const char *name, const hr_space_moved moved[2])
{
    const double steps = (double)report->steps;
    const double busy = 1e-9 * (double)(moved[1].busy_ns - moved[0].busy_ns) / steps;
    const int64_t bytes = moved[1].read_bytes - moved[0].read_bytes + moved[1].written_bytes -
                          moved[0].written_bytes;
    if (!bytes) return;
    take_engine(report, name, moved[1].written_bytes ? "reads and writes" : "reads", busy,
                (double)bytes / steps);
    take_engine(report, name, "waits for work", fmax(report->step_seconds - busy, 0), 0);
}

static void take_engines(const profiler *p)
{
    static const char *const names[DOINGS] = {
        [COMPUTES] = "operations",
        [WAITS_FOR_THREADS] = "wait for another thread",
        [WAITS_FOR_FILES] = "wait for files",
        [WAITS_FOR_MAIN] = "work of one thread",
    };
    hr_profile_report *report = p->report;
    for (int32_t i = 0; i < DOINGS; i++) {
        const double seconds = 1e-9 * (double)p->did_ns[i] / ((double)report->steps * p->threads);
        const double between = i == WAITS_FOR_MAIN ? report->between_seconds : 0;
        if (seconds + between > 0)
            take_engine(report, "compute threads", names[i], seconds + between, 0);
    }
    take_file(report, "file of the run", p->moved);
    take_file(report, "files of the base", p->base_moved);
}

static void conclude(const profiler *p)
{
    hr_profile_report *report = p->report;
    report->steps = p->steps_seen - report->warm_up_steps;
    finish_rows(report);
    for (int32_t i = 0; i < report->row_count; i++) {
        take_part(report, &report->rows[i]);
        add(&report->step, &report->rows[i]);
    }
    qsort(report->parts, (size_t)report->part_count, sizeof *report->parts, slowest_first);
    report->step_seconds = 1e-9 * (double)p->step_ns / (double)report->steps;
    report->between_seconds = report->step_seconds - report->step.seconds;
    report->step.seconds = report->step_seconds;
    for (int32_t i = 1; i < report->curve.count; i++) /* a part without operations of its own */
        if (!report->curve.resident[i]) report->curve.resident[i] = report->curve.resident[i - 1];
    take_engines(p);
}

/* The memory is touched here, so that it is a part of the process that is planned. */
static hr_status open_files(const hr_profile_files *files, profiler *p, hr_error *err)
{
    const int64_t own = hr_round_up((int64_t)sizeof *p->details, 64);
    _Static_assert(sizeof *p->details < HR_PROFILE_PAGE_BYTES / 2, "the rest is scratch");
    const char *page = files->page.path, *trace = files->trace.path;
    if (page && trace && !strcmp(page, trace))
        return hr_fail(err, HR_USAGE, "--trace and --html both write %.1000s", page);
    hr_status status = page ? hr_html_check(page, err) : HR_OK;
    if (status == HR_OK && trace) status = hr_timeline_open(&p->trace, &files->trace, err);
    if (status != HR_OK || !page) return status;
    memset(files->page.memory, 0, HR_PROFILE_PAGE_BYTES);
    p->details = files->page.memory;
    p->scratch = hr_region_over((char *)files->page.memory + own, HR_PROFILE_PAGE_BYTES - own);
    return HR_OK;
}

static hr_status finish_files(const hr_profile_files *files, profiler *p, hr_error *err)
{
    const hr_train_result *run = &p->report->run;
    hr_status status = HR_OK;
    if (p->trace)
        status = hr_timeline_finish(p->trace, run->process_bytes_planned,
                                    run->process_bytes_measured, p->config->memory.budget, err);
    if (status == HR_OK && p->details)
        status = hr_profile_page_write(files->page.path, p->config, p->report, p->details, err);
    return status;
}

hr_status hr_profile(const hr_config *config, const hr_train_options *given, int64_t steps,
                     const hr_profile_files *files, hr_profile_report *report, hr_error *err)
{
    static const hr_profile_files none = { 0 };
    hr_train_options options;
    if (*config->train.out)
        return hr_fail(err, HR_USAGE, "a profile saves nothing: leave train.out out");
    if (steps < 1 || steps > HR_PROFILE_STEPS_MOST)
        return hr_fail(err, HR_USAGE, "a profile has 1 to %d steps, not %lld",
                       HR_PROFILE_STEPS_MOST, (long long)steps);
    if (!files) files = &none;
    *report = (hr_profile_report){ .warm_up_steps = steps > 1 };
    profiler p = {
        .events = &options.events, .report = report, .config = config, .last_step = steps
    };
    const hr_observer observer = { .context = &p,
                                   .last_step = steps,
                                   .placed = placed,
                                   .device = time_threads,
                                   .before = before,
                                   .watch = watch,
                                   .stepped = stepped };
    if (hr_config_has_stages(config))
        return hr_fail(err, HR_USAGE, "train.stages has several programs: profile one, --stage N");
    hr_status status = hr_options_take(&options, sizeof options, given, err);
    if (status == HR_OK) status = open_files(files, &p, err);
    if (status != HR_OK) return status;
    status = hr_train_observed(config, &options, &observer, &report->run, err);
    if (status == HR_OK && p.steps_seen <= report->warm_up_steps)
        status = hr_fail(err, HR_USAGE, "the run ended after %lld step%s: nothing was measured",
                         (long long)p.steps_seen, p.steps_seen == 1 ? "" : "s");
    if (status == HR_OK) conclude(&p);
    if (status == HR_OK) status = finish_files(files, &p, err);
    hr_timeline_close(p.trace);
    return status;
}
