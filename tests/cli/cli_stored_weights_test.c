/* SPDX-License-Identifier: Apache-2.0 */
/* cli_stored_weights_test.c - folders whose weights are kept in memory as they are stored: eval,
 * generate and train give the bits of the dequantized folder in fewer bytes, write the stored
 * tensors again, resume, and refuse what does not fit the format. */
#include <math.h>

#include "headroom/status.h"
#include "support/oracle.h"
#include "support/program.h"
#include "support/stored.h"

static const char base_keys[] =
    "model.family=llama model.d_model=160 model.n_layers=3 model.n_heads=4 model.d_ff=200 "
    "model.vocab_size=257 data.tokenizer=bytes train.seq_len=16 train.batch=2 ";

/* Trains over a folder, with all matrices of layers but those of attention in layer 2 frozen. */
static const char over[] = "train tiny.yaml --fresh data.train=text.txt data.tokenizer=bytes "
                           "train.seq_len=16 train.batch=2 "
                           "'train.freeze=*.[01].self_attn.* *.mlp.*' ";

/* The folder of a format has the weights of "base" in it; the one with "-wide" the same numbers in
 * fp32. */
static const char *const formats[] = { "f16", "f8_e4m3", "bf16" };
enum { FORMATS = sizeof formats / sizeof *formats };

static void shell(const char *command)
{
    if (system(command)) fail_msg("%s", command);
}

static void says(const char *sentence)
{
    if (!strstr(err, sentence)) fail_msg("%s: %s", sentence, err);
}

static void prepare(void)
{
    require_program();
    put_tiny_and_text();
    shell("head -c 1500 text.txt > some.txt && mv some.txt text.txt");
    assert_int_equal(run("train tiny.yaml --fresh data.train=text.txt --out base %s", base_keys),
                     HR_OK);
    for (int32_t f = 0; f < FORMATS; f++) {
        assert_int_equal(run("convert base %s --dtype %s", formats[f], formats[f]), HR_OK);
        assert_int_equal(run("convert %s %s-wide --dtype f32", formats[f], formats[f]), HR_OK);
    }
}

static int64_t weight_bytes(void)
{
    json_t *root = out_json();
    const int64_t bytes = json_integer_value(json_object_get(root, "weight_bytes"));
    const int64_t planned = json_integer_value(json_object_get(root, "arena_bytes_planned"));
    assert_int_equal(planned, json_integer_value(json_object_get(root, "arena_bytes_used")));
    json_decref(root);
    return bytes;
}

static void evaluation_and_generation_equal_those_of_the_dequantized_folder(void **state)
{
    (void)state;
    static const char *const dtypes[] = { "fp32", "bf16" }, *const kernels[] = { "auto", "ref" };
    static const char rest[] = "--tokenizer bytes --file text.txt --json";
    char text[PROGRAM_TEXT_BYTES];
    const int64_t matrices = 3 * (4 * 160 * 160 + 3 * 160 * 200);
    prepare();
    for (int32_t f = 0; f < FORMATS; f++)
        for (int32_t d = 0; d < 2; d++)
            for (int32_t k = 0; k < 2; k++) {
                assert_int_equal(
                    run("eval %s --weights %s --dtype %s --kernels %s --per-token a %s", formats[f],
                        formats[f], dtypes[d], kernels[k], rest),
                    HR_OK);
                const int64_t stored = weight_bytes();
                assert_int_equal(run("eval %s-wide --dtype %s --kernels %s --per-token b %s",
                                     formats[f], dtypes[d], kernels[k], rest),
                                 HR_OK);
                shell("cmp a b");
                /* 200 columns are padded to 208. */
                const int64_t padded = matrices + 3 * 2 * 160 * 8;
                assert_int_equal(weight_bytes() - stored,
                                 padded * (d ? 2 : 4) - padded * (f == 1 ? 1 : 2));
                assert_int_equal(
                    run("generate %s --weights auto --dtype %s --kernels %s --prompt x "
                        "--tokenizer bytes --max-tokens 12 --print-ids",
                        formats[f], dtypes[d], kernels[k]),
                    HR_OK);
                strcpy(text, out);
                assert_int_equal(run("generate %s-wide --dtype %s --kernels %s --prompt x "
                                     "--tokenizer bytes --max-tokens 12 --print-ids",
                                     formats[f], dtypes[d], kernels[k]),
                                 HR_OK);
                assert_string_equal(out, text);
            }
}

/* The tensors of a trained folder: those of the format equal the source's, all others those of the
 * run over the dequantized folder. Returns how many have the format. */
