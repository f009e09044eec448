/* SPDX-License-Identifier: Apache-2.0 */
/* cli_convert_test.c - `headroom convert`: byte-identical round trips, rounding on request,
 * protected directories; and a run that starts from a converted directory. */
#include <math.h>

#include "base/bf16.h"
#include "base/random.h"
#include "checkpoint/convert.h"
#include "headroom/status.h"
#include "support/oracle.h"
#include "support/program.h"
#include "support/stored.h"

static void same_tensors(const char *path, const oracle_file *expected, int32_t count)
{
    oracle_file file = { 0 };
    const char *name;
    json_t *value;
    assert_true(oracle_open(&file, path));
    json_object_del(file.header, "__metadata__");
    assert_int_equal(json_object_size(file.header), count);
    json_object_foreach(file.header, name, value)
    {
        int64_t bytes = 0, expected_bytes = 0;
        const json_t *other = json_object_get(expected->header, name);
        assert_true(json_equal(json_object_get(value, "dtype"), json_object_get(other, "dtype")));
        assert_true(json_equal(json_object_get(value, "shape"), json_object_get(other, "shape")));
        const void *data = oracle_tensor(&file, "", name, &bytes);
        const void *wanted = oracle_tensor(expected, "", name, &expected_bytes);
        assert_int_equal(bytes, expected_bytes);
        assert_memory_equal(data, wanted, bytes);
    }
    oracle_close(&file);
}

/* Dtypes of every width, an empty one and a scalar, names that JSON must escape. */
static void put_mixed(void)
{
    uint8_t data[4096];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)hr_random_mix(i);
    for (size_t i = 1; i < sizeof data; i += 2) data[i] &= 0xbf; /* finite in every dtype */
    for (size_t i = 0; i < sizeof data; i += 4) data[i + 3] = 0x3f;
    stored_file file = stored_begin();
    stored_add(&file, "model.a", "BF16", "[3,5]", data, 30);
    stored_add(&file, "model.b", "F32", "[7]", data + 64, 28);
    stored_add(&file, "model.\\\"c\\\\d", "U8", "[3]", data + 128, 3);
    stored_add(&file, "model.e", "I64", "[2]", data + 256, 16);
    stored_add(&file, "model.f", "F16", "[2,2]", data + 512, 8);
    stored_add(&file, "model.none", "F32", "[0,9]", data, 0);
    stored_add(&file, "lm_head.weight", "F64", "[1]", data + 640, 8);
    stored_add(&file, "step", "I32", "[]", data + 700, 4);
    assert_int_equal(system("mkdir mixed"), 0);
    stored_end(&file, "mixed/model.safetensors");
    put("mixed/config.json", "{\"torch_dtype\": \"float32\", \"model_type\": \"llama\"}\n");
    put("mixed/tokenizer.json", "{}\n");
}

static void a_round_trip_is_byte_identical(void **state)
{
    (void)state;
    oracle_file whole = { 0 };
    require_program();
    put_mixed();
    assert_true(oracle_open(&whole, "mixed/model.safetensors"));
    static const char *const sizes[] = { "1B", "30B", "64B", "1MiB" };
    static const int files[] = { 8, 5, 2, 1 };
    for (int32_t i = 0; i < 4; i++) {
        assert_int_equal(run("convert mixed shards%d --shard-bytes %s", (int)i, sizes[i]), HR_OK);
        if (files[i] >= 5) assert_non_null(strstr(out, "8 tensors in "));
        else assert_non_null(strstr(out, files[i] == 2 ? "in 2 files" : "in 1 file,"));
        assert_string_equal(err, "");
        assert_int_equal(run("convert shards%d back%d", (int)i, (int)i), HR_OK);
        char path[64];
        snprintf(path, sizeof path, "back%d/model.safetensors", (int)i);
        same_tensors(path, &whole, 8);
        assert_int_equal(
            system("for f in config tokenizer; do cmp mixed/$f.json back0/$f.json || exit 1; done"),
            0);
    }
    assert_int_equal(run("convert mixed/model.safetensors alone"), HR_OK);
    same_tensors("alone/model.safetensors", &whole, 8);
    assert_int_equal(run("convert mixed bare --prefix none"), HR_OK);
    assert_int_equal(run("convert bare again --prefix model."), HR_OK);
    oracle_file bare = { 0 }, again = { 0 };
    assert_true(oracle_open(&bare, "bare/model.safetensors"));
    assert_true(oracle_open(&again, "again/model.safetensors"));
    assert_non_null(json_object_get(bare.header, "a"));
    assert_non_null(json_object_get(bare.header, "\"c\\d"));
    assert_non_null(json_object_get(bare.header, "lm_head.weight"));
    assert_non_null(json_object_get(again.header, "model.a"));
    assert_non_null(json_object_get(again.header, "model.step"));
    assert_non_null(json_object_get(again.header, "lm_head.weight"));
    oracle_close(&again);
    oracle_close(&bare);
    oracle_close(&whole);
}

