/* SPDX-License-Identifier: Apache-2.0 */
/* cli_fp8_test.c - folders with F8_E4M3 matrices and a scale for each block of 128 x 128: converted
 * from and to, evaluated, and the frozen base of a run. */
#include <math.h>

#include "base/bf16.h"
#include "base/random.h"
#include "headroom/status.h"
#include "support/e4m3.h"
#include "support/oracle.h"
#include "support/program.h"
#include "support/stored.h"

enum { SEED = 11, ROWS = 300, WIDTH = 260, BLOCKS = 9, ACROSS = 3 };

static const char inside[] = "model.layers.0.mlp.up_proj.weight";

/* A matrix of a layer, an embedding table and a vector. A block of the matrix is zero. */
static void put_model(float *matrix)
{
    for (int32_t i = 0; i < ROWS * WIDTH; i++) {
        const uint64_t bits = hr_random_mix(SEED + (uint64_t)i);
        const bool zero = i / WIDTH >= 256 && i % WIDTH >= 256;
        matrix[i] = zero ? 0
                         : (float)ldexp((double)(int32_t)bits, -31 - (int32_t)(bits >> 40) % 20);
    }
    static uint16_t norm[WIDTH];
    stored_file file = stored_begin();
    stored_add(&file, "model.embed_tokens.weight", "F32", "[300,260]", matrix, 4 * ROWS * WIDTH);
    stored_add(&file, inside, "F32", "[300,260]", matrix, 4 * ROWS * WIDTH);
    stored_add(&file, "model.norm.weight", "BF16", "[260]", norm, sizeof norm);
    assert_int_equal(system("mkdir wide"), 0);
    stored_end(&file, "wide/model.safetensors");
    put("wide/config.json", "{\"torch_dtype\": \"bfloat16\", \"a\": 1}");
}

static void dtype_is(const oracle_file *file, const char *name, const char *dtype)
{
    const json_t *entry = json_object_get(file->header, name);
    assert_non_null(entry);
    assert_string_equal(json_string_value(json_object_get(entry, "dtype")), dtype);
}

static void matrices_of_layers_become_e4m3_and_return(void **state)
{
    (void)state;
    static float matrix[ROWS * WIDTH];
    static char text[PROGRAM_TEXT_BYTES];
    oracle_file file = { 0 };
    int64_t bytes = 0;
    require_program();
    put_model(matrix);
    assert_int_equal(run("convert wide fp8 --dtype f8_e4m3"), HR_OK);
    assert_non_null(strstr(out, "4 tensors in 1 file"));
    assert_non_null(strstr(out, "dtype changed in 1"));
    get("fp8/config.json", text);
    assert_string_equal(text, "{\n  \"quantization_config\": {\"activation_scheme\": \"dynamic\", "
                              "\"fmt\": \"e4m3\", \"quant_method\": \"fp8\", "
                              "\"weight_block_size\": [128, 128]},\"torch_dtype\": \"bfloat16\", "
                              "\"a\": 1}");
    assert_true(oracle_open(&file, "fp8/model.safetensors"));
    dtype_is(&file, "model.embed_tokens.weight", "F32");
    dtype_is(&file, "model.norm.weight", "BF16");
    dtype_is(&file, inside, "F8_E4M3");
    const float *scales = oracle_tensor(&file, inside, "_scale_inv", &bytes);
    assert_int_equal(bytes, 4 * BLOCKS);
    const uint8_t *codes = oracle_tensor(&file, "", inside, &bytes);
    assert_int_equal(bytes, ROWS * WIDTH);
    static float values[ROWS * WIDTH];
    for (int32_t i = 0; i < ROWS * WIDTH; i++) {
        const int32_t row = i / WIDTH, column = i % WIDTH;
        const float most = e4m3_scale(matrix, ROWS, WIDTH, row, column),
                    scale = most > 0 ? most : 1;
        assert_true(scales[row / 128 * ACROSS + column / 128] == scale);
        assert_int_equal(codes[i], e4m3_nearest(matrix[i] / scale));
        values[i] = e4m3_value(codes[i]) * scale;
    }
    oracle_close(&file);
    static const char *const back[] = { "f32", "bf16" };
    for (int32_t k = 0; k < 2; k++) {
        if (run("convert fp8 back%d --dtype %s", (int)k, back[k])) fail_msg("%s", err);
        assert_non_null(strstr(out, "3 tensors in 1 file"));
        snprintf(text, sizeof text, "back%d/model.safetensors", (int)k);
        assert_true(oracle_open(&file, text));
        const void *data = oracle_tensor(&file, "", inside, &bytes);
        for (int32_t i = 0; i < ROWS * WIDTH; i++)
            if (k == 0) assert_memory_equal((const float *)data + i, &values[i], 4);
            else assert_int_equal(((const uint16_t *)data)[i], hr_bf16_from_f32(values[i]));
        oracle_close(&file);
    }
    get("back1/config.json", text);
    assert_string_equal(text, "{\n  \"torch_dtype\": \"bfloat16\", \"a\": 1}");
    /* Without a dtype, or with the same, everything stays as it is. */
    assert_int_equal(run("convert fp8 same --dtype f8_e4m3 --shard-bytes 1KB"), HR_OK);
    assert_int_equal(run("convert same again"), HR_OK);
    assert_int_equal(system("cmp fp8/config.json again/config.json"), 0);
    oracle_file again = { 0 };
    assert_true(oracle_open(&file, "fp8/model.safetensors"));
    assert_true(oracle_open(&again, "again/model.safetensors"));
    assert_int_equal(json_object_size(again.header), json_object_size(file.header));
    static const char *const names[] = { "", "_scale_inv" };
    for (int32_t k = 0; k < 2; k++) {
        const void *data = oracle_tensor(&file, inside, names[k], &bytes);
        assert_memory_equal(oracle_tensor(&again, inside, names[k], &bytes), data, bytes);
    }
    oracle_close(&again);
    oracle_close(&file);
}

