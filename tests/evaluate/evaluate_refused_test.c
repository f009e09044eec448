/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate_refused_test.c - `headroom eval`: invalid inputs, files that are never overwritten, and
 * interrupts. */
#include <math.h>

#include "config/config.h"
#include "support/evaluating.h"

static void refused(const char *arguments, int code, const char *sentence)
{
    assert_int_equal(run("%s", arguments), code);
    if (!strstr(err, sentence)) fail_msg("%s: said %s", arguments, err);
    assert_string_equal(out, "");
}

static void put_one(const char *name, const char *dtype, const char *shape, const char *tensor,
                    int64_t value, int64_t bytes)
{
    int64_t values[64];
    for (int32_t i = 0; i < 64; i++) values[i] = value;
    stored_file file = stored_begin();
    stored_add(&file, tensor, dtype, shape, values, bytes);
    stored_end(&file, name);
}

static void invalid_requests_are_refused(void **state)
{
    (void)state;
    put_model("gpt2", 64, "");
    put_tokens("long", 2, 65, 256, true);
    assert_int_equal(run("train tiny.yaml data.train=text.txt train.out=rotary model.family=llama "
                         "train.sample_tokens=0"),
                     HR_OK);
    put_one("floats", "F32", "[2,4]", "input_ids", 1, 32);
    put_one("flat", "I64", "[8]", "input_ids", 1, 64);
    put_one("empty", "I64", "[0,8]", "input_ids", 1, 0);
    put_one("other", "I64", "[1,8]", "ids", 1, 64);
    put_one("large", "I64", "[1,8]", "input_ids", 256, 64);
    put_one("huge", "I64", "[1,8]", "input_ids", INT64_C(1) << 32, 64);
    put_one("below", "I64", "[1,8]", "input_ids", -1, 64);
    refused("eval model --tokens long --logits-out o", HR_USAGE,
            "long has sequences of 65 tokens, the model has 64 positions");
    refused("eval model --tokens floats", HR_CORRUPT, "input_ids has dtype F32");
    refused("eval model --tokens flat", HR_CORRUPT, "input_ids has shape [8]");
    refused("eval model --tokens empty", HR_CORRUPT, "input_ids has shape [0, 8]");
    refused("eval model --tokens other", HR_CORRUPT, "other: has no tensor input_ids");
    refused("eval model --tokens large --logits-out o", HR_CORRUPT,
            "large: input_ids[0, 0] is 256; the model has ids 0 to 255");
    refused("eval model --tokens huge", HR_CORRUPT, "[0, 0] is 4294967296; the model has ids");
    refused("eval model --tokens below", HR_CORRUPT, "[0, 0] is -1; the model has ids 0 to 255");
    refused("eval model --tokens missing", HR_USAGE, "missing");
    refused("eval model --tokens model", HR_USAGE, "model");
    refused("eval model --file text.txt --context 65", HR_USAGE,
            "--context 65 is more than the model's 64 positions");
    refused("eval model --file text.txt --context 8 --stride 9", HR_USAGE,
            "--stride 9 is larger than the window of 8 tokens: tokens would be skipped");
    refused("eval model --file text.txt --stride 0", HR_USAGE, "--stride takes at least 1");
    refused("eval model --file text.txt --logits-out o", HR_USAGE, "--logits-out needs --tokens");
    refused("eval model --tokens large --logits-out large", HR_USAGE,
            "--logits-out large is the file large, which is an input");
    refused("eval model --tokens large --logits-out ./large", HR_USAGE, "is the file large, which");
    refused("eval model --tokens large --per-token large", HR_USAGE, "--per-token large is the f");
    refused("eval model --file text.txt --per-token text.txt", HR_USAGE, "is the file text.txt");
    refused("eval model --tokens large --logits-out model/model.safetensors", HR_USAGE,
            "is the file model/model.safetensors, which is an input; give another path");
    refused("eval model --file text.txt --tokens long", HR_USAGE, "give one of --tokens");
    refused("eval model", HR_USAGE, "give one of --tokens");
    refused("eval model --file text.txt --kernels mmx", HR_USAGE, "--kernels: this CPU has no mmx");
    refused("eval model --file text.txt --threads 257", HR_USAGE,
            "--threads takes an integer from 0 to 256");
    refused("eval model --file text.txt --threads 999999999999", HR_USAGE, "got 999999999999");
    refused("eval nothing --file text.txt", HR_USAGE, "nothing");
    refused("eval '' --file text.txt", HR_USAGE, "the path of the model is empty; give a folder");
    assert_int_equal(system("truncate -s 4G far.txt"), 0);
    refused("eval rotary --file far.txt --context 4000000000", HR_USAGE,
            "can be planned; give a smaller --context");
    put("one.txt", "a");
    refused("eval model --file one.txt", HR_CORRUPT,
            "one.txt: an evaluation needs two tokens, the text has 1");
    static const struct {
        const char *text, *sentence;
    } lines[] = {
        { "\n\n", "q has no questions" },
        { "{}\n", "q, line 1: context is missing or empty" },
        { "\n[1]\n", "q, line 2: not a JSON object" },
        { "{'context': 3}", "line 1: the context is not a string" },
        { "{'context': '\xff'}", "line 1: bytes that are not UTF-8" },
        { "{'context': '\\ud800'}", "line 1: an unknown escape" },
        { "{'context': '\\u0000'}", "line 1: an unknown escape" },
        { "{'context': 'a\tb'}", "line 1: a control character in a string" },
        { "{'answer': tru}", "line 1: no value" },
        { "{'context': 'a', 'context': 'b'}", "line 1: context occurs twice" },
        { "{'choices': [], 'choices': ['a', 'c']}", "line 1: choices occurs twice" },
        { "{'answer': 0, 'answer': 0}", "line 1: answer occurs twice" },
        { "{'context': 'a', 'choices': 'b'}", "line 1: choices is not an array" },
        { "{'context': 'a', 'choices': ['b', 2]}", "line 1: a choice is not a string" },
        { "{'context': 'a', 'choices': ['b', '']}", "line 1: a choice is empty" },
        { "{'context': 'a', 'choices': ['b'], 'answer': 0}", "fewer than two choices" },
        { "{'context': 'a', 'choices': ['b', 'c']}", "the answer is not the index of a choice" },
        { "{'context': 'a', 'choices': ['b', 'c'], 'answer': 2}", "the answer is not" },
        { "{'context': 'a', 'choices': ['b', 'c'], 'answer': -1}", "the answer is not" },
        { "{'context': 'a', 'choices': ['b', 'c'], 'answer': 'b'}", "the answer is not" },
        { "{'context': 'a', 'choices': ['b', 'c'], 'answer': 0} 1", "q, line 1: " },
        { "{'context': 'a', 'choices': ['b', 'c", "q, line 1: " },
        { "{'context': '0123456789012345678901234567890123456789012345678901234567890123', "
          "'choices': ['b', 'cd'], 'answer': 0}",
          "q has sequences of 65 tokens, the model has 64 positions" },
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s", lines[i].text);
        for (char *at = text; *at; at++)
            if (*at == '\'') *at = '"';
        put("q", text);
        refused("eval model --choices q", strstr(lines[i].sentence, "65") ? HR_USAGE : HR_CORRUPT,
                lines[i].sentence);
    }
    refused("eval model --choices missing", HR_USAGE, "missing");
    refused("eval model --tokens long --logits-out no/o", HR_USAGE, "no");
    assert_int_not_equal(access("o", F_OK), 0);
    /* NaN and Inf in logits and weights. */
    const char *weights = "model/model.safetensors", *norm = "transformer.ln_f.weight";
    oracle_spoil(weights, norm, 3e38f, 16);
    refused("eval model --file text.txt", HR_DIVERGED, "are NaN or Inf");
    oracle_spoil(weights, norm, NAN, 1);
    refused("eval model --file text.txt", HR_CORRUPT,
            "model: tensor transformer.ln_f.weight has NaN or Inf values");
    /* A file of another kind is not replaced. */
    put("o", "kept");
    refused("eval model --tokens large --logits-out o", HR_USAGE,
            "o: exists and is not a file of logits");
    get("o", out);
    assert_string_equal(out, "kept");
}

