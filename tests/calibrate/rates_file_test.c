/* SPDX-License-Identifier: Apache-2.0 */
/* rates_file_test.c - a calibration is read back as it was written, ignored if it is stale, and
 * refused with a message if it is invalid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "calibrate/rates_file.h"
#include "ops/cpu.h"
#include "ops/list.h"

static char folder[64], path[256];
static hr_rates_machine machine;
static uint32_t mask;
static hr_error err;

enum { THREADS = 2 };

static int make_folder(void **state)
{
    (void)state;
    const char *parent = getenv("TMPDIR");
    char name[HR_RATES_NAME_BYTES];
    snprintf(folder, sizeof folder, "%.40s/rates_XXXXXX", parent ? parent : P_tmpdir);
    if (!mkdtemp(folder)) return -1;
    mask = hr_cpu_detect();
    hr_rates_machine_of(&hr_cpu_backend, mask, THREADS, &machine);
    hr_rates_name(&machine, name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    remove(path);
    return rmdir(folder);
}

static hr_rates guessed(void)
{
    hr_rates rates;
    hr_rates_guess(&hr_cpu_backend, mask, THREADS, &rates);
    return rates;
}

static void save(const hr_rates *rates, const hr_rates_machine *of)
{
    if (hr_rates_save(folder, &hr_cpu_backend, of, "2025-03-14", rates, &err) != HR_OK)
        fail_msg("%s", err.message);
}

static hr_status load(const char *directory, hr_rates *rates, char *source)
{
    return hr_rates_load(directory, &hr_cpu_backend, mask, THREADS, rates, source, &err);
}

static void a_calibration_is_read_back_as_it_was_written(void **state)
{
    (void)state;
    hr_rates rates = guessed(), read;
    char source[HR_RATES_SOURCE_BYTES];
    for (int32_t op = 0; op < HR_OP_COUNT; op++) {
        if (hr_op_table[op]->host) continue;
        for (int32_t dtype = 0; dtype < 2; dtype++) {
            rates.op[op][dtype].call_ps = 17 * op + dtype;
            for (int32_t t = 0; t < HR_TERM_COUNT; t++)
                rates.op[op][dtype].unit_as[t] = t == op % 5 ? 0 : 1000 * op + 100 * dtype + t;
            rates.op[op][dtype].unit_as[HR_TERM_OUT] = HR_RATE_UNIT_AS_MOST;
        }
    }
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++) rates.pace_us[i] = 8765 + i;
    rates.disk_rate = 123456789012345;
    rates.file_read_rate = 223456789012345;
    rates.file_write_rate = 323456789012345;
    save(&rates, &machine);
    memset(&read, 0x55, sizeof read);
    assert_int_equal(load(folder, &read, source), HR_OK);
    assert_memory_equal(&read, &rates, sizeof rates);
    assert_string_equal(source, "calibrated on this machine 2025-03-14");
}

static void without_a_calibration_rates_are_estimated(void **state)
{
    (void)state;
    const hr_rates guess = guessed();
    hr_rates read;
    char source[HR_RATES_SOURCE_BYTES], expected[HR_RATES_SOURCE_BYTES];
    snprintf(expected, sizeof expected, "estimated from the instruction set (%s)",
             hr_cpu_rung_name(mask));
    remove(path);
    const char *const nowhere[] = { folder, NULL, "", "/nonexistent" };
    for (int32_t i = 0; i < 4; i++) {
        memset(&read, 0x55, sizeof read);
        assert_int_equal(load(nowhere[i], &read, source), HR_OK);
        assert_memory_equal(&read, &guess, sizeof guess);
        assert_string_equal(source, expected);
    }
}

/* The same file from another machine or build. */
static void a_stale_calibration_is_ignored_with_a_note(void **state)
{
    (void)state;
    const hr_rates guess = guessed();
    for (int32_t i = 0; i < 7; i++) {
        hr_rates_machine other = machine;
        hr_rates read, measured = guess;
        char source[HR_RATES_SOURCE_BYTES], name[HR_RATES_NAME_BYTES], there[256];
        if (i == 0) other.build ^= 1;
        if (i == 1) other.threads++;
        if (i == 2) strcpy(other.processor, "another");
        if (i == 3) strcpy(other.rung, "another");
        if (i == 4) strcpy(other.huge_pages, "another");
        if (i == 5) other.page_bytes *= 4;
        if (i == 6) strcpy(other.backend, "another");
        measured.op[HR_OP_linear][1].call_ps++;
        save(&measured, &other);
        hr_rates_name(&other, name);
        snprintf(there, sizeof there, "%s/%s", folder, name);
        if (i > 0) assert_string_not_equal(there, path); /* machines do not share a file */
        assert_int_equal(rename(there, path), 0);
        assert_int_equal(load(folder, &read, source), HR_OK);
        assert_memory_equal(&read, &guess, sizeof guess);
        assert_non_null(strstr(source, "estimated from the instruction set"));
        assert_non_null(
            strstr(source, i == 0 ? "is from another build and is ignored"
                                  : "is from another machine or number of threads and is ignored"));
    }
}

