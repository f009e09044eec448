/* SPDX-License-Identifier: Apache-2.0 */
/* spec_test.c - parsing of data.train, and weights as integer shares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "corpus/kind.h"
#include "corpus/spec.h"

static void assert_part(const hr_spec *spec, int32_t index, const char *path, double weight,
                        int32_t ids_bytes)
{
    const hr_spec_part *part = &spec->parts[index];
    assert_int_equal(part->path_bytes, strlen(path));
    assert_memory_equal(part->path, path, strlen(path));
    assert_true(part->weight == weight);
    assert_int_equal(part->ids_bytes, ids_bytes);
}

static void parts_have_paths_with_blanks_and_options(void **state)
{
    (void)state;
    hr_spec spec;
    hr_error err;
    assert_int_equal(hr_spec_read(&spec, "data.train", "", &err), HR_OK);
    assert_int_equal(spec.count, 0);
    assert_int_equal(hr_spec_read(&spec, "data.train", "my text.txt", &err), HR_OK);
    assert_int_equal(spec.count, 1);
    assert_part(&spec, 0, "my text.txt", 0, 0);
    assert_int_equal(
        hr_spec_read(&spec, "data.train",
                     " a b/ weight=0.7 ; c-*.jsonl.gz   weight=3e-1;d.bin ids=u16 weight=1; ",
                     &err),
        HR_OK);
    assert_int_equal(spec.count, 3);
    assert_true(spec.weighted);
    assert_part(&spec, 0, "a b/", 0.7, 0);
    assert_part(&spec, 1, "c-*.jsonl.gz", 0.3, 0);
    assert_part(&spec, 2, "d.bin", 1, 2);
    assert_true(hr_spec_is_folder(&spec.parts[0]));
    assert_true(hr_spec_is_pattern(&spec.parts[1]));
    assert_false(hr_spec_is_pattern(&spec.parts[2]) || hr_spec_is_folder(&spec.parts[2]));
    /* A path may contain an option's text; an option without a path is a path. */
    assert_int_equal(hr_spec_read(&spec, "data.train", "weight=2", &err), HR_OK);
    assert_part(&spec, 0, "weight=2", 0, 0);
    assert_int_equal(hr_spec_read(&spec, "data.valid", "0.5%", &err), HR_OK);
    assert_int_equal(spec.count, 0);
    assert_true(spec.share == 0.005);
    assert_int_equal(hr_spec_read(&spec, "data.valid", "5%.txt", &err), HR_OK);
    assert_part(&spec, 0, "5%.txt", 0, 0);
}

static void assert_refused(const char *text, const char *sentence)
{
    hr_spec spec = { .count = -7 };
    hr_error err = { HR_OK, "" };
    assert_int_equal(hr_spec_read(&spec, "data.train", text, &err), HR_USAGE);
    if (!strstr(err.message, sentence)) fail_msg("\"%s\" lacks \"%s\"", err.message, sentence);
    assert_int_equal(spec.count, -7);
}

static void an_invalid_spec_is_refused(void **state)
{
    (void)state;
    static const char *const weights[] = { "0", "-1", "nan", "inf", "", "1e10", "x", "1x" };
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        char text[64];
        snprintf(text, sizeof text, "a.txt weight=%s; b.txt weight=1", weights[i]);
        assert_refused(text, "a weight is a number above 0 and at most 1e9");
    }
    assert_refused("a weight=1; b", "1 of 2 parts have a weight, b has none");
    assert_refused("a.bin ids=u8", "ids takes u16 or u32");
    assert_refused("a.bin ids=u16 ids=u16", "ids is given twice; remove one");
    assert_refused("a weight=1 weight=2; b weight=1", "weight is given twice; remove one");
    assert_refused("synthetic seed=1 seed=2", "seed is given twice; remove one");
    assert_refused("synthetic tokens=5 seed=1 tokens=5", "tokens is given twice; remove one");
    assert_refused("a;;b", "a part between semicolons is empty");
    assert_refused(";a", "a part between semicolons is empty");
    assert_refused("a;b;c;d;e;f;g;h;i;j;k;l;m;n;o;p;q", "has more than 16 parts");
    assert_refused("0%", "a percentage lies between 0% and 100%");
    assert_refused("100%", "a percentage lies between");
    assert_refused("-3%", "a percentage lies between");
}