/* A sharded model and links to it, and every file name that a model or tokenizer loader looks for.
 * A refusal leaves each file unchanged. */
static void no_file_of_the_model_is_overwritten(void **state)
{
    (void)state;
    static const char *const outputs[][2] = {
        { "shards/model-00001-of-00002.safetensors", "which is an input" },
        { "shards/../shards/model-00002-of-00002.safetensors", "which is an input" },
        { "shards/model.safetensors.index.json", "which is an input" },
        { "shards/tokenizer.json", "which is an input" },
        { "shards/notes", "which may belong to the model" },
        { "shards/model.safetensors", "would become part of the model in shards" },
        { "shards/config.json", "which is an input" },
        { "./shards/vocab.json", "would become part" },
        { "shards/merges.txt", "would become part" },
        { "beside", "which is an input" },
        { "other/tokenizer.json", "is the file other/tokenizer.json, which is an input" },
        { "pair/merges.txt", "is the file pair/merges.txt, which is an input" },
    };
    put_model("llama", 0, "model.d_model=64 model.d_ff=256");
    put_tokens("ids", 1, 8, 256, true);
    assert_int_equal(run("convert model shards --shard-bytes 200kB"), HR_OK);
    assert_int_equal(access("shards/model-00002-of-00002.safetensors", R_OK), 0);
    assert_int_equal(
        system("mkdir other pair && echo >shards/notes && echo {} >other/tokenizer.json "
               "&& cp other/tokenizer.json shards && echo >pair/merges.txt && "
               "echo >pair/vocab.json && ln shards/config.json beside && "
               "cat shards/* other/* pair/* >before"),
        0);
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        for (int32_t k = 0; k < 2; k++) {
            const char *tokenizer = outputs[i][0][0] == 'o'   ? "--tokenizer other"
                                    : outputs[i][0][0] == 'p' ? "--tokenizer pair/vocab.json"
                                                              : "";
            char arguments[256];
            snprintf(arguments, sizeof arguments, "eval shards --tokens ids %s %s %s", tokenizer,
                     k ? "--per-token" : "--logits-out", outputs[i][0]);
            refused(arguments, HR_USAGE, outputs[i][1]);
        }
    assert_int_equal(system("cat shards/* other/* pair/* | cmp - before"), 0);
    json_decref(evaluated("shards --tokens ids --logits-out logits"));
    for (int32_t k = 0; k < 2; k++) { /* names that no loader looks for are allowed */
        json_decref(evaluated("shards --tokens ids --per-token shards/losses.jsonl"));
        json_decref(evaluated("shards --tokens ids --logits-out shards/logits.safetensors"));
    }
}

