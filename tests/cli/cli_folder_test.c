/* SPDX-License-Identifier: Apache-2.0 */
/* cli_folder_test.c - errors for a model directory without readable weights, from every command
 * that loads one. */
#include <sys/stat.h>

#include "headroom/status.h"
#include "support/program.h"

static const char recipe[] = "train: {batch: 2, seq_len: 8, steps: 1, threads: 1}\n"
                             "data: {tokenizer: bytes, train: text.txt}\n";

static const char config[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 256, \"hidden_size\": 16, "
    "\"intermediate_size\": 32, \"num_hidden_layers\": 1, "
    "\"num_attention_heads\": 2, \"num_key_value_heads\": 2, "
    "\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-6, "
    "\"tie_word_embeddings\": false}\n";

static void put_folder(void)
{
    put("recipe.yaml", recipe);
    put("text.txt", "a text that is long enough for a window of eight tokens and more than that\n");
    assert_int_equal(mkdir("m", 0700), 0);
    put("m/config.json", config);
}

/* Every command prints exactly this error. */
static void is_refused(const char *sentence)
{
    static const char *const words[] = { "generate m --prompt x --max-tokens 1",
                                         "eval m --file text.txt", "convert m other",
                                         "train recipe.yaml model.from=m --out out" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const int code = run("%s", words[i]);
        char expected[1024];
        snprintf(expected, sizeof expected, "headroom: %s\n", sentence);
        if (code != HR_USAGE || strcmp(err, expected)) fail_msg("%s: %d, %s", words[i], code, err);
    }
    assert_int_not_equal(access("other", F_OK), 0);
}

static void a_folder_without_weights_is_refused_by_name(void **state)
{
    (void)state;
    require_program();
    put_folder();
    is_refused("m: has neither model.safetensors nor model.safetensors.index.json");
    put("m/weights.safetensors", "");
    is_refused("m: has neither model.safetensors nor model.safetensors.index.json. It has "
               "weights.safetensors: give it one of these names");
}

static void a_path_that_is_no_folder_is_refused_by_name(void **state)
{
    (void)state;
    require_program();
    static const char *const words[] = { "generate %s --prompt x --max-tokens 1",
                                         "eval %s --file text.txt", "checkpoint list %s",
                                         "train recipe.yaml model.from=%s --out out" };
    static const char *const cases[][2] = {
        { "none", "headroom: none: no such directory\n" },
        { "none/m", "headroom: none/m: no such directory\n" },
        { "text.txt", "headroom: text.txt: is a file, a directory is needed\n" },
        { "/dev/null", "headroom: /dev/null: is a device or pipe, a directory is needed\n" },
        { "text.txt/m",
          "headroom: text.txt/m: cannot be opened as a directory: Not a directory\n" },
        { "m/none", "headroom: m/none: no such directory\n" },
    };
    put_folder();
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            char arguments[256];
            snprintf(arguments, sizeof arguments, words[i], cases[c][0]);
            if (run("%s", arguments) != HR_USAGE || strcmp(err, cases[c][1]))
                fail_msg("%s: %s", arguments, err);
        }
}

static void a_pickle_is_named_and_not_loaded(void **state)
{
    (void)state;
    require_program();
    put_folder();
    put("m/training_args.bin", "x");
    put("m/pytorch_model.bin", "x");
    is_refused("m: has no model.safetensors. It has pytorch_model.bin, a pickle. A pickle can run "
               "code when it is loaded, so headroom does not read it: save the model with "
               "save_pretrained(..., safe_serialization=True)");
}

static void a_link_without_a_target_is_named_with_the_target(void **state)
{
    (void)state;
    require_program();
    put_folder();
    assert_int_equal(symlink("../blobs/5d41", "m/model.safetensors"), 0);
    is_refused("m/model.safetensors: is a link to ../blobs/5d41, which does not exist");
    assert_int_equal(rename("m/model.safetensors", "m/model.safetensors.index.json"), 0);
    is_refused("m/model.safetensors.index.json: is a link to ../blobs/5d41, which does not exist");
}

static void a_pipe_is_refused_without_waiting_for_a_writer(void **state)
{
    (void)state;
    require_program();
    put_folder();
    assert_int_equal(mkfifo("m/model.safetensors", 0600), 0);
    is_refused("m/model.safetensors: is a device or pipe, a file is needed");
}

/* Windows editors write one before JSON. */
static void a_byte_order_mark_is_skipped(void **state)
{
    (void)state;
    require_program();
    static char before[PROGRAM_TEXT_BYTES];
    put_tiny_and_text();
    assert_int_equal(run("tokenize train text.txt --vocab-size 300 --out m"), HR_OK);
    assert_int_equal(
        run("train tiny.yaml data.train=text.txt data.tokenizer=m model.vocab_size=300 "
            "model.family=llama --out m"),
        HR_OK);
    put("q.jsonl", "{\"context\": \"Q:\", \"choices\": [\"b\", \"c\"], \"answer\": 0}\n");
    assert_int_equal(run("eval m --choices q.jsonl --per-token before.jsonl"), HR_OK);
    get("before.jsonl", before);
    assert_int_equal(run("convert m shards --shard-bytes 20kB"), HR_OK);
    assert_int_equal(system("for f in m/config.json m/tokenizer.json q.jsonl "
                            "shards/config.json shards/tokenizer.json "
                            "shards/model.safetensors.index.json; do "
                            "printf '\\357\\273\\277' | cat - $f >marked && mv marked $f; done"),
                     0);
    static const char *const folders[] = { "m", "shards" };
    for (int32_t i = 0; i < 2; i++) {
        assert_int_equal(run("eval %s --choices q.jsonl --per-token after.jsonl", folders[i]),
                         HR_OK);
        get("after.jsonl", out);
        assert_string_equal(out, before);
    }
    assert_int_equal(run("convert shards one --dtype bf16"), HR_OK);
    assert_int_equal(run("generate one --prompt a --max-tokens 2"), HR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_folder_without_weights_is_refused_by_name),
        IN_A_FOLDER(a_path_that_is_no_folder_is_refused_by_name),
        IN_A_FOLDER(a_pickle_is_named_and_not_loaded),
        IN_A_FOLDER(a_link_without_a_target_is_named_with_the_target),
        IN_A_FOLDER(a_pipe_is_refused_without_waiting_for_a_writer),
        IN_A_FOLDER(a_byte_order_mark_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
