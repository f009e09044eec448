/* SPDX-License-Identifier: Apache-2.0 */
/* cli_presets_test.c - the presets are found by name from any folder, and say what they are. */
#include "headroom/status.h"
#include "support/program.h"

/* The number in the list is in a comment of the preset; here it is compared with the plan. */
static void every_preset_is_its_file_and_has_the_listed_parameters(void **state)
{
    (void)state;
    enum { TEXT_BYTES = 1 << 14 };
    static char text[TEXT_BYTES];
    size_t i;
    json_t *preset;
    assert_int_equal(run("presets --json"), HR_OK);
    json_t *list = out_json();
    assert_true(json_array_size(list) >= 40);
    json_array_foreach(list, i, preset)
    {
        char path[256];
        const char *name = json_string_value(json_object_get(preset, "name"));
        const json_int_t listed = json_integer_value(json_object_get(preset, "parameters"));
        snprintf(path, sizeof path, HR_SOURCE "/presets/%s.yaml", name);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        text[fread(text, 1, TEXT_BYTES - 1, file)] = 0;
        fclose(file);
        assert_string_equal(json_string_value(json_object_get(preset, "recipe")), text);
        assert_int_equal(run("presets %s --json", name), HR_OK);
        json_t *one = out_json();
        assert_true(json_equal(one, preset));
        json_decref(one);
        assert_int_equal(run("presets %s", name), HR_OK);
        assert_string_equal(out, text);
        assert_int_equal(run("plan %s train.batch=1 train.seq_len=8 memory.micro_batch=1 --budget "
                             "60000GiB --json",
                             name),
                         HR_OK);
        json_t *plan = out_json();
        const json_int_t planned = json_integer_value(json_object_get(plan, "parameters"));
        const bool counted = strncmp(name, "needle-", 7) && strcmp(name, "small/needle") &&
                             strcmp(name, "small/gpt2") && strcmp(name, "small/opt") &&
                             strcmp(name, "small/gpt_neo");
        if (counted && planned != listed)
            fail_msg("%s: %lld parameters listed, %lld planned", name, (long long)listed,
                     (long long)planned);
        json_decref(plan);
    }
    json_decref(list);
}

/* Learned positions count: these models are planned with their own length. */
static void presets_with_learned_positions_have_the_listed_parameters(void **state)
{
    (void)state;
    static const char *const names[] = { "needle-70m",   "needle-70m-50k", "needle-70m-sparse",
                                         "small/needle", "small/gpt2",     "small/opt",
                                         "small/gpt_neo" };
    size_t i;
    json_t *preset;
    assert_int_equal(run("presets --json"), HR_OK);
    json_t *list = out_json();
    int32_t found = 0;
    json_array_foreach(list, i, preset)
    {
        const char *name = json_string_value(json_object_get(preset, "name"));
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            if (strcmp(name, names[k]) != 0) continue;
            assert_int_equal(run("plan %s --json%s", name, SANITIZED_BUDGET), HR_OK);
            json_t *plan = out_json();
            assert_int_equal(json_integer_value(json_object_get(plan, "parameters")),
                             json_integer_value(json_object_get(preset, "parameters")));
            json_decref(plan);
            found++;
        }
    }
    assert_int_equal(found, sizeof names / sizeof *names);
    json_decref(list);
}

static void a_preset_gives_the_plan_of_its_file(void **state)
{
    (void)state;
    static char first[PROGRAM_TEXT_BYTES];
    assert_int_equal(run("plan quickstart train.kernels=avx2 --json%s", SANITIZED_BUDGET), HR_OK);
    memcpy(first, out, sizeof first);
    assert_int_equal(run("plan " HR_SOURCE "/presets/quickstart.yaml train.kernels=avx2 --json%s",
                         SANITIZED_BUDGET),
                     HR_OK);
    assert_string_equal(out, first);
}

/* A preset comes before a file of the same name, which a path names. */
static void a_path_names_a_file_and_not_a_preset(void **state)
{
    (void)state;
    put("quickstart", tiny);
    assert_int_equal(run("plan quickstart --json%s", SANITIZED_BUDGET), HR_OK);
    json_t *preset = out_json();
    assert_int_equal(run("plan ./quickstart --json"), HR_OK);
    json_t *file = out_json();
    assert_int_equal(json_integer_value(json_object_get(preset, "parameters")), 858880);
    assert_true(json_integer_value(json_object_get(file, "parameters")) < 858880);
    json_decref(preset);
    json_decref(file);
}