static int32_t compare_folders(const char *trained, const char *source, const char *wide,
                               const char *dtype)
{
    oracle_file a = { 0 }, b = { 0 }, c = { 0 };
    char path[128];
    int32_t stored = 0;
    const char *name;
    json_t *entry;
    snprintf(path, sizeof path, "%s/model.safetensors", trained);
    assert_true(oracle_open(&a, path));
    snprintf(path, sizeof path, "%s/model.safetensors", source);
    assert_true(oracle_open(&b, path));
    snprintf(path, sizeof path, "%s/model.safetensors", wide);
    assert_true(oracle_open(&c, path));
    json_object_foreach(a.header, name, entry)
    {
        int64_t bytes = 0, same = 0;
        const char *is = json_string_value(json_object_get(entry, "dtype"));
        if (!is) continue;
        const bool kept = !strcmp(is, dtype) || strstr(name, "_scale_inv");
        const void *data = oracle_tensor(&a, "", name, &bytes);
        const void *other = oracle_tensor(kept ? &b : &c, "", name, &same);
        assert_int_equal(bytes, same);
        assert_memory_equal(data, other, (size_t)bytes);
        stored += !strcmp(is, dtype);
    }
    oracle_close(&a);
    oracle_close(&b);
    oracle_close(&c);
    return stored;
}

static void training_over_stored_weights_equals_that_over_dequantized_ones(void **state)
{
    (void)state;
    static const char *const names[] = { "F16", "F8_E4M3", "BF16" };
    char text[PROGRAM_TEXT_BYTES];
    prepare();
    for (int32_t f = 0; f < FORMATS; f++) {
        assert_int_equal(run("%s --out stored model.from=%s model.weights=auto train.ema_decay=0.9",
                             over, formats[f]),
                         HR_OK);
        assert_int_equal(
            run("%s --out wide model.from=%s-wide train.ema_decay=0.9", over, formats[f]), HR_OK);
        assert_int_equal(compare_folders("stored", formats[f], "wide", names[f]), 3 * 7 - 4);
        get("stored/config.json", text);
        assert_int_equal(strstr(text, "\"quant_method\": \"fp8\"") != NULL, f == 1);
        /* The folder is read again as any other. */
        assert_int_equal(run("eval stored --tokenizer bytes --file text.txt --per-token a"), HR_OK);
        assert_int_equal(run("eval wide --tokenizer bytes --file text.txt --per-token b"), HR_OK);
        shell("cmp a b");
    }
}

/* A run that is interrupted goes on to the bytes of one that is not. */
static void a_run_over_stored_weights_resumes(void **state)
{
    (void)state;
    static const char rest[] = "model.from=f8_e4m3 model.weights=f8_e4m3 train.steps=60 "
                               "train.checkpoint_every=20 train.ema_decay=0.9";
    char command[512];
    prepare();
    assert_int_equal(run("%s --out all %s", over, rest), HR_OK);
    snprintf(command, sizeof command, "%s --out part %s", over, rest);
    assert_int_equal(run_interrupted(command, "step 30/", false), HR_INTERRUPTED);
    const char *again = strstr(over, "data.train");
    assert_int_equal(run("train tiny.yaml %s --out part %s", again, rest), HR_OK);
    shell("cmp all/model.safetensors part/model.safetensors && cd all/checkpoints && "
          "for file in step-000000000060/*.safetensors; do "
          "cmp $file ../../part/checkpoints/$file || exit 1; done");
    /* The format is part of the checkpoint. */
    assert_int_equal(run("train tiny.yaml %s --out part model.from=f8_e4m3 train.steps=80 "
                         "train.checkpoint_every=20 train.ema_decay=0.9",
                         again),
                     HR_USAGE);
    says("its weights have another shape or format");
}

static void a_plan_over_stored_weights_is_verified_and_smaller(void **state)
{
    (void)state;
    static const char *const weights[] = { "compute", "f16", "f8_e4m3", "bf16" };
    int64_t arena[4];
    require_program();
    put_tiny_and_text();
    for (int32_t w = 0; w < 4; w++) {
        assert_int_equal(
            run("plan tiny.yaml %s model.n_layers=12 train.batch=1 "
                "'train.freeze=model.layers.*' model.weights=%s --json --out plan.json",
                base_keys, weights[w]),
            HR_OK);
        json_t *root = out_json();
        arena[w] = json_integer_value(json_object_get(root, "arena_bytes"));
        json_decref(root);
        assert_int_equal(run("verify plan.json"), HR_OK);
    }
    const int64_t matrices = 12 * (4 * 160 * 160 + 3 * 160 * 200);
    assert_true(arena[0] - arena[1] > 19 * matrices / 10 - 160 * 208 * 4);
    assert_true(arena[1] - arena[2] > 9 * matrices / 10);
    assert_true(arena[3] == arena[1]);
}