static void rounding_needs_an_option(void **state)
{
    (void)state;
    static const float values[] = { 1,        -2.5f,   0,        -0.0f,    1.00390625f, 1.01171875f,
                                    65504.f,  65519.f, 5.96e-8f, 2.98e-8f, 3e-8f,       6.1e-5f,
                                    6.09e-5f, 1e-30f,  0.1f,     -1e4f };
    enum { COUNT = sizeof values / sizeof *values };
    require_program();
    stored_file file = stored_begin();
    stored_add(&file, "a", "F32", "[16]", values, sizeof values);
    stored_add(&file, "ids", "I32", "[1]", values, 4);
    assert_int_equal(system("mkdir wide"), 0);
    stored_end(&file, "wide/model.safetensors");
    put("wide/config.json", "{\"a\":{\"dtype\":\"x\"},\"dtype\":\"float32\",\"b\":1}");
    static const char *const words[] = { "bf16", "f16", "f32" };
    static const char *const configs[] = {
        "{\"a\":{\"dtype\":\"x\"},\"dtype\":\"bfloat16\",\"b\":1}",
        "{\"a\":{\"dtype\":\"x\"},\"dtype\":\"float16\",\"b\":1}",
        "{\"a\":{\"dtype\":\"x\"},\"dtype\":\"float32\",\"b\":1}",
    };
    for (int32_t i = 0; i < 3; i++) {
        static char text[PROGRAM_TEXT_BYTES];
        char path[64];
        int64_t bytes = 0;
        oracle_file narrow = { 0 };
        assert_int_equal(run("convert wide narrow%d --dtype %s", (int)i, words[i]), HR_OK);
        assert_non_null(strstr(out, i < 2 ? "dtype changed in 1" : "dtype changed in 0"));
        snprintf(path, sizeof path, "narrow%d/config.json", (int)i);
        get(path, text);
        assert_string_equal(text, configs[i]);
        snprintf(path, sizeof path, "narrow%d/model.safetensors", (int)i);
        assert_true(oracle_open(&narrow, path));
        const void *data = oracle_tensor(&narrow, "", "a", &bytes);
        assert_int_equal(bytes, i < 2 ? 2 * COUNT : 4 * COUNT);
        for (int32_t k = 0; k < COUNT; k++) {
            if (i == 0) assert_int_equal(((const uint16_t *)data)[k], hr_bf16_from_f32(values[k]));
            if (i == 2) assert_memory_equal((const float *)data + k, &values[k], 4);
            if (i != 1) continue;
            const uint16_t half = ((const uint16_t *)data)[k];
            const int exponent = half >> 10 & 31, fraction = half & 1023;
            const double is = exponent ? ldexp(1024 + fraction, exponent - 25)
                                       : ldexp(fraction, -24);
            int scale;
            frexp(values[k], &scale);
            const double step = ldexp(1, scale - 11 < -24 ? -24 : scale - 11);
            assert_true(is == step * nearbyint(fabs((double)values[k]) / step));
            assert_int_equal(half >> 15, signbit(values[k]) != 0);
        }
        oracle_close(&narrow);
    }
    /* Back: exact values are unchanged. */
    assert_int_equal(run("convert narrow1 back --dtype f32"), HR_OK);
    assert_int_equal(run("convert back narrow --dtype f16"), HR_OK);
    oracle_file one = { 0 };
    assert_true(oracle_open(&one, "narrow1/model.safetensors"));
    same_tensors("narrow/model.safetensors", &one, 2);
    oracle_close(&one);
}

