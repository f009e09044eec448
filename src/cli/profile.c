/* SPDX-License-Identifier: Apache-2.0 */
/* cli/profile.c - headroom profile: prints where the time of a training step goes. */
#include "headroom/profile.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

enum { SHOWN_OPERATIONS = 24, SHOWN_PARTS = 8 };
#define SHOWN_SHARE 0.99 /* of the step, in the table of operations */

typedef struct {
    hr_progress progress;
    hr_cli_work work;
    bool json;
} screen;

static void show_preparing(void *context, const char *work, int64_t bytes_done, int64_t bytes_total)
{
    screen *s = context;
    hr_cli_show_bytes(&s->progress, work, bytes_done, bytes_total);
}

static void show_working(void *context, const char *work, int64_t done, int64_t total)
{
    screen *s = context;
    hr_cli_show_work(&s->progress, &s->work, work, done, total);
}

static void show_trouble(void *context, const char *line)
{
    screen *s = context;
    hr_progress_end(&s->progress);
    fprintf(stderr, "headroom: %s\n", line);
}

static void put_row(const hr_profile_report *report, const char *name, const hr_profile_row *row)
{
    printf("  %-42s %9.1f %12.3f %5.1f %% %12.3f", name, row->calls, row->seconds,
           100 * row->seconds / report->step_seconds, row->planned_seconds);
    if (row->flops > 0 && row->seconds > 0) {
        printf(" %9.1f", 1e-9 * row->flops / row->seconds);
        if (report->ceiling_flops > 0)
            printf(" %6.0f %%", 100 * row->flops / row->seconds / report->ceiling_flops);
    }
    printf("\n");
}

static void put_head(const hr_profile_report *report, const char *name)
{
    printf("\n%-44s %9s %12s %7s %12s %9s%s\n", name, "calls", "seconds", "share", "planned",
           "GFLOP/s", report->ceiling_flops > 0 ? " ceiling" : "");
}

static void add(hr_profile_row *to, const hr_profile_row *row)
{
    to->calls += row->calls;
    to->seconds += row->seconds;
    to->planned_seconds += row->planned_seconds;
    to->flops += row->flops;
}

static void put_parts(const hr_profile_report *report)
{
    put_head(report, "part of the model");
    for (int32_t k = 0; k < report->part_count; k++) {
        const hr_profile_row *row = &report->parts[k];
        char name[64];
        snprintf(name, sizeof name, "%s%s%s", row->part, *row->direction ? ", " : "",
                 row->direction);
        put_row(report, name, row);
    }
}

static void put_operations(const hr_profile_report *report)
{
    hr_profile_row rest = { .operation = "others" };
    double shown = 0;
    put_head(report, "operation");
    for (int32_t i = 0; i < report->row_count; i++) {
        const hr_profile_row *row = &report->rows[i];
        char name[96];
        if (i >= SHOWN_OPERATIONS || shown >= SHOWN_SHARE * report->step_seconds) {
            add(&rest, row);
            continue;
        }
        snprintf(name, sizeof name, "%s, %s%s%s", row->operation, row->part,
                 *row->direction ? ", " : "", row->direction);
        put_row(report, name, row);
        shown += row->seconds;
    }
    if (rest.calls > 0) put_row(report, rest.operation, &rest);
    const hr_profile_row between = { .seconds = report->between_seconds };
    put_row(report, "between operations", &between);
    put_row(report, "step", &report->step);
}

static void put_engines(const hr_profile_report *report)
{
    printf("\n%-44s %9s %12s %7s %12s %9s\n", "what waits for what", "", "seconds", "share",
           "bytes", "MB/s");
    for (int32_t i = 0; i < report->engine_count; i++) {
        const hr_profile_engine *row = &report->engines[i];
        char name[96];
        snprintf(name, sizeof name, "%s: %s", row->engine, row->doing);
        printf("  %-52s %12.3f %5.1f %%", name, row->seconds,
               100 * row->seconds / report->step_seconds);
        if (row->bytes > 0) printf(" %12s", hr_cli_count((int64_t)row->bytes));
        if (row->bytes > 0 && row->seconds > 0) printf(" %9.1f", 1e-6 * row->bytes / row->seconds);
        printf("\n");
    }
}

