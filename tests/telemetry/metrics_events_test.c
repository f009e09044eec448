/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_events_test.c - events of the log, and a log that is continued: no line is lost,
 * incomplete or duplicated. */
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

enum { FILE_BYTES = 8 * HR_METRICS_BYTES };

static char path[96], line[HR_METRICS_BYTES], text[FILE_BYTES];

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
    unlink(path);
    return 0;
}

static void good(hr_status status, const hr_error *err)
{
    if (status != HR_OK) fail_msg("%s", err->message);
}

static void open_metrics(hr_metrics *metrics)
{
    hr_error err;
    good(hr_metrics_open(metrics, path, line, &err), &err);
}

static hr_status write_step(hr_metrics *metrics, int64_t step, hr_error *err)
{
    const hr_metrics_step one = { .step = step, .loss = 2.5, .tokens = step * 8 };
    return hr_metrics_write_step(metrics, &one, err);
}

static void close_metrics(hr_metrics *metrics)
{
    hr_error err;
    good(hr_metrics_close(metrics, &err), &err);
}

/* Bytes of the file, followed by a null byte. */
static int64_t get(void)
{
    const int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    const ssize_t bytes = read(fd, text, sizeof text - 1);
    assert_in_range(bytes, 0, sizeof text - 2);
    text[bytes] = 0;
    close(fd);
    return bytes;
}

static void put(const char *content, int64_t bytes)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, content, (size_t)bytes) == bytes);
    close(fd);
}

/* The only line of the file. */
static json_t *get_line(void)
{
    const int64_t bytes = get();
    assert_true(bytes > 0 && strchr(text, '\n') == text + bytes - 1);
    json_t *object = json_loads(text, JSON_ALLOW_NUL, NULL);
    assert_non_null(object);
    return object;
}

static void every_event_is_a_line(void **state)
{
    (void)state;
    hr_metrics metrics;
    hr_error err;
    open_metrics(&metrics);
    good(hr_metrics_write_evaluation(&metrics, 20, 3.25, 4096, &err), &err);
    good(hr_metrics_write_evaluation(&metrics, 21, NAN, 0, &err), &err);
    good(hr_metrics_write_sample(&metrics, 20, "Once\nupon\" a\xff", 13, &err), &err);
    good(hr_metrics_write_save(&metrics, 20, "run/\"x\"", 1.5, &err), &err);
    good(hr_metrics_write_signal(&metrics, 23, "SIGTERM", &err), &err);
    good(hr_metrics_write_trouble(&metrics, 24, "the disk\tis full", &err), &err);
    assert_int_equal(get(), metrics.bytes);
    close_metrics(&metrics);
    assert_string_equal(
        text, "{\"event\":\"evaluation\",\"step\":20,\"valid_loss\":3.25,\"tokens\":4096}\n"
              "{\"event\":\"evaluation\",\"step\":21,\"valid_loss\":null,\"tokens\":0}\n"
              "{\"event\":\"sample\",\"step\":20,\"text\":\"Once\\nupon\\\" a\xef\xbf\xbd\"}\n"
              "{\"event\":\"save\",\"step\":20,\"path\":\"run/\\\"x\\\"\","
              "\"clock\":{\"seconds\":1.5}}\n"
              "{\"event\":\"signal\",\"signal\":\"SIGTERM\",\"step\":23}\n"
              "{\"event\":\"trouble\",\"step\":24,\"what\":\"the disk\\tis full\"}\n");
}

/* Texts whose bytes all need six-byte escapes, or none, with lengths around the limit. */
static void a_text_that_does_not_fit_is_truncated_and_marked(void **state)
{
    (void)state;
    static char long_text[2 * HR_METRICS_BYTES];
    hr_error err;
    for (int32_t wide = 0; wide < 2; wide++) {
        memset(long_text, wide ? 1 : 'x', sizeof long_text);
        const int64_t fits = (HR_METRICS_BYTES - 200) / (wide ? 6 : 1);
        const int64_t lengths[] = { 0, 1, fits, fits + 200, sizeof long_text };
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            hr_metrics metrics;
            open_metrics(&metrics);
            good(hr_metrics_write_sample(&metrics, INT64_MIN, long_text, lengths[i], &err), &err);
            assert_in_range(metrics.bytes, 1, HR_METRICS_BYTES - 1);
            close_metrics(&metrics);
            json_t *object = get_line();
            const int64_t kept = (int64_t)json_string_length(json_object_get(object, "text"));
            const bool cut = json_is_true(json_object_get(object, "cut"));
            assert_int_equal(cut, kept < lengths[i]);
            assert_int_equal(cut, lengths[i] > fits);
            if (cut) assert_true(kept >= fits);
            json_decref(object);
        }
    }
    char *name = long_text;
    name[sizeof long_text - 1] = 0;
    hr_metrics metrics;
    open_metrics(&metrics);
    good(hr_metrics_write_save(&metrics, INT64_MIN, name, -1.2345678901234567e-300, &err), &err);
    close_metrics(&metrics);
    json_t *object = get_line();
    assert_true(json_is_true(json_object_get(object, "cut")));
    assert_true(json_is_number(json_object_get(json_object_get(object, "clock"), "seconds")));
    json_decref(object);
}