/* Any number of elements; and a config that has the dtype under both of its names. */
static void every_count_of_elements_is_converted(void **state)
{
    (void)state;
    static const float values[] = { 1, -2, 3, 0.5f, -0.25f, 6, 7 };
    static const char *const shapes[] = { "[]", "[1]", "[3]", "[7]", "[0]" };
    static const int64_t counts[] = { 1, 1, 3, 7, 0 };
    oracle_file whole = { 0 }, half = { 0 };
    static char text[PROGRAM_TEXT_BYTES];
    require_program();
    stored_file file = stored_begin();
    for (int32_t i = 0; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%d", (int)i);
        stored_add(&file, name, "F32", shapes[i], values, 4 * counts[i]);
    }
    assert_int_equal(system("mkdir odd"), 0);
    stored_end(&file, "odd/model.safetensors");
    put("odd/config.json", "{\"torch_dtype\":\"float32\",\"dtype\":\"float32\",\"b\":1}");
    assert_int_equal(run("convert odd bf16 --dtype bf16"), HR_OK);
    get("bf16/config.json", text);
    assert_string_equal(text, "{\"torch_dtype\":\"bfloat16\",\"dtype\":\"bfloat16\",\"b\":1}");
    assert_true(oracle_open(&half, "bf16/model.safetensors"));
    for (int32_t i = 0; i < 5; i++) {
        char name[8];
        int64_t bytes = 0;
        snprintf(name, sizeof name, "t%d", (int)i);
        const uint16_t *data = oracle_tensor(&half, "", name, &bytes);
        assert_int_equal(bytes, 2 * counts[i]);
        for (int64_t k = 0; k < counts[i]; k++)
            assert_int_equal(data[k], hr_bf16_from_f32(values[k]));
    }
    oracle_close(&half);
    assert_int_equal(run("convert bf16 f16 --dtype f16 --shard-bytes 4B"), HR_OK);
    assert_int_equal(run("convert f16 f32 --dtype f32"), HR_OK);
    assert_true(oracle_open(&whole, "odd/model.safetensors"));
    same_tensors("f32/model.safetensors", &whole, 5);
    oracle_close(&whole);
}

static void invalid_conversions_are_refused(void **state)
{
    (void)state;
    static const struct {
        float value;
        const char *dtype;
        int code;
    } values[] = { { 65520, "f16", HR_CORRUPT }, { -65520, "f16", HR_CORRUPT },
                   { 3.39e38f, "bf16", HR_OK },  { 3.4028234e38f, "bf16", HR_CORRUPT },
                   { NAN, "bf16", HR_CORRUPT },  { INFINITY, "f16", HR_CORRUPT },
                   { NAN, "f32", HR_OK } };
    require_program();
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        stored_file file = stored_begin();
        stored_add(&file, "large", "F32", "[1]", &values[i].value, 4);
        stored_end(&file, "one.safetensors");
        const int code = run("convert one.safetensors to%d --dtype %s", (int)i, values[i].dtype);
        assert_int_equal(code, values[i].code);
        if (code != HR_OK)
            assert_non_null(strstr(
                err,
                "one.safetensors: tensor large has values that are NaN, Inf or too large for "));
    }
    assert_int_equal(run("convert one.safetensors to0"), HR_OK); /* nothing was left there */
    assert_int_equal(run("convert one.safetensors to0"), HR_USAGE);
    assert_non_null(strstr(err, "to0: already has model.safetensors; give a folder without"));
    assert_int_equal(run("convert one.safetensors new --dtype f64"), HR_USAGE);
    assert_non_null(strstr(err, "--dtype takes f32, f16, bf16 or f8_e4m3; got \"f64\""));
    assert_int_equal(run("convert one.safetensors new --prefix x."), HR_USAGE);
    assert_non_null(strstr(err, "--prefix takes none, model., transformer. or gpt_neox."));
    assert_int_equal(run("convert one.safetensors new --shard-bytes none"), HR_USAGE);
    assert_int_equal(run("convert one.safetensors new --shard-bytes 0"), HR_USAGE);
    assert_int_equal(run("convert nowhere new"), HR_USAGE);
    assert_said("nowhere: no such file");
    assert_int_equal(run("convert . new"), HR_USAGE);
    assert_int_equal(run("convert one.safetensors"), HR_USAGE);
    put("bad.safetensors", "not a file of tensors at all");
    assert_int_equal(run("convert bad.safetensors new"), HR_CORRUPT);
    stored_file file = stored_begin();
    stored_add(&file, "a", "U8", "[1]", "a", 1);
    stored_add(&file, "model.a", "U8", "[1]", "b", 1);
    stored_end(&file, "two.safetensors");
    assert_int_equal(run("convert two.safetensors new --prefix none"), HR_CORRUPT);
    assert_non_null(strstr(err, "a and model.a would get the same name"));
    put("file", "");
    assert_int_equal(run("convert two.safetensors file"), HR_USAGE);
    assert_int_equal(system("test ! -e new"), 0);
    /* An empty name is not the current directory. */
    assert_int_equal(run("convert mixed.safetensors ''"), HR_USAGE);
    assert_said("the destination path is empty; give a folder");
    assert_int_equal(access("model.safetensors", F_OK), -1);
    assert_int_equal(run("convert '' there"), HR_USAGE);
    assert_said("the source path is empty; give a folder");
}

