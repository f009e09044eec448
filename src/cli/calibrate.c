/* SPDX-License-Identifier: Apache-2.0 */
/* cli/calibrate.c - headroom calibrate: measures this machine, or compares predictions with runs.
 * The calibration file is written completely at the end. */
#include "headroom/calibrate.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "headroom/progress.h"

enum { SECONDS = 50 }; /* the command takes under a minute in total */

static hr_status read_integer(const char *text, const char *name, int32_t most, int32_t *value,
                              hr_error *err)
{
    char *end = NULL;
    if (!text) return HR_OK;
    const long number = strtol(text, &end, 10);
    if (*text && !*end && number >= 1 && number <= most) {
        *value = (int32_t)number;
        return HR_OK;
    }
    return hr_fail(err, HR_USAGE, "--%s takes an integer from 1 to %d; got \"%.40s\"", name, most,
                   text);
}

typedef struct {
    hr_progress progress;
    json_t *rows; /* null: print a table */
    int32_t printed;
} screen;

static void show_progress(void *context, int32_t done, int32_t all)
{
    screen *s = context;
    char text[HR_PROGRESS_BYTES];
    snprintf(text, sizeof text, "measuring: %d of %d", done, all);
    hr_progress_note(&s->progress, text, hr_cli_now_ns());
    if (done == all) hr_progress_end(&s->progress);
}

/* Says why a row does not count. "slower" and "faster" mean that the machine speed differed from
 * the calibration by more than 10 %. */
static const char *exclusion_reason(const hr_calibrate_row *row)
{
    if (row->counts) return "";
    if (row->speed < 0.9) return " slower";
    return row->speed > 1.1 ? " faster" : " unsteady";
}

static void show_row(void *context, const hr_calibrate_row *row)
{
    screen *s = context;
    if (s->rows) {
        json_array_append_new(s->rows, json_pack("{ss sb sf sf sf sf sf sb}", "recipe", row->recipe,
                                                 "unseen", row->unseen, "predicted_seconds",
                                                 row->predicted_seconds, "measured_seconds",
                                                 row->measured_seconds, "wall_seconds",
                                                 row->wall_seconds, "error", row->error, "speed",
                                                 row->speed, "counts", row->counts));
        return;
    }
    if (s->printed++ == 0)
        printf("%-66s %10s %10s %10s %8s  %s\n", "recipe (*: shapes not in the calibration)",
               "predicted", "measured", "wall time", "error", "machine speed");
    printf("%c %-64s %7.2f ms %7.2f ms %7.2f ms %+6.1f %%  %13.2f%s\n", row->unseen ? '*' : ' ',
           row->recipe, 1e3 * row->predicted_seconds, 1e3 * row->measured_seconds,
           1e3 * row->wall_seconds, 100 * row->error, row->speed, exclusion_reason(row));
}

static void print_json(json_t *object)
{
    (void)hr_cli_print_json(object, 0);
}

static int calibrate(const hr_calibrate_request *request, bool json)
{
    hr_calibrate_report report;
    hr_error err;
    if (hr_calibrate(request, &report, &err) != HR_OK) return hr_cli_fail(&err);
    if (json) {
        print_json(json_pack(
            "{so ss si si si si sf sf sf sf sf sf sf sf sf sf}", "file",
            hr_cli_json_string(report.file), "rung", report.rung, "threads", report.threads,
            "recipes", report.recipes, "left_out", report.left_out, "calls", report.calls,
            "seconds", report.seconds, "error_median", report.error_median, "error_high",
            report.error_high, "fp32_flops", report.products[0], "bf16_flops", report.products[1],
            "memory_bytes_per_second", report.memory, "fork_join_seconds", report.fork_join,
            "disk_bytes_per_second", report.disk, "file_write_bytes_per_second", report.file_write,
            "file_read_bytes_per_second", report.file_read));
        return HR_OK;
    }
    printf("calibrated with %d thread%s, %s kernels: %d of %d recipes, %d distinct "
           "kernel calls, %.1f s\n",
           report.threads, report.threads == 1 ? "" : "s", report.rung, report.recipes,
           report.recipes + report.left_out, report.calls, report.seconds);
    if (report.left_out > 0)
        printf("  skipped     %d recipes for lack of time; run it on an idle machine\n",
               report.left_out);
    printf("  matmul      %.0f GFLOP/s in fp32, %.0f in bf16, at best\n", 1e-9 * report.products[0],
           1e-9 * report.products[1]);
    if (report.memory > 0)
        printf("  optimizer   %.1f GB/s memory bandwidth\n", 1e-9 * report.memory);
    printf("  threads     %.2f us to start and join the threads of an operation\n",
           1e6 * report.fork_join);
    printf("  disk        %.0f MB/s (write and fsync)\n", 1e-6 * report.disk);
    if (report.file_write > 0)
        printf("  file        %.0f MB/s written, %.0f MB/s read (direct I/O of memory.moments)\n",
               1e-6 * report.file_write, 1e-6 * report.file_read);
    else printf("  file        not measured: the disk has no room for a file of 256 MiB\n");
    printf("  error       of the fitted step times: %.1f %% median, %.1f %% 90th percentile\n",
           100 * report.error_median, 100 * report.error_high);
    printf("  written     %s\n", report.file);
    return HR_OK;
}

