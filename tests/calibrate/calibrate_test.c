/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate_test.c - a calibration with one recipe, a check that uses its file, and the command.
 * The measured figures are not tested. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cpu.h"
#include "calibrate/rates_file.h"
#include "headroom/calibrate.h"
#include "ops/cpu.h"
#include "require.h"

static char folder[64];
static hr_error err;

static int make_folder(void **state)
{
    (void)state;
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.40s/calib_XXXXXX", parent ? parent : P_tmpdir);
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return chdir("/") == 0 ? system(command) : -1;
}

typedef struct {
    int32_t progress_count, rows;
    hr_calibrate_row last;
} listener;

static void listen_progress(void *context, int32_t done, int32_t all)
{
    listener *l = context;
    assert_true(done >= 0 && done <= all);
    l->progress_count++;
}

static void listen_row(void *context, const hr_calibrate_row *row)
{
    listener *l = context;
    l->last = *row;
    l->rows++;
}

static void a_check_uses_the_measured_rates(void **state)
{
    (void)state;
    listener l = { .progress_count = 0 };
    hr_calibrate_report report;
    hr_calibrate_verdict verdict;
    const hr_calibrate_request request = { .size = sizeof request,
                                           .directory = "a/b",
                                           .date = "2025-03-14",
                                           .threads = 1,
                                           .checks = 1,
                                           .recipes = 1,
                                           .context = &l,
                                           .progress = listen_progress,
                                           .row = listen_row };
    if (hr_calibrate(&request, &report, &err) != HR_OK) fail_msg("%s", err.message);
    assert_int_equal(report.threads, 1);
    assert_int_equal(report.recipes, 1);
    assert_int_equal(report.left_out, 0);
    assert_true(report.calls > 20 && l.progress_count > 1);
    assert_true(report.seconds > 0 && report.fork_join > 0 && report.products[1] > 0);
    assert_true(report.disk > 0 && report.file_write > 0 && report.file_read > 0);
    assert_true(report.error_median <= report.error_high);
    assert_int_equal(access(report.file, R_OK), 0);
    if (hr_calibrate_check(&request, &verdict, &err) != HR_OK) fail_msg("%s", err.message);
    assert_string_equal(verdict.source, "calibrated on this machine 2025-03-14");
    assert_int_equal(verdict.rows, 1);
    assert_int_equal(l.rows, 1);
    assert_true(l.last.predicted_seconds > 0 && l.last.measured_seconds > 0);
    assert_true(l.last.speed > 0 && verdict.speed == l.last.speed);
    assert_true(!l.last.counts || fabs(log(l.last.speed)) <= log(1.1));
    assert_int_equal(verdict.counted, l.last.counts);
    assert_true(verdict.counted_median == (l.last.counts ? fabs(l.last.error) : 0));
    assert_true(fabs(l.last.error - (l.last.predicted_seconds / l.last.measured_seconds - 1)) <
                1e-12);
    assert_true(verdict.error_median == fabs(l.last.error));
}

static void too_many_recipes_or_threads_are_refused(void **state)
{
    (void)state;
    hr_calibrate_report report;
    hr_calibrate_verdict verdict;
    hr_calibrate_request request = {
        .size = sizeof request, .directory = folder, .date = "", .checks = 41
    };
    assert_int_equal(hr_calibrate_check(&request, &verdict, &err), HR_USAGE);
    assert_string_equal(err.message, "--recipes takes 1 to 40, not 41");
    request.threads = 257;
    assert_int_equal(hr_calibrate(&request, &report, &err), HR_USAGE);
    assert_string_equal(err.message, "calibration runs on 1 to 256 threads, not on 257");
}

/* Runs the program with its cache in this folder; returns the exit code. */
static int run(const char *before, const char *arguments)
{
    char command[512];
    if (!getenv("HEADROOM")) hr_test_skip("program", "HEADROOM does not name the program");
    snprintf(command, sizeof command,
             "XDG_CACHE_HOME='%s/cache' %s \"$HEADROOM\" calibrate %s >out.txt 2>err.txt", folder,
             before, arguments);
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_said(const char *text)
{
    char said[1024] = "";
    FILE *file = fopen("err.txt", "r");
    assert_non_null(file);
    said[fread(said, 1, sizeof said - 1, file)] = 0;
    fclose(file);
    if (!strstr(said, text)) fail_msg("\"%s\" is not in: %s", text, said);
}

static void the_command_refuses_invalid_arguments(void **state)
{
    (void)state;
    assert_int_equal(run("", "--recipes 41"), HR_USAGE);
    expect_said("--recipes takes an integer from 1 to 40; got \"41\"");
    assert_int_equal(run("", "--threads 0"), HR_USAGE);
    expect_said("--threads takes an integer from 1 to 256; got \"0\"");
    assert_int_equal(run("", "--threads 2x"), HR_USAGE);
    assert_int_equal(run("", "--kernels avx3"), HR_USAGE);
    expect_said("no kernels are named \"avx3\"");
    assert_int_equal(run("", "recipe.yaml"), HR_USAGE);
    assert_int_equal(run("env -u HOME -u XDG_CACHE_HOME", ""), HR_USAGE);
    expect_said("there is no place for the calibration");
}

static void an_invalid_calibration_file_is_refused(void **state)
{
    (void)state;
    hr_rates_machine machine;
    char name[HR_RATES_NAME_BYTES], path[256];
    hr_rates_machine_of(&hr_cpu_backend, hr_cpu_detect(), 1, &machine);
    hr_rates_name(&machine, name);
    snprintf(path, sizeof path, "cache/headroom/%s", name);
    assert_int_equal(system("mkdir -p cache/headroom"), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"rates\": -1}", file);
    fclose(file);
    assert_int_equal(run("", "--check --threads 1"), HR_CORRUPT);
    expect_said("invalid calibration");
}

static void an_interrupted_calibration_leaves_no_file(void **state)
{
    (void)state;
    assert_int_equal(run("timeout --preserve-status -s INT 0.3", "--threads 2"), 130);
    assert_int_equal(run("timeout --preserve-status -s TERM 0.3", "--threads 2"), 143);
    assert_int_equal(system("test -z \"$(find . -name '*.partial*')\""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_check_uses_the_measured_rates),
        cmocka_unit_test(too_many_recipes_or_threads_are_refused),
        cmocka_unit_test(the_command_refuses_invalid_arguments),
        cmocka_unit_test(an_invalid_calibration_file_is_refused),
        cmocka_unit_test(an_interrupted_calibration_leaves_no_file),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
