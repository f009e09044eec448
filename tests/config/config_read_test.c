/* SPDX-License-Identifier: Apache-2.0 */
/* config_read_test.c - recipe files: valid ones, and invalid ones with the text of each error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "config/config.h"
#include "support/folder.h"

static hr_folder folder;
static char recipe_path[512];

static int make_folder(void **state)
{
    (void)state;
    folder = hr_folder_open();
    strcpy(recipe_path, hr_folder_path(&folder, "recipe.yaml"));
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    hr_folder_close(&folder);
    return 0;
}

static hr_status read_text(hr_config *config, const char *text, hr_error *err)
{
    hr_folder_write(recipe_path, text, (int64_t)strlen(text));
    return hr_config_read(config, recipe_path, err);
}

static void a_recipe_nests_or_dots_its_keys(void **state)
{
    (void)state;
    hr_config config;
    hr_error err;
    hr_config_default(&config);
    const char *text = "# a recipe\n"
                       "model:\n"
                       "  family: needle\n"
                       "  attention: { pattern: mixed, window: 3 }\n"
                       "data:\n"
                       "train:\n"
                       "  optimizer.lr: 3e-4\n"
                       "  batch: \"32\"\n"
                       "  out: \"\"\n"
                       "memory.budget: 700MiB\n";
    if (read_text(&config, text, &err) != HR_OK) fail_msg("%s", err.message);
    assert_int_equal(config.model.family, HR_FAMILY_NEEDLE);
    assert_int_equal(config.model.attention.pattern, 3);
    assert_int_equal(config.model.attention.window, 3);
    assert_true(config.train.optimizer.lr == 3e-4);
    assert_int_equal(config.train.batch, 32);
    assert_int_equal(config.memory.budget, INT64_C(700) << 20);
    assert_int_equal(config.train.seq_len, 128);
}

/* `message` follows "path:". */
static void assert_refused(const char *text, int64_t bytes, const char *message)
{
    hr_config config, before;
    hr_error err;
    char expected[HR_ERROR_BYTES];
    hr_config_default(&config);
    before = config;
    hr_folder_write(recipe_path, text, bytes);
    assert_int_equal(hr_config_read(&config, recipe_path, &err), HR_USAGE);
    snprintf(expected, sizeof expected, "%s:%s", recipe_path, message);
    assert_string_equal(err.message, expected);
    assert_memory_equal(&config, &before, sizeof config);
}

typedef struct {
    const char *wrong, *right; /* a recipe, and its error or an equal recipe */
} pair;

static void a_list_of_patterns_equals_the_joined_text(void **state)
{
    (void)state;
    static const pair cases[] = {
        { "train:\n  freeze:\n    - \"*embed*\"\n    - '*.layers.[0-3].*'\n  groups:\n"
          "    - \"*.bias *norm* decay=0\"\n    - embed_out.* lr=0.1\n",
          "train:\n  freeze: \"*embed* *.layers.[0-3].*\"\n"
          "  groups: \"*.bias *norm* decay=0; embed_out.* lr=0.1\"\n" },
        { "train: { freeze: [a?, b?], groups: [c? lr=2], batch: 3 }\n",
          "train: { freeze: a? b?, groups: c? lr=2, batch: 3 }\n" },
        { "train.freeze: []\ntrain.param_groups: []\n",
          "train.freeze: \"\"\ntrain.param_groups: \"\"\n" },
        { "train:\n  stages:\n    - {seq_len: 8, freeze: \"a* b*\"}\n    - at_step: 3\n"
          "      data: x.txt weight=1; y.txt weight=2\n    - at_step=9 clip=none\n",
          "train.stages: 'seq_len=8 freeze=\"a* b*\"; at_step=3 data=\"x.txt weight=1; y.txt "
          "weight=2\"; at_step=9 clip=none'\n" },
        { "train:\n  stages: {seq_len: 8..64 over 9 steps by doubling}\n  batch: 3\n",
          "train.stages: seq_len=8..64 over 9 steps by doubling\ntrain.batch: 3\n" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_config list, text;
        hr_error err;
        hr_config_default(&list);
        hr_config_default(&text);
        if (read_text(&list, cases[i].wrong, &err) != HR_OK) fail_msg("%s", err.message);
        assert_int_equal(read_text(&text, cases[i].right, &err), HR_OK);
        assert_memory_equal(&list, &text, sizeof list);
    }
}

/* Entries of 9 letters separated by a blank: 102 of them are 1,019 bytes. */
static void a_list_may_be_as_long_as_its_text(void **state)
{
    (void)state;
    char text[4096] = "train.freeze:\n";
    char *end = text + strlen(text);
    for (int32_t i = 0; i < 102; i++) end += sprintf(end, "- abcdefghi\n");
    hr_config config;
    hr_config_default(&config);
    assert_int_equal(read_text(&config, text, NULL), HR_OK);
    assert_int_equal(strlen(config.train.freeze), 1019);
    static const char *const last[] = { "- abc\n", "- abcd\n", "- abcde\n", "- abc\n- d\n" };
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        strcpy(end, last[i]);
        if (i == 0) assert_int_equal(read_text(&config, text, NULL), HR_OK);
        else
            assert_refused(text, (int64_t)strlen(text),
                           "1: train.freeze takes a string of at most 1023 bytes without control "
                           "characters; got \"abcdefghi abcdefghi abcdefghi abcdefghi ...\"");
    }
}