/* Samples of an untrained model: arbitrary bytes that fill the buffer. */
static void any_bytes_give_a_valid_line(void **state)
{
    (void)state;
    static char bytes[16 << 10];
    uint64_t draw = 5;
    print_message("seed %llu\n", (unsigned long long)draw);
    for (int32_t i = 0; i < 30; i++) {
        hr_metrics metrics;
        hr_error err;
        for (size_t b = 0; b < sizeof bytes; b++) {
            bytes[b] = (char)hr_random_mix(++draw);
            if (i % 2) bytes[b] = (char)(' ' + (bytes[b] & 63));
        }
        open_metrics(&metrics);
        good(hr_metrics_write_sample(&metrics, i, bytes, sizeof bytes, &err), &err);
        close_metrics(&metrics);
        json_t *object = get_line();
        assert_int_equal(json_is_true(json_object_get(object, "cut")), i % 2 == 0);
        json_decref(object);
    }
}

/* ---- continuing */

/* The next line follows the kept bytes, whatever a kill left after them. */
static void continuing_truncates_later_lines_at_the_first_write(void **state)
{
    (void)state;
    hr_metrics metrics;
    hr_error err;
    open_metrics(&metrics);
    for (int64_t step = 1; step <= 3; step++) good(write_step(&metrics, step, &err), &err);
    const int64_t keep_bytes = metrics.bytes;
    for (int64_t step = 4; step <= 5; step++) good(write_step(&metrics, step, &err), &err);
    close_metrics(&metrics);
    const int64_t whole_bytes = get();
    static char whole[FILE_BYTES];
    memcpy(whole, text, (size_t)whole_bytes);

    for (int64_t left = keep_bytes; left <= whole_bytes; left++) {
        put(whole, left);
        good(hr_metrics_continue(&metrics, path, keep_bytes, line, &err), &err);
        assert_int_equal(metrics.bytes, keep_bytes);
        if (left == whole_bytes) { /* ended before its first line: the file is unchanged */
            close_metrics(&metrics);
            assert_int_equal(get(), whole_bytes);
            good(hr_metrics_continue(&metrics, path, keep_bytes, line, &err), &err);
        }
        for (int64_t step = 4; step <= 5; step++) good(write_step(&metrics, step, &err), &err);
        assert_int_equal(metrics.bytes, whole_bytes);
        good(hr_metrics_flush(&metrics, &err), &err);
        close_metrics(&metrics);
        assert_int_equal(get(), whole_bytes);
        assert_memory_equal(text, whole, (size_t)whole_bytes);
    }
}

static void continuing_without_kept_bytes_starts_the_file_again(void **state)
{
    (void)state;
    static const char *const before[] = { "",
                                          "{",
                                          "{\"step\":1,\"lo",
                                          "{\"event\":\"samp",
                                          "{\"step\":1}\n{\"st",
                                          "{\"arena_bytes_planned\":1}\n" };
    hr_metrics metrics;
    hr_error err;
    for (size_t i = 0; i <= sizeof before / sizeof *before; i++) {
        if (i < sizeof before / sizeof *before) put(before[i], (int64_t)strlen(before[i]));
        else unlink(path);
        good(hr_metrics_check(path, line, &err), &err);
        good(hr_metrics_continue(&metrics, path, 0, line, &err), &err);
        good(write_step(&metrics, 1, &err), &err);
        close_metrics(&metrics);
        json_decref(get_line());
    }
    /* A power loss can leave zeros in place of the first line, with none of our lines after
     * them. */
    put("\0\0\0\0\0", 5);
    good(hr_metrics_check(path, line, &err), &err);
    put("\0\0\0\0{", 5);
    assert_int_equal(hr_metrics_check(path, line, &err), HR_CORRUPT);
    unlink(path);
    good(hr_metrics_continue(&metrics, path, 0, line, &err), &err);
    close_metrics(&metrics);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(hr_metrics_continue(&metrics, NULL, 7, NULL, NULL), HR_OK);
    assert_int_equal(write_step(&metrics, 1, NULL), HR_OK);
    assert_int_equal(hr_metrics_flush(&metrics, NULL), HR_OK);
}