static void the_quantization_is_removed_wherever_it_is_in_the_config(void **state)
{
    (void)state;
    static const char entry[] =
        "\"quantization_config\" : { \"quant_method\":\"fp8\", \"l\":[1,{}] }";
    static const char *const configs[][2] = {
        { "{%s}", "{}" },
        { "{ %s , \"a\":1}", "{ \"a\":1}" },
        { "{\"a\":1, %s }", "{\"a\":1 }" },
        { "{\"dtype\":\"x\",\n%s,\n\"torch_dtype\":\"y\"}",
          "{\"dtype\":\"bfloat16\",\n\"torch_dtype\":\"bfloat16\"}" },
        { "{\"torch_dtype\":\"y\",%s}", "{\"torch_dtype\":\"bfloat16\"}" },
    };
    static float matrix[ROWS * WIDTH];
    require_program();
    put_model(matrix);
    assert_int_equal(run("convert wide fp8 --dtype f8_e4m3"), HR_OK);
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        static char text[PROGRAM_TEXT_BYTES];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, configs[i][0], entry);
#pragma GCC diagnostic pop
        put("fp8/config.json", text);
        assert_int_equal(run("convert fp8 plain%d --dtype bf16", (int)i), HR_OK);
        snprintf(text, sizeof text, "plain%d/config.json", (int)i);
        get(text, text);
        assert_string_equal(text, configs[i][1]);
    }
}

static void scales_that_are_missing_are_refused(void **state)
{
    (void)state;
    static const uint8_t codes[256 * 2];
    static const float scale = 1;
    require_program();
    stored_file file = stored_begin();
    stored_add(&file, inside, "F8_E4M3", "[2,256]", codes, sizeof codes);
    stored_add(&file, "model.layers.0.mlp.up_proj.weight_scale_inv", "F32", "[1,1]", &scale, 4);
    assert_int_equal(system("mkdir odd"), 0);
    stored_end(&file, "odd/model.safetensors");
    assert_int_equal(run("convert odd new --dtype bf16"), HR_CORRUPT);
    assert_non_null(
        strstr(err, "up_proj.weight_scale_inv is [1, 1], [1, 2] is needed for model.l"));
    assert_int_equal(access("new", F_OK), -1);
    assert_int_equal(run("convert odd same"), HR_OK);
}

/* Names that new scales would repeat, and scales that no conversion can use. */
static void scales_in_the_way_and_impossible_ones_are_refused(void **state)
{
    (void)state;
    static const float values[256 * 2] = { 1 };
    static const char scales[] = "model.layers.0.mlp.up_proj.weight_scale_inv";
    static const struct {
        const char *dtype, *shape, *scale_dtype, *scale_shape, *to, *said;
        int64_t bytes, scale_bytes;
    } cases[] = {
        { "F32", "[2,256]", "F32", "[1,2]", "f8_e4m3", "_inv already exists, but model.layers.0",
          2048, 8 },
        { "F8_E4M3", "[2,256]", "F16", "[1,2]", "f32", "_inv is F16; scales are F32 or BF16", 512,
          4 },
        { "F8_E4M3", "[512]", "F32", "[4]", "f32", "is F8_E4M3, but not a matrix", 512, 16 },
        { "F8_E4M3", "[0,140000]", "F32", "[0,1094]", "f32", "has 140000 columns, the limit", 0,
          0 },
        { "F8_E4M3", "[1152921504606846976,0]", "F32", "[9007199254740992,0]", "f32",
          "is F8_E4M3 without columns", 0, 0 },
        { "F8_E4M3", "[0,9223372036854775807]", "F32", "[1]", "f32",
          "_inv is [1], [0, 72057594037927936] is needed", 0, 4 },
    };
    require_program();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stored_file file = stored_begin();
        stored_add(&file, inside, cases[i].dtype, cases[i].shape, values, cases[i].bytes);
        stored_add(&file, scales, cases[i].scale_dtype, cases[i].scale_shape, values,
                   cases[i].scale_bytes);
        assert_int_equal(system("mkdir -p odd"), 0);
        stored_end(&file, "odd/model.safetensors");
        assert_int_equal(run("convert odd new --dtype %s", cases[i].to), HR_CORRUPT);
        if (!strstr(err, cases[i].said)) fail_msg("%s: %s", cases[i].said, err);
        assert_int_equal(access("new", F_OK), -1);
    }
}