static void an_unknown_preset_names_the_nearest(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "plan needle-70n",
          "headroom: recipe needle-70n: no such file; the nearest preset is needle-70m (headroom "
          "presets lists all)\n" },
        { "plan some/folder/yxanul-197m.yaml",
          "headroom: recipe some/folder/yxanul-197m.yaml: no such file; the nearest preset is "
          "yxanul-197m (headroom presets lists all)\n" },
        { "plan neurogen",
          "headroom: recipe neurogen: no such file; the nearest presets are neurogen-ultra, "
          "neurogen-balanced, neurogen-original (headroom presets lists all)\n" },
        { "plan mine.yaml", "headroom: recipe mine.yaml: no such file\n" },
        { "plan qqqqqq", "headroom: recipe qqqqqq: no such file\n" },
        { "presets opt-126m", "headroom: \"opt-126m\" is not a preset; the nearest preset is "
                              "opt-125m (headroom presets "
                              "lists all)\n" },
        { "presets qqqqqq", "headroom: \"qqqqqq\" is not a preset (headroom presets lists all)\n" },
        { "plan quickstart train.bacth=4",
          "headroom: \"train.bacth\" is not a key; the nearest is train.batch (headroom keys lists "
          "all)\n" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run("%s", cases[i][0]), HR_USAGE);
        assert_string_equal(err, cases[i][1]);
    }
}

/* Letter case, dashes and points do not count. Methods and data name the preset of their
 * document. */
static void other_spellings_name_the_preset(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "NEEDLE-70M", " is needle-70m" },
        { "small/lama", " is small/llama" },
        { "presets/small/Lama.yaml", " is small/llama" },
        { "npt", " is npt-llama-3.1-8b" },
        { "nsa", " is long-4b-131k" },
        { "Ultra_Conservative.yaml", " is neurogen-ultra" },
        { "wikitext", " is needle-70m" },
        { "gpt-2", " is gpt2-124m" },
        { "qwen3_0.6B", " is qwen3-0.6b" },
        { "llama3", "s are llama-3.1-8b, llama-3.2-1b" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[256];
        assert_int_equal(run("plan %s", cases[i][0]), HR_USAGE);
        snprintf(expected, sizeof expected,
                 "headroom: recipe %s: no such file; the nearest preset%s (headroom presets lists "
                 "all)\n",
                 cases[i][0], cases[i][1]);
        assert_string_equal(err, expected);
    }
}

static void an_audit_takes_a_preset(void **state)
{
    (void)state;
    static char by_file[PROGRAM_TEXT_BYTES];
    put("hf.yaml", "per_device_train_batch_size: 2\nmax_length: 64\nbf16: true\n");
    assert_int_equal(
        run("audit hf.yaml --kind hf --model " HR_SOURCE "/presets/small/llama.yaml --json"),
        HR_OK);
    json_t *file = out_json();
    assert_int_equal(run("audit hf.yaml --kind hf --model small/llama --json"), HR_OK);
    json_t *preset = out_json();
    assert_true(json_equal(json_object_get(file, "estimate"), json_object_get(preset, "estimate")));
    assert_non_null(json_object_get(file, "estimate"));
    json_decref(file);
    json_decref(preset);
    assert_int_equal(
        run("audit " HR_SOURCE "/presets/neurogen-original-fp32.yaml --device gtx-1650"),
        HR_NO_FIT);
    const char *said = strstr(out, " (recipe): ");
    assert_non_null(said);
    snprintf(by_file, sizeof by_file, "%s", said);
    assert_int_equal(run("audit neurogen-original-fp32 --device gtx-1650"), HR_NO_FIT);
    said = strstr(out, " (recipe): ");
    assert_non_null(said);
    assert_string_equal(said, by_file);
    assert_int_equal(run("audit neurogen-balanced --model small/llama"), HR_USAGE);
    assert_string_equal(err, "headroom: --model is for training files, and neurogen-balanced is a "
                             "recipe\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_preset_is_its_file_and_has_the_listed_parameters),
        cmocka_unit_test(presets_with_learned_positions_have_the_listed_parameters),
        cmocka_unit_test(a_preset_gives_the_plan_of_its_file),
        cmocka_unit_test(a_path_names_a_file_and_not_a_preset),
        cmocka_unit_test(an_unknown_preset_names_the_nearest),
        cmocka_unit_test(other_spellings_name_the_preset),
        cmocka_unit_test(an_audit_takes_a_preset),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