static void a_file_that_cannot_be_continued_is_refused_and_unchanged(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        int64_t keep_bytes;
        const char *said;
    } cases[] = {
        { "{\"step\":1}\n", 12, "has 11 bytes, the run needs its first 12" },
        { "{\"step\":1}\n", -1, "has 11 bytes, the run needs its first -1" },
        { "{\"step\":1}\n{\"step\":2}\n", 15,
          "has no end of line at byte 15, where the run resumes" },
        { "Dear diary,\n", 12, "exists and is not a metrics file" },
        { "Dear diary", 0, "exists and is not a metrics file" },
        { "{\"name\":{\"step\":1}}\n", 20, "exists and is not a metrics file" },
        { "{\"loss\":1}\n", 0, "exists and is not a metrics file" },
        { "[\"step\",1]\n", 11, "exists and is not a metrics file" },
        { "{\"step\":1\n", 10, "exists and is not a metrics file" },
        { "{\"step\":1} 2\n", 13, "exists and is not a metrics file" },
        { "{\"step\":1", 9, "exists and is not a metrics file" },
        { "\n{\"step\":1}\n", 12, "exists and is not a metrics file" },
    };
    hr_metrics metrics;
    hr_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t bytes = (int64_t)strlen(cases[i].content);
        put(cases[i].content, bytes);
        assert_int_equal(hr_metrics_continue(&metrics, path, cases[i].keep_bytes, line, &err),
                         HR_CORRUPT);
        if (!strstr(err.message, cases[i].said) || !strstr(err.message, path))
            fail_msg("%zu: %s", i, err.message);
        assert_int_equal(get(), bytes);
        assert_string_equal(text, cases[i].content);
    }
    /* Another kind of file, with long lines. */
    memset(text, ' ', 3 * HR_METRICS_BYTES);
    put(text, 3 * HR_METRICS_BYTES);
    assert_int_equal(hr_metrics_check(path, line, &err), HR_CORRUPT);
    put("notes\n", 6);
    assert_int_equal(hr_metrics_check(path, line, &err), HR_CORRUPT);
    unlink(path);
    assert_int_equal(hr_metrics_continue(&metrics, path, 5, line, &err), HR_CORRUPT);
    assert_non_null(strstr(err.message, "has 0 bytes, the run needs its first 5"));
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(hr_metrics_continue(&metrics, P_tmpdir, 0, line, &err), HR_USAGE);
    assert_int_equal(hr_metrics_check(P_tmpdir, line, &err), HR_USAGE);
    assert_int_equal(hr_metrics_continue(&metrics, "no/such/m.jsonl", 0, line, &err), HR_USAGE);
}

/* ---- faults */

static void limit_files_to(int64_t bytes)
{
    struct rlimit now;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &now), 0);
    now.rlim_cur = bytes < 0 ? now.rlim_max : (rlim_t)bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
}

/* A file size limit simulates a disk that is full after any byte of a line. */
static void a_full_disk_loses_only_the_lines_written_meanwhile(void **state)
{
    (void)state;
    hr_metrics metrics;
    hr_error err;
    signal(SIGXFSZ, SIG_IGN);
    open_metrics(&metrics);
    good(write_step(&metrics, 1, &err), &err);
    const int64_t line_bytes = metrics.bytes;
    for (int64_t room = 0; room < line_bytes; room++) {
        const int64_t before = metrics.bytes;
        for (int32_t again = 0; again < 2; again++) {
            limit_files_to(before + room);
            const hr_status status = write_step(&metrics, 2, &err);
            limit_files_to(-1);
            assert_int_equal(status, HR_FAILURE);
            assert_int_equal(metrics.bytes, before);
            assert_int_equal(get(), before);
        }
        if (metrics.bytes > FILE_BYTES / 2) break;
        good(write_step(&metrics, 3, &err), &err);
        assert_int_equal(get(), metrics.bytes);
        for (char *at = text; *at; at = strchr(at, '\n') + 1) {
            assert_memory_equal(at, "{\"step\":", 8);
            assert_non_null(strchr(at, '\n'));
        }
    }
    close_metrics(&metrics);
}

/* Bytes that another process appended are not overwritten. */
static void lines_are_appended_after_those_of_other_processes(void **state)
{
    (void)state;
    hr_metrics metrics;
    hr_error err;
    open_metrics(&metrics);
    good(write_step(&metrics, 1, &err), &err);
    const int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "{\"note\":1}\n", 11), 11);
    close(fd);
    good(write_step(&metrics, 2, &err), &err);
    close_metrics(&metrics);
    get();
    assert_non_null(strstr(text, "}\n{\"note\":1}\n{\"step\":2,"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_event_is_a_line, make_path, drop_path),
        cmocka_unit_test_setup_teardown(a_text_that_does_not_fit_is_truncated_and_marked, make_path,
                                        drop_path),
        cmocka_unit_test_setup_teardown(any_bytes_give_a_valid_line, make_path, drop_path),
        cmocka_unit_test_setup_teardown(continuing_truncates_later_lines_at_the_first_write,
                                        make_path, drop_path),
        cmocka_unit_test_setup_teardown(continuing_without_kept_bytes_starts_the_file_again,
                                        make_path, drop_path),
        cmocka_unit_test_setup_teardown(a_file_that_cannot_be_continued_is_refused_and_unchanged,
                                        make_path, drop_path),
        cmocka_unit_test_setup_teardown(a_full_disk_loses_only_the_lines_written_meanwhile,
                                        make_path, drop_path),
        cmocka_unit_test_setup_teardown(lines_are_appended_after_those_of_other_processes,
                                        make_path, drop_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