static void put_folder(const char *folder, float value, const char *config)
{
    char path[64];
    stored_file file = stored_begin();
    stored_add(&file, "a", "F32", "[1]", &value, 4);
    stored_add(&file, "b", "F32", "[1]", &value, 4);
    snprintf(path, sizeof path, "rm -rf %s && mkdir %s", folder, folder);
    assert_int_equal(system(path), 0);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    stored_end(&file, path);
    snprintf(path, sizeof path, "%s/config.json", folder);
    put(path, config);
    snprintf(path, sizeof path, "%s/merges.txt", folder);
    put(path, "#version: 0.2\n");
}

static void a_config_with_invalid_json_is_refused(void **state)
{
    (void)state;
    require_program();
    static const char *const configs[] = {
        "",         "{",    "{\"dtype\":\"float32\"",     "[]",
        "{\"a\":}", "{} x", "{\"dtype\":\"float32\"} {}", "\xff"
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        for (int32_t how = 0; how < 2; how++) {
            put_folder("m", 1, configs[i]);
            assert_int_equal(run("convert m new %s", how ? "--dtype bf16" : ""), HR_CORRUPT);
            assert_non_null(strstr(err, "headroom: m/config.json: not JSON: "));
            assert_int_equal(access("new", F_OK), -1);
        }
    put_folder("m", 1, "{\"torch_dtype\":\"float32\",\"dtype\":7,\"a\":[{}]}");
    assert_int_equal(run("convert m new --dtype bf16"), HR_OK);
    get("new/config.json", out);
    assert_string_equal(out, "{\"torch_dtype\":\"bfloat16\",\"dtype\":7,\"a\":[{}]}");
}

/* Partial output is removed, and existing files stay. */
static void a_conversion_that_fails_leaves_nothing(void **state)
{
    (void)state;
    require_program();
    put_folder("m", INFINITY, "{}");
    assert_int_equal(run("convert m new --dtype bf16"), HR_CORRUPT);
    assert_int_equal(access("new", F_OK), -1);
    assert_int_equal(system("mkdir there && echo mine >there/notes"), 0);
    assert_int_equal(run("convert m there --dtype bf16 --shard-bytes 1"), HR_CORRUPT);
    assert_int_equal(system("test \"$(ls there)\" = notes"), 0);
    static const char *const names[] = { "config.json", "merges.txt" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char said[128], path[64];
        snprintf(path, sizeof path, "there/%s", names[i]);
        put(path, "mine");
        assert_int_equal(run("convert m there"), HR_USAGE);
        snprintf(said, sizeof said, "there: already has %s; give another folder", names[i]);
        assert_said(said);
        get(path, out);
        assert_string_equal(out, "mine");
        assert_int_equal(unlink(path), 0);
    }
    put("there/vocab.json", "mine"); /* the source has none */
    assert_int_equal(run("convert m there"), HR_OK);
}

static void a_conversion_that_is_interrupted_leaves_nothing(void **state)
{
    (void)state;
    require_program();
    put_folder("m", 1, "{}");
    const volatile sig_atomic_t interrupts = 1;
    const hr_convert_request request = {
        .size = sizeof request, .source = "m", .destination = "new", .interrupts = &interrupts
    };
    hr_convert_report report;
    hr_error error;
    assert_int_equal(hr_convert(&request, &report, &error), HR_INTERRUPTED);
    assert_string_equal(error.message, "interrupted; the unfinished files in new were removed");
    assert_int_equal(access("new", F_OK), -1);
}

static void the_library_refuses_files_of_less_than_nothing(void **state)
{
    (void)state;
    require_program();
    put_folder("m", 1, "{}");
    const hr_convert_request request = {
        .size = sizeof request, .source = "m", .destination = "new", .shard_bytes = -1
    };
    hr_convert_report report;
    hr_error error;
    assert_int_equal(hr_convert(&request, &report, &error), HR_USAGE);
    assert_string_equal(error.message, "files of at most -1 bytes; give a size, or 0 for one file");
    assert_int_equal(access("new", F_OK), -1);
}

/* Blanks in a header are skipped once and use no memory. */
static void blanks_in_a_header_need_no_memory(void **state)
{
    (void)state;
    enum { BLANKS = 20 << 20 };
    static const char header[] = "{\"a b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}";
    require_program();
    const int64_t bytes = BLANKS + (int64_t)sizeof header;
    FILE *file = fopen("wide.safetensors", "w");
    assert_non_null(file);
    for (int32_t i = 0; i < 8; i++) fputc((int)(bytes >> (8 * i) & 255), file);
    fputs(header, file);
    for (int32_t i = 0; i < BLANKS; i++) fputc(' ', file);
    fputs("}x", file);
    assert_int_equal(fclose(file), 0);
    const hr_convert_request request = { .size = sizeof request, .source = "wide.safetensors" };
    assert_in_range(hr_convert_bytes(&request), BLANKS, BLANKS + (5 << 20));
    assert_int_equal(run("convert wide.safetensors new"), HR_OK);
    assert_int_equal(system("test $(wc -c <new/model.safetensors) -lt 200"), 0);
    oracle_file whole = { 0 };
    assert_true(oracle_open(&whole, "wide.safetensors"));
    same_tensors("new/model.safetensors", &whole, 1);
    oracle_close(&whole);
}

/* ---- model.from, from the command line */

/* The model of `words` is trained into a directory, loaded from it, and saved unchanged. */
static void goes_on_from(const char *words, const char *folder)
{
    char command[128], path[64];
    oracle_file first = { 0 };
    assert_int_equal(run("train tiny.yaml data.train=text.txt %s --out %s", words, folder), HR_OK);
    assert_int_equal(run("train from.yaml data.train=text.txt model.from=%s "
                         "train.optimizer.lr=0 --out from_%s",
                         folder, folder),
                     HR_OK);
    snprintf(command, sizeof command, "cmp %s/config.json from_%s/config.json", folder, folder);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_true(oracle_open(&first, path));
    json_object_del(first.header, "__metadata__");
    snprintf(path, sizeof path, "from_%s/model.safetensors", folder);
    same_tensors(path, &first, (int32_t)json_object_size(first.header));
    oracle_close(&first);
    assert_int_equal(run("plan from.yaml model.from=%s model.d_model=24", folder), HR_USAGE);
    assert_non_null(strstr(err, "model.d_model is 24, but the model in"));
}

static void a_run_starts_from_the_directory_that_a_run_wrote(void **state)
{
    (void)state;
    static const char *const families[] = { "needle", "gpt_neox", "llama",  "gpt2",
                                            "opt",    "mistral",  "qwen2",  "qwen3",
                                            "yxanul", "wide",     "gpt_neo" };
    require_program();
    put_tiny_and_text();
    put("from.yaml", "train: {batch: 4, seq_len: 16, steps: 1, threads: 2}\n");
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char words[64];
        snprintf(words, sizeof words, "model.family=%s", families[i]);
        goes_on_from(words, families[i]);
    }
    goes_on_from("model.family=yxanul model.tie_embeddings=false", "untied");
    assert_int_equal(system("grep -q '\"tie_word_embeddings\": false' untied/config.json"), 0);
    assert_int_equal(run("eval untied --file text.txt --context 16"), HR_OK);
    assert_int_equal(run("generate untied --prompt a --max-tokens 3"), HR_OK);
    assert_int_equal(run("plan from.yaml model.from=nowhere"), HR_USAGE);
    assert_int_equal(run("plan from.yaml model.from=llama --largest model.d_ff"), HR_USAGE);
    assert_non_null(strstr(err, "remove model.from"));
    assert_int_equal(run("plan from.yaml --largest train.adapter.rank"), HR_OK);
    assert_non_null(strstr(out, "train.adapter.rank does nothing with train.adapter.kind=none"));
    assert_int_equal(run("plan from.yaml model.from=llama"), HR_OK);
    assert_non_null(strstr(out, "  weights from llama\n"));
    assert_non_null(strstr(out, "  weights read from files\n"));
    assert_null(strstr(out, "initial values"));
}