static int check(const hr_calibrate_request *request, screen *s)
{
    hr_calibrate_verdict verdict;
    hr_error err;
    if (hr_calibrate_check(request, &verdict, &err) != HR_OK) {
        json_decref(s->rows);
        return hr_cli_fail(&err);
    }
    if (s->rows) {
        print_json(json_pack("{ss sf si si sf sf sf sf so}", "source", verdict.source, "speed",
                             verdict.speed, "recipes", verdict.rows, "counted", verdict.counted,
                             "error_median", verdict.error_median, "error_high", verdict.error_high,
                             "counted_median", verdict.counted_median, "counted_high",
                             verdict.counted_high, "rows", s->rows));
        return HR_OK;
    }
    printf("step times: %s\n", verdict.source);
    printf("prediction error of all %d recipes: median %.1f %%, 90th percentile %.1f "
           "%%\n",
           verdict.rows, 100 * verdict.error_median, 100 * verdict.error_high);
    if (verdict.counted == 0)
        printf("no row counts: the machine was slower, faster or unsteady in every one\n");
    else if (verdict.counted < verdict.rows)
        printf("prediction error of the %d rows at the machine speed of the calibration: "
               "median %.1f %%, 90th percentile %.1f %%\n",
               verdict.counted, 100 * verdict.counted_median, 100 * verdict.counted_high);
    if (verdict.speed < 0.9 || verdict.speed > 1.1)
        printf("the machine now runs at %.2f of its speed during calibration, so these "
               "errors are not those of the predictions; run headroom calibrate again\n",
               verdict.speed);
    return HR_OK;
}

int hr_cli_calibrate(const hr_cli_arguments *arguments)
{
    char directory[1024], date[32];
    const bool json = arguments->values[HR_OPTION_JSON],
               checks = arguments->values[HR_OPTION_CHECK];
    const time_t now = time(NULL);
    struct tm today;
    hr_error err;
    screen s = { .progress = hr_progress_begin(STDERR_FILENO) };
    hr_calibrate_request request = { .size = sizeof request,
                                     .directory = directory,
                                     .date = date,
                                     .kernels = arguments->values[HR_OPTION_KERNELS],
                                     .checks = HR_CALIBRATE_CHECKS_DEFAULT,
                                     .seconds = SECONDS,
                                     .context = &s,
                                     .progress = show_progress,
                                     .row = show_row };
    if (read_integer(arguments->values[HR_OPTION_THREADS], "threads", 256, &request.threads,
                     &err) != HR_OK ||
        read_integer(arguments->values[HR_OPTION_RECIPES], "recipes", HR_CALIBRATE_CHECKS_MAX,
                     &request.checks, &err) != HR_OK ||
        hr_cli_cache_directory(directory, sizeof directory, &err) != HR_OK)
        return hr_cli_fail(&err);
    if (arguments->values[HR_OPTION_RECIPES] && !checks) {
        (void)hr_fail(&err, HR_USAGE, "--recipes needs --check");
        return hr_cli_fail(&err);
    }
    if (!checks && !*directory) {
        (void)hr_fail(&err, HR_USAGE,
                      "XDG_CACHE_HOME and HOME are not set: there is no place for the calibration; "
                      "set one of them");
        return hr_cli_fail(&err);
    }
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &today));
    if (!checks) return calibrate(&request, json);
    if (json) s.rows = json_array();
    return check(&request, &s);
}