/* Fewer parts than the report has. */
static void put_curve(const hr_profile_curve *curve)
{
    const int32_t rows = curve->count < SHOWN_PARTS ? curve->count : SHOWN_PARTS;
    const int64_t operations = curve->last - curve->first + 1;
    int32_t at = 0;
    printf("\n%-44s %22s %20s\n", "bytes over the step, by operation", "arena live, planned",
           "process, measured");
    for (int32_t k = 0; k < rows; k++) {
        const int32_t end = (k + 1) * curve->count / rows;
        const int64_t first = curve->first + at * operations / curve->count;
        int64_t live = 0, resident = 0;
        for (; at < end; at++) {
            if (curve->live[at] > live) live = curve->live[at];
            if (curve->resident[at] > resident) resident = curve->resident[at];
        }
        char name[64];
        snprintf(name, sizeof name, "%lld to %lld", (long long)first,
                 (long long)(curve->first + at * operations / curve->count - 1));
        printf("  %-42s %22s", name, hr_cli_count(live));
        printf(" %20s\n", hr_cli_count(resident));
    }
}

static void print_text(const hr_profile_report *report)
{
    const hr_plan_answer *plan = &report->run.plan;
    printf("profile  %lld step%s of %.3f s", (long long)report->steps,
           report->steps == 1 ? "" : "s", report->step_seconds);
    if (report->warm_up_steps) printf(", after one that is not counted");
    printf("; planned %.3f s, %s\n", plan->step_seconds, plan->times);
    printf("memory   planned %s, measured %s\n", hr_cli_count(report->run.process_bytes_planned),
           hr_cli_count(report->run.process_bytes_measured));
    printf("arena    planned %s, used %s\n", hr_cli_count(report->run.arena_bytes_planned),
           hr_cli_count(report->run.arena_bytes_used));
    put_parts(report);
    put_operations(report);
    put_engines(report);
    put_curve(&report->curve);
}

static json_t *json_of_engines(const hr_profile_report *report)
{
    json_t *rows = json_array();
    for (int32_t i = 0; i < report->engine_count; i++) {
        const hr_profile_engine *row = &report->engines[i];
        json_array_append_new(rows,
                              json_pack("{ss ss sf sf}", "engine", row->engine, "doing", row->doing,
                                        "seconds", row->seconds, "bytes", row->bytes));
    }
    return rows;
}

static json_t *json_of_curve(const hr_profile_curve *curve)
{
    json_t *live = json_array(), *resident = json_array();
    for (int32_t i = 0; i < curve->count; i++) {
        json_array_append_new(live, json_integer(curve->live[i]));
        json_array_append_new(resident, json_integer(curve->resident[i]));
    }
    return json_pack("{si si so so}", "first_operation", curve->first, "last_operation",
                     curve->last, "arena_bytes_live", live, "process_bytes_measured", resident);
}

static void print_json(const hr_profile_report *report)
{
    const hr_plan_answer *plan = &report->run.plan;
    json_t *rows = json_array();
    for (int32_t i = 0; i < report->row_count; i++) {
        const hr_profile_row *row = &report->rows[i];
        json_array_append_new(
            rows, json_pack("{ss ss ss sf sf sf sf sf}", "operation", row->operation, "part",
                            row->part, "direction", row->direction, "calls", row->calls, "seconds",
                            row->seconds, "planned_seconds", row->planned_seconds, "waited_seconds",
                            row->waited_seconds, "flops", row->flops));
    }
    json_t *object = json_pack(
        "{sI sI sf sf sf ss sf sI sI sI sI so so so}", "steps", (json_int_t)report->steps,
        "warm_up_steps", (json_int_t)report->warm_up_steps, "step_seconds", report->step_seconds,
        "between_seconds", report->between_seconds, "planned_seconds", plan->step_seconds, "times",
        plan->times, "ceiling_flops", report->ceiling_flops, "process_bytes_planned",
        (json_int_t)report->run.process_bytes_planned, "process_bytes_measured",
        (json_int_t)report->run.process_bytes_measured, "arena_bytes_planned",
        (json_int_t)report->run.arena_bytes_planned, "arena_bytes_used",
        (json_int_t)report->run.arena_bytes_used, "operations", rows, "engines",
        json_of_engines(report), "over_step", json_of_curve(&report->curve));
    (void)hr_cli_print_json(object, 0);
}

