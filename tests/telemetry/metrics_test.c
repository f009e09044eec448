/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_test.c - metrics are parsed again, bit for bit. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/random.h"
#include "telemetry/metrics.h"

static char path[96];

static int make_path(void **state)
{
    (void)state;
    const char *parent = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.60s/metrics_XXXXXX", parent ? parent : P_tmpdir);
    const int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int drop_path(void **state)
{
    (void)state;
    return unlink(path);
}

static void open_metrics(hr_metrics *metrics)
{
    static char line[HR_METRICS_BYTES];
    hr_error err;
    if (hr_metrics_open(metrics, path, line, &err) != HR_OK) fail_msg("%s", err.message);
}

static double number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static double random_double(uint64_t *draw)
{
    double value;
    do {
        const uint64_t bits = hr_random_mix(++*draw);
        memcpy(&value, &bits, sizeof value);
    } while (!isfinite(value));
    return value;
}

static void every_number_reads_back_to_the_same_bits(void **state)
{
    (void)state;
    enum { LINES = 200 };
    const uint64_t seed = 41;
    print_message("seed %llu\n", (unsigned long long)seed);
    hr_metrics_step steps[LINES];
    hr_metrics metrics;
    uint64_t draw = seed;
    open_metrics(&metrics);
    for (int32_t i = 0; i < LINES; i++) {
        steps[i] = (hr_metrics_step){ i + 1,
                                      random_double(&draw),
                                      random_double(&draw),
                                      random_double(&draw),
                                      INT64_MAX - i,
                                      random_double(&draw),
                                      random_double(&draw),
                                      i % 2,
                                      random_double(&draw),
                                      i / 2 % 2 * fabs(random_double(&draw)),
                                      fabs(random_double(&draw)) };
        assert_int_equal(hr_metrics_write_step(&metrics, &steps[i], NULL), HR_OK);
    }
    assert_int_equal(hr_metrics_close(&metrics, NULL), HR_OK);

    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[HR_METRICS_BYTES];
    for (int32_t i = 0; i < LINES; i++) {
        assert_non_null(fgets(line, sizeof line, file));
        json_t *object = json_loads(line, 0, NULL);
        assert_non_null(object);
        const json_t *clock = json_object_get(object, "clock");
        assert_int_equal(json_object_size(object), 6 + i % 2 + (steps[i].loss_scale > 0));
        if (steps[i].loss_scale > 0)
            assert_true(number(object, "loss_scale") == steps[i].loss_scale);
        if (i % 2) assert_true(number(object, "z_loss") == steps[i].z_loss);
        assert_int_equal(json_integer_value(json_object_get(object, "step")), steps[i].step);
        assert_int_equal(json_integer_value(json_object_get(object, "tokens")), steps[i].tokens);
        assert_true(number(object, "loss") == steps[i].loss);
        assert_true(number(object, "lr") == steps[i].lr);
        assert_true(number(object, "grad_norm") == steps[i].grad_norm);
        assert_true(number(clock, "tokens_per_second") == steps[i].tokens_per_second);
        assert_true(number(clock, "seconds") == steps[i].seconds);
        assert_true(number(clock, "fraction_of_ceiling") == steps[i].fraction_of_ceiling);
        json_decref(object);
    }
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
}

static void non_finite_numbers_are_null(void **state)
{
    (void)state;
    hr_metrics metrics;
    open_metrics(&metrics);
    const hr_metrics_step step = { 1, NAN, INFINITY, -INFINITY, 2, 3, 0.5 };
    const hr_metrics_last last = { 10, 9, 8, 7, NAN };
    assert_int_equal(hr_metrics_write_step(&metrics, &step, NULL), HR_OK);
    assert_int_equal(hr_metrics_write_last(&metrics, &last, NULL), HR_OK);
    assert_int_equal(hr_metrics_close(&metrics, NULL), HR_OK);
    char text[2 * HR_METRICS_BYTES] = { 0 };
    const int fd = open(path, O_RDONLY);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    assert_string_equal(text, "{\"step\":1,\"loss\":null,\"lr\":null,\"grad_norm\":null,"
                              "\"tokens\":2,\"clock\":{\"tokens_per_second\":3,"
                              "\"fraction_of_ceiling\":null,\"seconds\":0.5}}\n"
                              "{\"arena_bytes_planned\":10,\"arena_bytes_used\":9,"
                              "\"process_bytes_planned\":8,\"process_bytes_measured\":7,"
                              "\"valid_loss\":null}\n");
}

static void the_longest_line_fits(void **state)
{
    (void)state;
    hr_metrics metrics;
    open_metrics(&metrics);
    const double wide = -1.2345678901234567e-300;
    const hr_metrics_step step = { INT64_MIN, wide, wide, wide, INT64_MIN,
                                   wide,      wide, true, wide, 1.2345678901234567e-300 };
    const hr_metrics_last last = { INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, wide };
    assert_int_equal(hr_metrics_write_step(&metrics, &step, NULL), HR_OK);
    assert_int_equal(hr_metrics_write_last(&metrics, &last, NULL), HR_OK);
    assert_int_equal(hr_metrics_close(&metrics, NULL), HR_OK);
}

static void without_a_path_nothing_is_written(void **state)
{
    (void)state;
    hr_metrics metrics;
    const hr_metrics_step step = { 1, 1, 1, 1, 1, 1, 1 };
    assert_int_equal(hr_metrics_open(&metrics, NULL, NULL, NULL), HR_OK);
    assert_int_equal(hr_metrics_write_step(&metrics, &step, NULL), HR_OK);
    assert_int_equal(hr_metrics_close(&metrics, NULL), HR_OK);
}

static void an_unwritable_path_is_named(void **state)
{
    (void)state;
    hr_metrics metrics;
    hr_error err;
    assert_int_equal(hr_metrics_open(&metrics, "no/such/folder/m.jsonl", NULL, &err), HR_USAGE);
    assert_string_equal(err.message, "the metrics no/such/folder/m.jsonl cannot be written: No "
                                     "such file or directory");
}

static void a_deleted_file_is_reported(void **state)
{
    (void)state;
    hr_metrics metrics;
    hr_error err;
    open_metrics(&metrics);
    assert_int_equal(hr_metrics_check_name(&metrics, &err), HR_OK);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(hr_metrics_check_name(&metrics, &err), HR_FAILURE);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(hr_metrics_close(&metrics, &err), HR_OK);
    assert_int_equal(hr_metrics_check_name(&metrics, &err), HR_OK);
    assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0); /* removed by drop_path */
}