static void a_calibration_of_an_older_version_is_ignored(void **state)
{
    (void)state;
    const hr_rates guess = guessed();
    hr_rates read, measured = guess;
    char source[HR_RATES_SOURCE_BYTES];
    measured.op[HR_OP_linear][1].call_ps++;
    save(&measured, &machine);
    json_t *root = json_load_file(path, 0, NULL);
    json_object_set_new(root, "version", json_integer(1));
    json_object_del(root, "pace_us");
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
    assert_int_equal(load(folder, &read, source), HR_OK);
    assert_memory_equal(&read, &guess, sizeof guess);
    assert_non_null(strstr(source, "is from another build and is ignored"));
}

static void put(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void expect_refused(const char *why)
{
    hr_rates read, before;
    char source[HR_RATES_SOURCE_BYTES] = "as it was";
    memset(&read, 0x55, sizeof read);
    before = read;
    assert_int_equal(load(folder, &read, source), HR_CORRUPT);
    if (!strstr(err.message, why)) fail_msg("\"%s\" is not in: %s", why, err.message);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, "calibrat"));
    assert_memory_equal(&read, &before, sizeof read);
    assert_string_equal(source, "as it was");
}

static void files_that_are_not_a_calibration_are_refused(void **state)
{
    (void)state;
    put("");
    expect_refused("not JSON");
    put("{\"version\":1");
    expect_refused("not JSON");
    put("[1, 2, 3]");
    expect_refused("are missing");
    put("{\"version\":1, \"version\":1}");
    expect_refused("not JSON");
    put("{\"version\":\"1\", \"date\":\"\", \"machine\":{}, \"rates\":{}}");
    expect_refused("are missing");
    FILE *file = fopen(path, "w");
    for (int32_t i = 0; i < 1 << 18; i++) fputc(' ', file);
    fclose(file);
    expect_refused("bytes");
}

/* One rate is replaced by each kind of invalid value. */
static void invalid_rates_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *value, *why;
    } cases[] = {
        { "-1", "a negative rate of linear" },     { "1000000000001", "too large, of linear" },
        { "99999999999999999999999", "not JSON" }, { "1e300", "not an integer, of linear" },
        { "0.5", "not an integer, of linear" },    { "NaN", "not JSON" },
        { "null", "not an integer, of linear" },   { "\"12\"", "not an integer, of linear" },
        { "[1]", "not an integer, of linear" }
    };
    const hr_rates rates = guessed();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        save(&rates, &machine);
        json_t *root = json_load_file(path, 0, NULL);
        assert_non_null(root);
        json_t *linear = json_object_get(json_object_get(root, "rates"), "linear");
        json_object_set_new(json_object_get(linear, "bf16"), "flop_as", json_string("@"));
        char *text = json_dumps(root, 0), *at = strstr(text, "\"@\"");
        char *made = calloc(strlen(text) + 64, 1);
        sprintf(made, "%.*s%s%s", (int)(at - text), text, cases[i].value, at + 3);
        put(made);
        expect_refused(cases[i].why);
        json_decref(root);
        free(text);
        free(made);
    }
}