/* Windows are no longer than the positions that a rotary model supports, unless requested. */
static void windows_are_limited_to_the_positions_of_the_model(void **state)
{
    (void)state;
    put_model("llama", 40, "");
    json_t *facts = evaluated("model --file text.txt");
    assert_true(number(facts, "length") == 40 && number(facts, "stride") == 40);
    json_decref(facts);
    facts = evaluated("model --file text.txt --context 50");
    assert_true(number(facts, "length") == 50);
    json_decref(facts);
}

static void text_needs_a_tokenizer(void **state)
{
    (void)state;
    require_program();
    put("bytes.txt", "abc");
    refused("eval " HR_ORACLES "/hf/gpt2 --file bytes.txt", HR_USAGE,
            "has no tokenizer for its 101 tokens");
    refused("eval " HR_ORACLES "/hf/gpt2 --file bytes.txt --tokenizer words", HR_USAGE, "words");
    assert_int_equal(run("eval " HR_ORACLES "/hf/gpt2 --file bytes.txt --tokenizer bytes"), HR_OK);
    put("far.txt", "abz");
    refused("eval " HR_ORACLES "/hf/gpt2 --file far.txt --tokenizer bytes", HR_USAGE,
            "far.txt: byte 2 is 122; the model has ids 0 to 100");
}

/* timeout signals the process and then its group: two signals, one request. */
static void an_interrupt_leaves_no_file(void **state)
{
    (void)state;
    put_model("llama", 0, "model.d_model=256 model.d_ff=1024");
    put_tokens("ids", 512, 1024, 256, false);
    assert_int_equal(system("timeout --preserve-status -s INT 2 \"$HEADROOM\" eval model "
                            "--tokens ids --logits-out o --threads 1 >out.txt 2>err.txt; "
                            "test $? = 130 && test ! -e o && test ! -s out.txt"),
                     0);
    get("err.txt", err);
    assert_said("interrupted; no file was written");
}

/* A pass over many layers, long compared with one layer: an interrupt does not wait for its end.
 * Two threads, because ThreadSanitizer delivers a signal only when one waits for the other. */
static void an_interrupt_ends_a_pass_within_a_layer(void **state)
{
    (void)state;
    put_model("llama", 0, "model.d_model=64 model.d_ff=256 model.n_layers=64");
    put_tokens("ids", 1, 2048, 256, false);
    assert_int_equal(system("timeout --preserve-status -s INT -k 20 2 \"$HEADROOM\" eval model "
                            "--tokens ids --threads 2 --kernels ref >out.txt 2>err.txt; "
                            "test $? = 130"),
                     0);
    get("err.txt", err);
    assert_said("interrupted; no file was written");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(invalid_requests_are_refused),
        IN_A_FOLDER(no_file_of_the_model_is_overwritten),
        IN_A_FOLDER(windows_are_limited_to_the_positions_of_the_model),
        IN_A_FOLDER(text_needs_a_tokenizer),
        IN_A_FOLDER(an_interrupt_leaves_no_file),
        IN_A_FOLDER(an_interrupt_ends_a_pass_within_a_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