/* What is larger than a frame should be, for the deepest calls are those of a run. */
typedef struct {
    hr_config *config;
    hr_profile_report report;
    hr_profile_files files; /* their memory follows */
} profiling;

static int profile(const hr_cli_arguments *arguments, profiling *p)
{
    hr_error err;
    char calibrations[HR_PATH_BYTES];
    int64_t steps = HR_PROFILE_STEPS_DEFAULT;
    screen s = { .progress = hr_progress_begin(STDERR_FILENO),
                 .json = arguments->values[HR_OPTION_JSON] };
    hr_train_options options = { .size = sizeof options,
                                 .events = { .context = &s,
                                             .preparing = show_preparing,
                                             .working = show_working,
                                             .trouble = show_trouble } };
    if (hr_cli_recipe(arguments, p->config, &err) != HR_OK ||
        hr_config_set(p->config, "train.out", "", &err) != HR_OK ||
        hr_cli_take_cache(p->config, &options.cache_limit_bytes, &err) != HR_OK ||
        hr_cli_whole(arguments, HR_OPTION_PROFILE_STEPS, &steps, &err) != HR_OK)
        return hr_cli_fail(&err);
    if (steps < 1 || steps > HR_PROFILE_STEPS_MOST) {
        (void)hr_fail(&err, HR_USAGE, "--steps takes a number from 1 to %d", HR_PROFILE_STEPS_MOST);
        return hr_cli_fail(&err);
    }
    char all[32];
    const int64_t trained = hr_config_integer(p->config, "train.steps");
    snprintf(all, sizeof all, "%lld", (long long)steps);
    if (trained && trained < steps && hr_config_set(p->config, "train.steps", all, &err) != HR_OK)
        return hr_cli_fail(&err);
    options.calibrations = hr_cli_calibrations(calibrations, sizeof calibrations);
    options.interrupts = hr_cli_catch_signals(NULL);
    const hr_status status = hr_profile(p->config, &options, steps, &p->files, &p->report, &err);
    hr_progress_end(&s.progress);
    if (status != HR_OK) {
        const int code = hr_cli_fail(&err);
        return status == HR_INTERRUPTED ? hr_cli_signal_code() : code;
    }
    if (s.json) print_json(&p->report);
    else print_text(&p->report);
    return HR_OK;
}

static int with_report(const hr_cli_arguments *arguments, hr_config *config)
{
    hr_error err;
    const char *trace = arguments->values[HR_OPTION_TRACE];
    const char *page = arguments->values[HR_OPTION_PROFILE_HTML];
    const size_t own = (sizeof(profiling) + 63) / 64 * 64;
    const size_t trace_bytes = trace ? HR_PROFILE_TRACE_BYTES : 0;
    const size_t page_bytes = page ? HR_PROFILE_PAGE_BYTES : 0;
    profiling *p = aligned_alloc(64, own + trace_bytes + page_bytes);
    if (!p) {
        (void)hr_fail(&err, HR_FAILURE, "out of memory for the report");
        return hr_cli_fail(&err);
    }
    char *memory = (char *)p + own;
    p->files = (hr_profile_files){ { trace, memory }, { page, memory + trace_bytes } };
    p->config = config;
    const int code = profile(arguments, p);
    free(p);
    return code;
}

int hr_cli_profile(const hr_cli_arguments *arguments)
{
    return hr_cli_with_config(arguments, with_report);
}