static void a_full_disk_is_a_failure(void **state)
{
    (void)state;
    static char line[HR_METRICS_BYTES];
    hr_metrics metrics;
    hr_error err;
    const hr_metrics_step step = { 1, 1, 1, 1, 1, 1, 1 };
    assert_int_equal(hr_metrics_open(&metrics, "/dev/full", line, &err), HR_OK);
    assert_int_equal(hr_metrics_write_step(&metrics, &step, &err), HR_FAILURE);
    assert_string_equal(err.message,
                        "the metrics /dev/full cannot be written: No space left on device");
    assert_int_equal(hr_metrics_close(&metrics, NULL), HR_OK);
}

/* A file size limit simulates a disk that is full in the middle of a line. */
static void a_partial_line_is_removed(void **state)
{
    (void)state;
    const hr_metrics_step step = { 1, 1, 1, 1, 1, 1, 1 };
    struct rlimit before;
    hr_metrics metrics;
    hr_error err;
    open_metrics(&metrics);
    assert_int_equal(hr_metrics_write_step(&metrics, &step, &err), HR_OK);
    const int64_t bytes = metrics.bytes;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit full = { (rlim_t)bytes + 7, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    const hr_status status = hr_metrics_write_step(&metrics, &step, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, HR_FAILURE);
    assert_non_null(strstr(err.message, "File too large"));
    struct stat file;
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_size, bytes);
    assert_int_equal(hr_metrics_write_step(&metrics, &step, &err), HR_OK);
    assert_int_equal(hr_metrics_close(&metrics, &err), HR_OK);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_size, 2 * bytes);
}

static void a_file_without_new_lines_is_unchanged(void **state)
{
    (void)state;
    hr_metrics metrics;
    struct stat file;
    assert_int_equal(truncate(path, 100), 0);
    open_metrics(&metrics);
    assert_int_equal(hr_metrics_close(&metrics, NULL), HR_OK);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_size, 100);

    const hr_metrics_step step = { 1, 1, 1, 1, 1, 1, 1 };
    open_metrics(&metrics);
    assert_int_equal(hr_metrics_write_step(&metrics, &step, NULL), HR_OK);
    const int64_t bytes = metrics.bytes;
    assert_int_equal(hr_metrics_close(&metrics, NULL), HR_OK);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_size, bytes);

    assert_int_equal(unlink(path), 0);
    open_metrics(&metrics);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(hr_metrics_close(&metrics, NULL), HR_OK);
    assert_int_not_equal(access(path, F_OK), 0);
    open_metrics(&metrics);
    assert_int_equal(hr_metrics_write_step(&metrics, &step, NULL), HR_OK);
    assert_int_equal(hr_metrics_close(&metrics, NULL), HR_OK);
    assert_int_equal(access(path, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_number_reads_back_to_the_same_bits, make_path,
                                        drop_path),
        cmocka_unit_test_setup_teardown(non_finite_numbers_are_null, make_path, drop_path),
        cmocka_unit_test_setup_teardown(the_longest_line_fits, make_path, drop_path),
        cmocka_unit_test_setup_teardown(a_partial_line_is_removed, make_path, drop_path),
        cmocka_unit_test_setup_teardown(a_file_without_new_lines_is_unchanged, make_path,
                                        drop_path),
        cmocka_unit_test_setup_teardown(a_deleted_file_is_reported, make_path, drop_path),
        cmocka_unit_test(without_a_path_nothing_is_written),
        cmocka_unit_test(an_unwritable_path_is_named),
        cmocka_unit_test(a_full_disk_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