static void an_invalid_disk_rate_is_refused(void **state)
{
    (void)state;
    static const char *const keys[] = { "disk_bytes_per_second", "file_read_bytes_per_second",
                                        "file_write_bytes_per_second" };
    const hr_rates rates = guessed();
    for (int32_t i = 0; i < 9; i++) {
        const char *key = keys[i / 3];
        char expected[80];
        if (i == 3 || i == 6) continue; /* missing: the next test */
        save(&rates, &machine);
        json_t *root = json_load_file(path, 0, NULL);
        if (i % 3 == 0) json_object_del(root, key);
        if (i % 3 == 1) json_object_set_new(root, key, json_integer(-1));
        if (i % 3 == 2) json_object_set_new(root, key, json_string("fast"));
        assert_int_equal(json_dump_file(root, path, 0), 0);
        json_decref(root);
        snprintf(expected, sizeof expected, "invalid %s", key);
        expect_refused(expected);
    }
}

static void a_calibration_without_file_rates_leaves_the_estimate(void **state)
{
    (void)state;
    hr_rates rates = guessed(), read;
    char source[HR_RATES_SOURCE_BYTES];
    rates.file_read_rate = 1300000000;
    rates.file_write_rate = 2500000000;
    assert_int_equal(hr_rates_file_read(&rates), 1300000000);
    assert_int_equal(hr_rates_file_write(&rates), 2500000000);
    save(&rates, &machine);
    json_t *root = json_load_file(path, 0, NULL);
    json_object_del(root, "file_read_bytes_per_second");
    json_object_del(root, "file_write_bytes_per_second");
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
    assert_int_equal(load(folder, &read, source), HR_OK);
    assert_string_equal(source, "calibrated on this machine 2025-03-14");
    assert_int_equal(read.file_read_rate, 0);
    assert_int_equal(read.file_write_rate, 0);
    assert_int_equal(hr_rates_file_read(&read), 500000000);
    assert_int_equal(hr_rates_file_write(&read), 500000000);
}

static void an_invalid_speed_is_refused(void **state)
{
    (void)state;
    const hr_rates rates = guessed();
    for (int32_t i = 0; i < 6; i++) {
        save(&rates, &machine);
        json_t *root = json_load_file(path, 0, NULL), *parts = json_object_get(root, "pace_us");
        if (i == 0) json_object_del(root, "pace_us");
        if (i == 1) json_array_set_new(parts, 0, json_integer(-1));
        if (i == 2) json_array_set_new(parts, 1, json_integer(INT64_C(1) << 31));
        if (i == 3) json_array_set_new(parts, 2, json_real(0.5));
        if (i == 4) json_array_remove(parts, 2);
        if (i == 5) json_object_set_new(root, "pace_us", json_integer(8765));
        assert_int_equal(json_dump_file(root, path, 0), 0);
        json_decref(root);
        expect_refused("invalid pace_us");
    }
}

static void missing_and_unknown_rates_are_refused(void **state)
{
    (void)state;
    const hr_rates rates = guessed();
    for (int32_t i = 0; i < 5; i++) {
        save(&rates, &machine);
        json_t *root = json_load_file(path, 0, NULL), *all = json_object_get(root, "rates");
        json_t *linear = json_object_get(all, "linear");
        if (i == 0) json_object_del(all, "linear");
        if (i == 1) json_object_del(linear, "bf16");
        if (i == 2) json_object_clear(json_object_get(linear, "bf16"));
        if (i == 3)
            json_object_set_new(json_object_get(linear, "bf16"), "in99_as", json_integer(1));
        if (i == 4) json_object_set_new(root, "rates", json_array());
        assert_int_equal(json_dump_file(root, path, 0), 0);
        static const char *const why[] = { "no rates for linear", "no rates for linear",
                                           "all rates are zero in linear",
                                           "an unknown term of linear", "it has no rates" };
        expect_refused(why[i]);
        json_decref(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_calibration_is_read_back_as_it_was_written),
        cmocka_unit_test(without_a_calibration_rates_are_estimated),
        cmocka_unit_test(a_stale_calibration_is_ignored_with_a_note),
        cmocka_unit_test(a_calibration_of_an_older_version_is_ignored),
        cmocka_unit_test(files_that_are_not_a_calibration_are_refused),
        cmocka_unit_test(an_invalid_speed_is_refused),
        cmocka_unit_test(an_invalid_disk_rate_is_refused),
        cmocka_unit_test(a_calibration_without_file_rates_leaves_the_estimate),
        cmocka_unit_test(invalid_rates_are_refused),
        cmocka_unit_test(missing_and_unknown_rates_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