static void a_directory_with_a_wrong_config_has_its_exit_code(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("train tiny.yaml data.train=text.txt model.family=llama --out m"), HR_OK);
    put("from.yaml", "model: {from: m}\ndata: {train: text.txt}\n"
                     "train: {batch: 4, seq_len: 16, steps: 1, threads: 2}\n");
    /* The error is not that it needs more memory. */
    assert_int_equal(system("cp m/config.json kept; sed -i 's/\"intermediate_size\": [0-9]*/"
                            "\"intermediate_size\": 16777216/' m/config.json"),
                     0);
    assert_int_equal(run("generate m --prompt-ids 1 --print-ids --budget 64MiB"), HR_CORRUPT);
    assert_non_null(strstr(err, "_proj.weight is ["));
    assert_int_equal(system("mv kept m/config.json"), 0);
    assert_int_equal(system("truncate -s -4 m/model.safetensors"), 0);
    assert_int_equal(run("train from.yaml --out o"), HR_CORRUPT);
    assert_non_null(strstr(err, "the file is truncated"));
    assert_int_equal(system("printf '\\0\\0\\300\\177' >>m/model.safetensors"), 0);
    assert_int_equal(run("train from.yaml --out o"), HR_CORRUPT);
    assert_non_null(strstr(err, "m: tensor lm_head.weight has NaN or Inf values"));
    assert_int_equal(system("rm m/model.safetensors"), 0);
    assert_int_equal(run("train from.yaml --out o"), HR_USAGE);
    assert_non_null(strstr(err, "m: has neither model.safetensors nor"));
    assert_int_equal(run("plan from.yaml"), HR_OK);
    assert_int_equal(system("sed -i 's/silu/gelu/' m/config.json"), 0);
    assert_int_equal(run("plan from.yaml"), HR_CORRUPT);
    assert_non_null(strstr(err, "\"hidden_act\" is gelu, only silu is supported"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_round_trip_is_byte_identical),
        IN_A_FOLDER(rounding_needs_an_option),
        IN_A_FOLDER(every_count_of_elements_is_converted),
        IN_A_FOLDER(invalid_conversions_are_refused),
        IN_A_FOLDER(a_config_with_invalid_json_is_refused),
        IN_A_FOLDER(a_conversion_that_fails_leaves_nothing),
        IN_A_FOLDER(a_conversion_that_is_interrupted_leaves_nothing),
        IN_A_FOLDER(the_library_refuses_files_of_less_than_nothing),
        IN_A_FOLDER(blanks_in_a_header_need_no_memory),
        IN_A_FOLDER(a_run_starts_from_the_directory_that_a_run_wrote),
        IN_A_FOLDER(a_directory_with_a_wrong_config_has_its_exit_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
