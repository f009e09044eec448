/* SPDX-License-Identifier: Apache-2.0 */
/* token_rows_test.c - rows of tokens read back as written, in both dtypes; invalid files are
 * refused and closed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/token_rows.h"
#include "guard.h"
#include "support/in_folder.h"
#include "support/stored.h"

enum { V = 70000, SEED = 20261122 };

/* Random ids, with 0 and V - 1 among them, and labels of which a third are -100. */
static void draw(int64_t count, int64_t *ids, int64_t *labels)
{
    for (int64_t i = 0; i < count; i++) {
        const uint64_t bits = hr_random_mix(SEED + (uint64_t)i);
        ids[i] = i % 7 == 0 ? 0 : i % 7 == 1 ? V - 1 : (int64_t)(bits % V);
        labels[i] = bits >> 40 & 1 || i % 5 == 0 ? (int64_t)(bits >> 20) % V : HR_LABEL_IGNORED;
    }
}

static void add(stored_file *file, const char *name, bool wide, const char *shape,
                const int64_t *values, int64_t count)
{
    int32_t *narrow = malloc((size_t)count * sizeof *narrow);
    for (int64_t i = 0; i < count; i++) narrow[i] = (int32_t)values[i];
    stored_add(file, name, wide ? "I64" : "I32", shape, wide ? (const void *)values : narrow,
               count * (wide ? 8 : 4));
    free(narrow);
}

static const char *put(const char *name, int64_t rows, int64_t length, const int64_t *ids,
                       const int64_t *labels, bool wide_ids, bool wide_labels)
{
    const char *path = hr_folder_path(&folder, name);
    char shape[64];
    float other[3] = { 0 };
    stored_file file = stored_begin();
    snprintf(shape, sizeof shape, "[%lld,%lld]", (long long)rows, (long long)length);
    add(&file, "labels", wide_labels, shape, labels, rows * length);
    stored_add(&file, "attention_mask", "F32", "[3]", other, sizeof other);
    add(&file, "input_ids", wide_ids, shape, ids, rows * length);
    stored_end(&file, path);
    return path;
}

static hr_token_rows open_rows(const char *path)
{
    hr_error err;
    hr_token_rows rows = { .file = -1, .vocabulary = V };
    if (hr_token_rows_open(&rows, path, &err) != HR_OK) fail_msg("%s", err.message);
    return rows;
}

/* Rows shorter than a chunk of 512 numbers, equally long, and longer. */
static void rows_read_back_as_they_were_written(void **state)
{
    static const int64_t lengths[] = { 1, 2, 23, 511, 512, 513, 1500 };
    enum { ROWS = 3 };
    (void)state;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        const int64_t T = lengths[k], count = ROWS * T;
        int64_t *ids = malloc((size_t)count * 8), *labels = malloc((size_t)count * 8);
        draw(count, ids, labels);
        for (int32_t types = 0; types < 4; types++) {
            hr_error err;
            hr_token_rows rows = open_rows(
                put("rows", ROWS, T, ids, labels, types & 1, types >> 1));
            hr_token_rows_facts facts;
            int64_t sum = 0;
            assert_int_equal(rows.rows, ROWS);
            assert_int_equal(rows.length, T);
            for (int64_t row = ROWS - 1; row >= 0; row--) {
                hr_guard guards[2];
                int32_t *got = hr_guard_open(&guards[0], T * 4);
                int32_t *targets = hr_guard_open(&guards[1], T * 4);
                int64_t here = -1, again = -1;
                assert_int_equal(hr_token_rows_read(&rows, row, got, targets, &here, &err), HR_OK);
                assert_int_equal(hr_token_rows_read(&rows, row, NULL, NULL, &again, &err), HR_OK);
                assert_int_equal(here, again);
                for (int64_t t = 0; t < T; t++) {
                    const int64_t label = labels[row * T + t];
                    assert_int_equal(got[t], ids[row * T + t]);
                    assert_int_equal(targets[t], label == HR_LABEL_IGNORED ? -1 : label);
                    here -= targets[t] >= 0;
                }
                assert_int_equal(here, 0);
                sum += again;
                hr_guard_close(&guards[0]);
                hr_guard_close(&guards[1]);
            }
            assert_int_equal(hr_token_rows_check(&rows, NULL, &facts, &err), HR_OK);
            assert_int_equal(facts.targets, sum);
            hr_token_rows_close(&rows);
            assert_int_equal(rows.file, -1);
            hr_token_rows_close(&rows);
        }
        free(labels);
        free(ids);
    }
}