static void what_is_not_stored_so_is_refused_by_name(void **state)
{
    (void)state;
    prepare();
    assert_int_equal(run("eval base --weights f16 --tokenizer bytes --file text.txt"), HR_CORRUPT);
    says("tensor model.layers.0.self_attn.q_proj.weight is F32, weights stored as f16 must "
         "be F16; convert the folder with headroom convert --dtype f16, or store weights as "
         "compute");
    assert_int_equal(run("eval f16 --weights f8_e4m3 --tokenizer bytes --file text.txt"),
                     HR_CORRUPT);
    says("is F16, weights stored as f8_e4m3 must be F8_E4M3");
    assert_int_equal(run("eval f16 --weights f8 --tokenizer bytes --file text.txt"), HR_USAGE);
    says("--weights takes compute, f16, bf16, f8_e4m3 or auto; got f8");
    assert_int_equal(run("train tiny.yaml data.train=text.txt model.from=f8_e4m3 "
                         "data.tokenizer=bytes model.weights=f8_e4m3 train.seq_len=16"),
                     HR_USAGE);
    says("model.layers.0.self_attn.q_proj.weight is trained, as all matrices of layers are, "
         "and model.weights=f8_e4m3 is for frozen weights; freeze some with train.freeze");
    assert_int_equal(run("eval f8_e4m3 --tokenizer bytes --file text.txt --budget 4MiB"),
                     HR_NO_FIT);
    const char *budget = strstr(err, "use --budget ");
    assert_non_null(budget);
    assert_int_equal(run("eval f8_e4m3 --tokenizer bytes --file text.txt --budget %lld",
                         atoll(budget + strlen("use --budget "))),
                     HR_OK);
    /* With auto, nothing is stored that is trained. */
    assert_int_equal(run("train tiny.yaml data.train=text.txt model.from=f8_e4m3 "
                         "data.tokenizer=bytes model.weights=auto train.seq_len=16 train.batch=2"),
                     HR_OK);
}

/* Scales that are missing, misshapen or not finite, and elements that are NaN, of one matrix. */
static void impossible_scales_and_elements_are_refused_by_name(void **state)
{
    (void)state;
    static const char matrix[] = "model.layers.1.mlp.up_proj.weight";
    static const struct {
        const char *drop, *edit, *said;
    } cases[] = {
        { "up_proj.weight_scale_inv", "",
          "model.layers.1.mlp.up_proj.weight is F8_E4M3, but has no scales: "
          "model.layers.1.mlp.up_proj.weight_scale_inv is missing" },
        { "", "shape", "model.layers.1.mlp.up_proj.weight_scale_inv is [4, 1], [2, 2] is needed" },
        { "", "nan",
          "model.layers.1.mlp.up_proj.weight_scale_inv has a scale that is negative, "
          "NaN or Inf" },
        { "", "element", "model.layers.1.mlp.up_proj.weight has NaN or Inf values" },
        { "", "huge", "model.layers.1.mlp.up_proj.weight has NaN or Inf values" },
    };
    prepare();
    shell("cp -a f8_e4m3 bad");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        oracle_file file = { 0 };
        const char *name;
        json_t *entry;
        assert_true(oracle_open(&file, "f8_e4m3/model.safetensors"));
        stored_file made = stored_begin();
        json_object_foreach(file.header, name, entry)
        {
            static uint8_t copy[1 << 20];
            int64_t bytes = 0;
            const char *dtype = json_string_value(json_object_get(entry, "dtype"));
            if (!dtype || (*cases[i].drop && strstr(name, cases[i].drop) && strstr(name, ".1.")))
                continue;
            char *shape = json_dumps(json_object_get(entry, "shape"), JSON_COMPACT);
            const void *data = oracle_tensor(&file, "", name, &bytes);
            memcpy(copy, data, (size_t)bytes);
            const bool is_scales = strstr(name, matrix) && strstr(name, "_scale_inv");
            const float odd = !strcmp(cases[i].edit, "nan") ? NAN : 1e38f;
            if (is_scales && !strcmp(cases[i].edit, "shape")) strcpy(shape, "[4,1]");
            if (is_scales && (!strcmp(cases[i].edit, "nan") || !strcmp(cases[i].edit, "huge")))
                memcpy(copy + 12, &odd, sizeof odd);
            if (!strcmp(name, matrix) && !strcmp(cases[i].edit, "element")) copy[777] = 0xff;
            stored_add(&made, name, dtype, shape, copy, bytes);
            free(shape);
        }
        stored_end(&made, "bad/model.safetensors");
        oracle_close(&file);
        assert_int_equal(run("eval bad --weights auto --tokenizer bytes --file text.txt"),
                         HR_CORRUPT);
        says(cases[i].said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(evaluation_and_generation_equal_those_of_the_dequantized_folder),
        IN_A_FOLDER(training_over_stored_weights_equals_that_over_dequantized_ones),
        IN_A_FOLDER(a_run_over_stored_weights_resumes),
        IN_A_FOLDER(a_plan_over_stored_weights_is_verified_and_smaller),
        IN_A_FOLDER(what_is_not_stored_so_is_refused_by_name),
        IN_A_FOLDER(impossible_scales_and_elements_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