static void an_empty_recipe_is_the_defaults(void **state)
{
    (void)state;
    static const char *const texts[] = { "", "# nothing\n", "---\n", "{}\n" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hr_config config, before;
        hr_config_default(&config);
        before = config;
        assert_int_equal(read_text(&config, texts[i], NULL), HR_OK);
        assert_memory_equal(&config, &before, sizeof config);
    }
}

static void a_bad_recipe_is_refused_with_file_and_line(void **state)
{
    (void)state;
    static const pair cases[] = {
        { "train:\n  batch: 8\n  bacth: 4\n",
          "3: \"train.bacth\" is not a key; the nearest is train.batch (headroom keys lists all)" },
        { "training:\n  batch_size: 32\n",
          "1: \"training\" is not a key: the sections are model, data, train and memory (headroom "
          "keys lists all)" },
        { "lora:\n  r: 16\n",
          "1: \"lora\" is not a key; use train.adapter.kind (headroom keys lists all)" },
        { "bf16: true\n",
          "1: \"bf16\" is not a key; use train.dtype=bf16 (headroom keys lists all)" },
        { "train:\n  betas: [0.9, 0.95]\n",
          "2: \"train.betas\" is not a key; use train.optimizer.beta1: the second is "
          "train.optimizer.beta2 (headroom keys lists all)" },
        { "modle:\n  d_model: 4\n",
          "1: \"modle\" is not a section; the nearest is model (headroom keys "
          "lists all)" },
        { "train:\n  optimiser: {lr: 1}\n",
          "2: \"train.optimiser\" is not a section; the nearest is train.optimizer (headroom "
          "keys lists all)" },
        { "train:\n  batch: many\n",
          "2: train.batch takes an integer from 1 to 16,777,216 sequences; got \"many\"" },
        { "train:\n  batch: 4\n  seq_len: 8\n  batch: 5\n",
          "4: train.batch is given twice, first in line 2; remove one" },
        { "train.batch: 4\ntrain:\n  batch: 5\n",
          "3: train.batch is given twice, first in line 1; remove one" },
        { "train:\n  batch: 4\ntrain:\n  seq_len: 5\n",
          "3: train is given twice, first in line 1; remove one" },
        { "train:\n  batch: [4, 5]\n", "2: train.batch takes a single value, not a list" },
        { "- train\n", "1: lists are not supported here; a recipe maps keys to single values" },
        { "train:\n  batch: &b 4\n",
          "2: anchors (&name) are not supported; a recipe maps keys to single values" },
        { "train: &t\n  batch: 4\n",
          "1: anchors (&name) are not supported; a recipe maps keys to single values" },
        { "train:\n  batch: *b\n",
          "2: aliases (*name) are not supported; a recipe maps keys to single values" },
        { "train:\n  batch: !!int 4\n",
          "2: tags (!name) are not supported; a recipe maps keys to single values" },
        { "train: !t {batch: 4}\n",
          "1: tags (!name) are not supported; a recipe maps keys to single values" },
        { "train:\n  freeze: [a*, [b*]]\n", "2: a list in a list of single values" },
        { "train:\n  freeze:\n    - a: b\n", "3: a mapping in a list of single values" },
        { "train:\n  stages:\n    - {seq_len: 8, attention: {window: 3}}\n",
          "3: a mapping in a mapping of a list" },
        { "train:\n  stages:\n    - {seq_len: [8]}\n",
          "3: a list in a mapping of a list: give one text, with blanks" },
        { "train:\n  stages:\n    - {seq_len: }\n",
          "3: an empty key or value in a list: remove it" },
        { "train:\n  stages:\n    - {seq_len: 8}\n    - {}\n",
          "4: an empty mapping in a list: remove it" },
        { "train:\n  stages:\n    - {\"seq len\": 8}\n",
          "3: a key in a list that is not one word" },
        { "train:\n  stages:\n    - {freeze: 'a\"b'}\n",
          "3: a value in a list with a quotation mark" },
        { "train:\n  groups:\n    - a* lr=1\n    -\n", "4: an empty entry in a list: remove it" },
        { "train:\n  freeze:\n    - \" \"\n", "3: an empty entry in a list: remove it" },
        { "train.freeze: [~]\n", "1: an empty entry in a list: remove it" },
        { "train.freeze: [a*]\ntrain:\n  freeze:\n    - b*\n    - c*\n",
          "3: train.freeze is given twice, first in line 1; remove one" },
        { "train.freeze: &f [a*]\n",
          "1: anchors (&name) are not supported; a recipe maps keys to single values" },
        { "train.freeze: !!seq [a*]\n",
          "1: tags (!name) are not supported; a recipe maps keys to single values" },
        { "train.freeze: [&f a*]\n",
          "1: anchors (&name) are not supported; a recipe maps keys to single values" },
        { "train.freeze:\n  - *a\n",
          "2: aliases (*name) are not supported; a recipe maps keys to single values" },
        { "? [train.freeze]\n: 1\n",
          "1: lists are not supported here; a recipe maps keys to single values" },
        { "train: [freeze]\n", "1: train is a section and takes a mapping of keys, not a list" },
        { "train:\n  bacth: [4]\n",
          "2: \"train.bacth\" is not a key; the nearest is train.batch (headroom keys lists all)" },
        { "data:\n  train: [a.txt, b.txt]\n", "2: data.train takes a single value, not a list" },
        { "train: {}\n---\nmodel: {}\n",
          "2: a second document (---) is not supported; a recipe maps keys to single "
          "values" },
        { "hello\n", "1: a single value where mappings were expected; a recipe maps keys to "
                     "single values" },
        { "? {a: b}\n: 1\n",
          "1: a mapping as a key is not supported; a recipe maps keys to single values" },
        { "train:\n  batch: {size: 4}\n", "2: train.batch takes a single value, not a mapping" },
        { "train: 4\n", "1: train is a section and takes a mapping of keys, not a value" },
        { "train:\n  batch:\n", "2: train.batch has no value: remove the line to use the default" },
        { "train:\n  batch:\n  seq_len: 8\n",
          "2: train.batch has no value: remove the line to use the default" },
        { "train:\n  batch:\n\n    size: 8\n",
          "2: train.batch takes a single value, not a mapping" },
        { "train:\n  batch:\n    many\n",
          "3: train.batch takes an integer from 1 to 16,777,216 sequences; got \"many\"" },
        { "train:\n  schedule:\n    warmup_steps: 0.03\n",
          "3: train.schedule.warmup_steps takes an integer from 0 to 1,099,511,627,776 steps; got "
          "\"0.03\", a share: multiply it by train.steps" },
        { "data:\n  train: null\n",
          "2: data.train has no value: remove the line to use the default" },
        { "data:\n  train: \"a\\0b\"\n",
          "2: a zero byte in a string; a recipe maps keys to single values" },
        { "train:\n  batch: 4\n bad: 1\n", "3: not YAML: did not find expected key" },
        { "train: {batch: 4\n", "2: not YAML: did not find expected ',' or '}'" },
        { "train:\n\tbatch: 4\n", "2: not YAML: found character that cannot start any token" },
        { "{{{{{{", "1: a mapping as a key is not supported; a recipe maps keys to single values" },
        { "train: \xff\n", " byte 7: not YAML: invalid leading UTF-8 octet" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(cases[i].wrong, (int64_t)strlen(cases[i].wrong), cases[i].right);
}

static void deep_nesting_is_refused_where_it_begins(void **state)
{
    (void)state;
    enum { DEEP = 200000 };
    char *text = malloc(DEEP);
    assert_non_null(text);
    memset(text, '[', DEEP);
    assert_refused(text, DEEP,
                   "1: lists are not supported here; a recipe maps keys to single values");
    for (int32_t i = 0; i + 4 <= DEEP; i += 4) memcpy(text + i, "{a: ", 4);
    assert_refused(text, DEEP / 4 * 4, "1: \"a\" is not a section (headroom keys lists all)");
    free(text);
}

static void a_key_of_any_length_is_refused_as_unknown(void **state)
{
    (void)state;
    char text[900];
    memset(text, 'k', sizeof text);
    memcpy(text + 800, ": 4\n", 5);
    assert_refused(text, 804,
                   "1: \"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk...\" is not a key "
                   "(headroom keys lists all)");
}

static void a_recipe_may_have_at_most_1_MiB(void **state)
{
    (void)state;
    enum { LIMIT = 1048576 };
    char *text = malloc(LIMIT + 1);
    assert_non_null(text);
    memset(text, '#', LIMIT + 1);
    hr_config config;
    hr_error err;
    char expected[HR_ERROR_BYTES];
    hr_config_default(&config);
    hr_folder_write(recipe_path, text, LIMIT);
    assert_int_equal(hr_config_read(&config, recipe_path, &err), HR_OK);
    hr_folder_write(recipe_path, text, LIMIT + 1);
    assert_int_equal(hr_config_read(&config, recipe_path, &err), HR_USAGE);
    snprintf(expected, sizeof expected, "%s has more than 1048576 bytes, the limit of a recipe",
             recipe_path);
    assert_string_equal(err.message, expected);
    free(text);
}

static void a_missing_recipe_and_a_directory_are_refused_by_name(void **state)
{
    (void)state;
    hr_config config;
    hr_error err;
    char expected[HR_ERROR_BYTES];
    hr_config_default(&config);
    assert_int_equal(hr_config_read(&config, "no/such/recipe.yaml", &err), HR_USAGE);
    assert_string_equal(err.message, "recipe no/such/recipe.yaml: no such file");
    assert_int_equal(hr_config_read(&config, folder.path, &err), HR_USAGE);
    snprintf(expected, sizeof expected, "recipe %s: is a directory, a file is needed", folder.path);
    assert_string_equal(err.message, expected);
}

static void random_bytes_never_break_the_reader(void **state)
{
    (void)state;
    const uint64_t seed = 7;
    print_message("seed %llu\n", (unsigned long long)seed);
    static const char letters[] = "train:batch {}[]\n\n  \"'#&*!|>-?%@,\\0123.\t\xc3\xa9";
    int32_t refused = 0;
    for (int32_t round = 0; round < 2000 * HR_COUNT; round++) {
        char text[120];
        const uint64_t base = hr_random_mix(seed + (uint64_t)round);
        const int64_t bytes = (int64_t)(base % sizeof text);
        for (int64_t i = 0; i < bytes; i++)
            text[i] = letters[hr_random_mix(base + (uint64_t)i) % (sizeof letters - 1)];
        hr_config config;
        hr_error err;
        hr_config_default(&config);
        hr_folder_write(recipe_path, text, bytes);
        const hr_status status = hr_config_read(&config, recipe_path, &err);
        assert_true(status == HR_OK || status == HR_USAGE);
        if (status != HR_OK) assert_null(strchr(err.message, '\n'));
        refused += status != HR_OK;
    }
    assert_in_range(refused, 1, 2000 * HR_COUNT - 1); /* an empty file is a recipe */
}

static void every_preset_reads_and_passes_the_check(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int64_t vocab_size;
    } presets[] = { { HR_SOURCE "/presets/needle-70m.yaml", 10000 },
                    { HR_SOURCE "/presets/pythia-70m.yaml", 50304 },
                    { HR_SOURCE "/presets/quickstart.yaml", 256 } };
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        hr_config config;
        hr_error err;
        hr_config_default(&config);
        if (hr_config_read(&config, presets[i].path, &err) != HR_OK) fail_msg("%s", err.message);
        if (hr_config_check(&config, &err) != HR_OK) fail_msg("%s", err.message);
        assert_int_equal(config.model.vocab_size, presets[i].vocab_size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recipe_nests_or_dots_its_keys),
        cmocka_unit_test(a_list_of_patterns_equals_the_joined_text),
        cmocka_unit_test(a_list_may_be_as_long_as_its_text),
        cmocka_unit_test(an_empty_recipe_is_the_defaults),
        cmocka_unit_test(a_bad_recipe_is_refused_with_file_and_line),
        cmocka_unit_test(deep_nesting_is_refused_where_it_begins),
        cmocka_unit_test(a_key_of_any_length_is_refused_as_unknown),
        cmocka_unit_test(a_recipe_may_have_at_most_1_MiB),
        cmocka_unit_test(a_missing_recipe_and_a_directory_are_refused_by_name),
        cmocka_unit_test(random_bytes_never_break_the_reader),
        cmocka_unit_test(every_preset_reads_and_passes_the_check),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