/* Without labels, the next token is the target; and the header may have any size. */
static void without_labels_the_target_is_the_next_token_of_the_row(void **state)
{
    static const int64_t lengths[] = { 1, 2, 512, 513, 1500 };
    enum { ROWS = 2 };
    (void)state;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        const int64_t T = lengths[k], count = ROWS * T;
        int64_t *ids = malloc((size_t)count * 8), *unused = malloc((size_t)count * 8), here;
        int32_t *got = malloc((size_t)T * 4), *targets = malloc((size_t)T * 4);
        char shape[64];
        hr_error err;
        draw(count, ids, unused);
        snprintf(shape, sizeof shape, "[%d,%lld]", ROWS, (long long)T);
        stored_file file = stored_begin();
        for (int32_t i = 0; i < 300; i++) {
            char name[64];
            snprintf(name, sizeof name, "model.layers.%d.weight", i);
            stored_add(&file, name, "F32", "[1]", ids, 4);
        }
        add(&file, "input_ids", false, shape, ids, count);
        const char *path = hr_folder_path(&folder, "ids");
        stored_end(&file, path);
        const int64_t bytes = (hr_stored_bytes(path) + 63) / 64 * 64;
        hr_region region = hr_region_over(aligned_alloc(64, (size_t)bytes), bytes);
        hr_token_rows rows = { .file = -1, .vocabulary = V };
        assert_int_equal(hr_token_rows_open_in(&rows, path, &region, &err), HR_OK);
        free(region.base);
        for (int64_t row = 0; row < ROWS; row++) {
            assert_int_equal(hr_token_rows_read(&rows, row, got, targets, &here, &err), HR_OK);
            assert_int_equal(here, T - 1);
            for (int64_t t = 0; t < T; t++) {
                assert_int_equal(got[t], ids[row * T + t]);
                assert_int_equal(targets[t], t + 1 < T ? ids[row * T + t + 1] : -1);
            }
        }
        hr_token_rows_close(&rows);
        free(targets);
        free(got);
        free(unused);
        free(ids);
    }
}

/* The check, and reading row `row`, refuse the file with this message. */
static void assert_check_refused(const char *path, int64_t row, const char *sentence)
{
    hr_error err;
    hr_token_rows rows = open_rows(path);
    hr_token_rows_facts facts = { -7 };
    int32_t ids[64], targets[64];
    int64_t count = -7;
    assert_int_equal(hr_token_rows_check(&rows, NULL, &facts, &err), HR_CORRUPT);
    if (!strstr(err.message, sentence)) fail_msg("%s", err.message);
    assert_int_equal(facts.targets, -7);
    if (row >= 0) {
        assert_int_equal(hr_token_rows_read(&rows, row, ids, targets, &count, &err), HR_CORRUPT);
        if (!strstr(err.message, sentence)) fail_msg("%s", err.message);
        assert_int_equal(count, -7);
        assert_int_equal(hr_token_rows_read(&rows, 1 - row, ids, targets, &count, &err), HR_OK);
    }
    hr_token_rows_close(&rows);
}