static void assert_shares(const char *text, int64_t block, const int64_t *shares)
{
    hr_spec spec;
    hr_error err = { HR_OK, "" };
    int64_t found[HR_SPEC_PARTS_MAX], rows = 0;
    assert_int_equal(hr_spec_read(&spec, "data.train", text, &err), HR_OK);
    if (hr_spec_shares(&spec, found, &rows, &err) != HR_OK) fail_msg("%s", err.message);
    assert_int_equal(rows, block);
    int64_t sum = 0;
    for (int32_t i = 0; i < spec.count; i++) {
        assert_int_equal(found[i], shares[i]);
        sum += found[i];
    }
    assert_int_equal(sum, block);
}

static void weights_become_shares_of_the_smallest_exact_block(void **state)
{
    (void)state;
    assert_shares("a weight=0.7; b weight=0.3", 10, (int64_t[]){ 7, 3 });
    assert_shares("a weight=7; b weight=3", 10, (int64_t[]){ 7, 3 });
    assert_shares("a weight=5; b weight=5", 2, (int64_t[]){ 1, 1 });
    assert_shares("a weight=1; b weight=1; c weight=1", 3, (int64_t[]){ 1, 1, 1 });
    assert_shares("a weight=0.005; b weight=0.995", 200, (int64_t[]){ 1, 199 });
    assert_shares("a weight=0.1; b weight=0.2; c weight=0.3; d weight=0.4", 10,
                  (int64_t[]){ 1, 2, 3, 4 });
    /* No block of up to 65536 rows represents the square root of two exactly: the nearest shares
     * are used. */
    assert_shares("a weight=1.4142135623730951; b weight=1", 65536, (int64_t[]){ 38390, 27146 });
    hr_spec spec;
    hr_error err;
    int64_t shares[HR_SPEC_PARTS_MAX], block;
    assert_int_equal(hr_spec_read(&spec, "data.train", "a weight=1e9; b weight=1", &err), HR_OK);
    assert_int_equal(hr_spec_shares(&spec, shares, &block, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "weight 1 of b is less than one row of all 65536"));
}

static void a_file_name_determines_its_kind(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        hr_file_kind kind;
        hr_file_packing packing;
        bool known;
    } cases[] = {
        { "a.txt", HR_FILE_TEXT, HR_FILE_PLAIN, true },
        { "A.TXT.GZ", HR_FILE_TEXT, HR_FILE_GZIP, true },
        { "x/a.jsonl.zst", HR_FILE_LINES, HR_FILE_ZSTD, true },
        { "a.json.gz", HR_FILE_LINES, HR_FILE_GZIP, true },
        { "a.ndjson", HR_FILE_LINES, HR_FILE_PLAIN, true },
        { "a.bin", HR_FILE_TOKENS, HR_FILE_PLAIN, false },
        { "a.parquet", HR_FILE_TABLE, HR_FILE_PLAIN, false },
        { "README.md", HR_FILE_TEXT, HR_FILE_PLAIN, false },
        { "a.gz", HR_FILE_TEXT, HR_FILE_GZIP, false },
        { ".txt", HR_FILE_TEXT, HR_FILE_PLAIN, false },
        { "txt", HR_FILE_TEXT, HR_FILE_PLAIN, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *name = cases[i].name;
        const hr_file_sort sort = hr_file_sort_of(name, (int64_t)strlen(name));
        assert_int_equal(sort.kind, cases[i].kind);
        assert_int_equal(sort.packing, cases[i].packing);
        assert_int_equal(sort.known, cases[i].known);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_have_paths_with_blanks_and_options),
        cmocka_unit_test(an_invalid_spec_is_refused),
        cmocka_unit_test(weights_become_shares_of_the_smallest_exact_block),
        cmocka_unit_test(a_file_name_determines_its_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