/* Another entry is replaced, so that config.json tells the truth. */
static void the_quantization_of_a_config_is_replaced(void **state)
{
    (void)state;
    static float matrix[ROWS * WIDTH];
    static char text[PROGRAM_TEXT_BYTES];
    require_program();
    put_model(matrix);
    put("wide/config.json", "{\"a\":1,\"quantization_config\":null}");
    assert_int_equal(run("convert wide fp8 --dtype f8_e4m3"), HR_OK);
    get("fp8/config.json", text);
    assert_non_null(strstr(text, "\"quant_method\": \"fp8\""));
    assert_non_null(strstr(text, "\"a\":1}"));
    assert_null(strstr(text, "null"));
}

static const char base_keys[] =
    "model.family=llama model.d_model=160 model.n_layers=2 model.n_heads=4 model.d_ff=200 "
    "model.vocab_size=257 data.tokenizer=bytes train.seq_len=16 train.batch=2 ";

/* An FP8 folder is the model of the same folder in fp32: losses and training are equal. */
static void a_model_is_evaluated_and_trained_upon(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(run("train tiny.yaml --fresh data.train=text.txt --out base %s", base_keys),
                     HR_OK);
    assert_int_equal(run("convert base fp8 --dtype f8_e4m3"), HR_OK);
    assert_int_equal(run("convert fp8 wide --dtype f32"), HR_OK);
    static const char *const folders[] = { "fp8", "wide" };
    for (int32_t k = 0; k < 2; k++) {
        assert_int_equal(run("eval %s --tokenizer bytes --file text.txt --per-token %s.losses",
                             folders[k], folders[k]),
                         HR_OK);
        assert_int_equal(run("train tiny.yaml --fresh data.train=text.txt --out run-%s "
                             "data.tokenizer=bytes model.from=%s train.seq_len=16 train.batch=2 "
                             "'train.freeze=model.layers.*'",
                             folders[k], folders[k]),
                         HR_OK);
    }
    assert_int_equal(system("cmp fp8.losses wide.losses && "
                            "cmp run-fp8/model.safetensors run-wide/model.safetensors"),
                     0);
}

/* Matrices of other families, and those that compress keys, have names without ".weight". */
static void every_family_reads_what_it_saved(void **state)
{
    static const char *const families[] = {
        "needle",
        "yxanul",
        "gpt2",
        "qwen3",
        "llama model.attention.kind=nsa model.attention.nsa.compress_block=8 "
        "model.attention.nsa.compress_stride=4 model.attention.nsa.select_block=8",
    };
    (void)state;
    require_program();
    put_tiny_and_text();
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (run("train tiny.yaml --fresh data.train=text.txt model.family=%s 'train.freeze=*.0.*' "
                "model.weights=f8_e4m3 --out saved",
                families[i]) ||
            run("eval saved --tokenizer bytes --file text.txt") ||
            run("convert saved wide --dtype f32") || run("convert wide fp8 --dtype f8_e4m3") ||
            run("train tiny.yaml data.train=text.txt data.tokenizer=bytes model.from=fp8 "
                "train.seq_len=16 'train.freeze=*.0.*' model.weights=auto"))
            fail_msg("%s: %s", families[i], err);
        assert_int_equal(system("rm -r saved wide fp8"), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(matrices_of_layers_become_e4m3_and_return),
        IN_A_FOLDER(the_quantization_is_removed_wherever_it_is_in_the_config),
        IN_A_FOLDER(scales_that_are_missing_are_refused),
        IN_A_FOLDER(scales_in_the_way_and_impossible_ones_are_refused),
        IN_A_FOLDER(the_quantization_of_a_config_is_replaced),
        IN_A_FOLDER(a_model_is_evaluated_and_trained_upon),
        IN_A_FOLDER(every_family_reads_what_it_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