static void numbers_outside_the_vocabulary_are_named_with_their_position(void **state)
{
    enum { T = 5, COUNT = 2 * T };
    static const struct {
        int64_t value;
        bool label;
        int32_t at;
        const char *sentence;
    } cases[] = {
        { V, false, 7, ": input_ids[1, 2] is 70000; the model has ids 0 to 69999" },
        { -1, false, 0, ": input_ids[0, 0] is -1; the model has ids 0 to 69999" },
        { -100, false, 9, ": input_ids[1, 4] is -100; the model has ids 0 to 69999" },
        { (INT64_C(1) << 32) + 5, false, 1, ": input_ids[0, 1] is 4294967301; the model" },
        { INT64_MIN, false, 1, ": input_ids[0, 1] is -9223372036854775808; the model" },
        { V, true, 6,
          ": labels[1, 1] is 70000; the model has ids 0 to 69999, and -100 is ignored" },
        { -1, true, 3, ": labels[0, 3] is -1; the model has ids 0 to 69999, and -100 is ignored" },
        { -101, true, 3, ": labels[0, 3] is -101; the model" },
        { (INT64_C(1) << 32) - 100, true, 4, ": labels[0, 4] is 4294967196; the model" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ids[COUNT], labels[COUNT];
        draw(COUNT, ids, labels);
        (cases[i].label ? labels : ids)[cases[i].at] = cases[i].value;
        const char *path = put("wrong", 2, T, ids, labels, true, true);
        assert_check_refused(path, cases[i].at / T, cases[i].sentence);
    }
}

/* Some programs shift labels inside the model; their label files repeat the ids. */
static void unshifted_labels_are_detected(void **state)
{
    enum { ROWS = 2, T = 6, COUNT = ROWS * T };
    int64_t ids[COUNT], labels[COUNT];
    hr_error err;
    hr_token_rows_facts facts;
    (void)state;
    for (int64_t i = 0; i < COUNT; i++) ids[i] = labels[i] = 3 + i % 4;
    labels[0] = labels[7] = HR_LABEL_IGNORED;
    assert_check_refused(
        put("same", ROWS, T, ids, labels, true, true), -1,
        ": labels equal input_ids; each label must be the next token: shift them by "
        "one");
    labels[4] = ids[5]; /* one label that differs from its id suffices */
    hr_token_rows rows = open_rows(put("moved", ROWS, T, ids, labels, true, true));
    assert_int_equal(hr_token_rows_check(&rows, NULL, &facts, &err), HR_OK);
    assert_int_equal(facts.targets, COUNT - 2);
    hr_token_rows_close(&rows);
    /* labels equal both the ids and the next ids */
    for (int64_t i = 0; i < COUNT; i++) ids[i] = labels[i] = 9;
    rows = open_rows(put("one word", ROWS, T, ids, labels, true, true));
    assert_int_equal(hr_token_rows_check(&rows, NULL, &facts, &err), HR_OK);
    hr_token_rows_close(&rows);
    for (int64_t i = 0; i < COUNT; i++) labels[i] = HR_LABEL_IGNORED;
    assert_check_refused(put("none", ROWS, T, ids, labels, true, true), -1,
                         ": all 12 labels are -100: there is nothing to learn");
}

static void an_interrupt_ends_the_check(void **state)
{
    int64_t ids[4] = { 1, 2, 3, 4 }, labels[4] = { 2, 3, 4, 5 };
    hr_token_rows_facts facts;
    hr_error err;
    volatile sig_atomic_t interrupts = 0;
    (void)state;
    hr_token_rows rows = open_rows(put("rows", 2, 2, ids, labels, true, true));
    assert_int_equal(hr_token_rows_check(&rows, &interrupts, &facts, &err), HR_OK);
    interrupts = 1;
    assert_int_equal(hr_token_rows_check(&rows, &interrupts, &facts, &err), HR_INTERRUPTED);
    hr_token_rows_close(&rows);
}

static int open_files(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}

static void open_refuses(const char *path, hr_status status, const char *sentence)
{
    hr_error err;
    hr_token_rows rows = { .file = -1, .vocabulary = V };
    const int before = open_files();
    const hr_status got = hr_token_rows_open(&rows, path, &err);
    if (got != status || !strstr(err.message, sentence)) fail_msg("%d: %s", got, err.message);
    assert_int_equal(rows.file, -1);
    assert_int_equal(rows.rows, 0);
    assert_int_equal(open_files(), before);
}

static const char *put_two(const char *name, const char *dtype, const char *shape,
                           const char *second, const char *second_shape, int64_t bytes)
{
    static const int64_t values[64];
    const char *path = hr_folder_path(&folder, name);
    stored_file file = stored_begin();
    stored_add(&file, "input_ids", dtype, shape, values, bytes);
    stored_add(&file, second, dtype, second_shape, values, bytes);
    stored_end(&file, path);
    return path;
}

static void files_of_another_format_are_refused(void **state)
{
    (void)state;
    open_refuses(hr_folder_path(&folder, "nothing"), HR_USAGE, "nothing: no such file");
    open_refuses(folder.path, HR_USAGE, ": is a directory, a file is needed");
    open_refuses(put_two("a", "I64", "[2,3]", "label", "[2,3]", 48), HR_CORRUPT,
                 "a: has no tensor labels");
    open_refuses(put_two("b", "F32", "[2,3]", "labels", "[2,3]", 24), HR_CORRUPT,
                 "b: input_ids has dtype F32; it must be I64 or I32");
    open_refuses(put_two("c", "U16", "[2,3]", "labels", "[2,3]", 12), HR_CORRUPT,
                 "c: input_ids has dtype U16; it must be I64 or I32");
    open_refuses(put_two("d", "I64", "[6]", "labels", "[6]", 48), HR_CORRUPT,
                 "d: input_ids has shape [6]; it must be [rows, tokens], at least one row");
    open_refuses(put_two("e", "I64", "[0,6]", "labels", "[0,6]", 0), HR_CORRUPT,
                 "e: input_ids has shape [0, 6]; it must be [rows, tokens], at least one row");
    open_refuses(put_two("f", "I64", "[2,3]", "labels", "[3,2]", 48), HR_CORRUPT,
                 "f: labels has shape [3, 2], input_ids has [2, 3]");
    open_refuses(put_two("g", "I64", "[2,3]", "labels", "[2,3,1]", 48), HR_CORRUPT,
                 "g: labels has shape [2, 3, 1]; it must be [rows, tokens]");
    const char *path = hr_folder_path(&folder, "text");
    hr_folder_write(path, "no tensors at all", 17);
    open_refuses(path, HR_CORRUPT, "text");
}

/* A header too large for the stack: it has two hundred other tensors. */
static void a_header_too_large_is_refused_and_one_of_a_hundred_tensors_is_not(void **state)
{
    static const int64_t values[6] = { 1, 2, 3, 4, 5, 6 };
    (void)state;
    for (int32_t many = 0; many < 2; many++) {
        const char *path = hr_folder_path(&folder, "many");
        stored_file file = stored_begin();
        for (int32_t i = 0; i < (many ? 200 : 100); i++) {
            char name[64];
            snprintf(name, sizeof name, "model.layers.%d.weight", i);
            stored_add(&file, name, "F32", "[1]", values, 4);
        }
        stored_add(&file, "input_ids", "I64", "[2,3]", values, 48);
        stored_add(&file, "labels", "I64", "[2,3]", values, 48);
        stored_end(&file, path);
        if (many)
            open_refuses(
                path, HR_CORRUPT,
                "many: its header has more than 12288 bytes; keep only input_ids and labels");
        else {
            hr_token_rows rows = open_rows(path);
            hr_token_rows_close(&rows);
        }
    }
}

static void a_file_that_becomes_shorter_is_detected(void **state)
{
    int64_t ids[4] = { 1, 2, 3, 4 }, labels[4] = { 2, 3, 4, 5 };
    int32_t got[2];
    int64_t count;
    hr_error err;
    (void)state;
    const char *path = put("rows", 2, 2, ids, labels, true, true);
    hr_token_rows rows = open_rows(path);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(hr_token_rows_read(&rows, 1, got, NULL, &count, &err), HR_CORRUPT);
    hr_token_rows_close(&rows);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(rows_read_back_as_they_were_written),
        TEST(without_labels_the_target_is_the_next_token_of_the_row),
        TEST(numbers_outside_the_vocabulary_are_named_with_their_position),
        TEST(unshifted_labels_are_detected),
        TEST(an_interrupt_ends_the_check),
        TEST(files_of_another_format_are_refused),
        TEST(a_header_too_large_is_refused_and_one_of_a_hundred_tensors_is_not),
        TEST(a_file_that_becomes_shorter_is_detected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
