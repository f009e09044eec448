/* SPDX-License-Identifier: Apache-2.0 */
/* cli_tokenizer_test.c - a tokenizer file from training to generation: it is saved beside the
 * weights, and train, generate and eval give the same ids. */
#include <math.h>

#include "headroom/evaluate.h"
#include "headroom/generate.h"
#include "support/program.h"
#include "support/small_tokenizer.h"
#include "support/stored.h"

static void train_with_a_tokenizer(const char *added)
{
    require_program();
    put("small.json", small_tokenizer(added));
    FILE *file = fopen("text.txt", "w");
    assert_non_null(file);
    for (int i = 0; i < 300; i++) fprintf(file, "the cat %d in the hat, the end\n", i);
    assert_int_equal(fclose(file), 0);
    put("tiny.yaml", tiny);
    assert_int_equal(run("train tiny.yaml model.vocab_size=260 model.positions=64 "
                         "model.family=gpt2 data.tokenizer=small.json data.train=text.txt "
                         "data.valid=text.txt train.steps=20 train.sample_tokens=8 --out m"),
                     HR_OK);
}

static void said(const char *part)
{
    if (!strstr(err, part)) fail_msg("\"%s\" lacks \"%s\"", err, part);
}

static double number(const json_t *object, const char *key)
{
    const json_t *found = json_object_get(object, key);
    if (!json_is_number(found)) fail_msg("no %s", key);
    return json_number_value(found);
}

static void a_text_has_the_same_ids_in_every_command(void **state)
{
    static char told[PROGRAM_TEXT_BYTES], given[PROGRAM_TEXT_BYTES];
    (void)state;
    train_with_a_tokenizer("<|endoftext|>");
    get("m/tokenizer.json", told);
    get("small.json", given);
    assert_string_equal(told, given);
    assert_int_equal(run("generate m --prompt 'the cat the' --print-ids --temperature 0 "
                         "--max-tokens 12"),
                     HR_OK);
    strcpy(told, out);
    assert_int_equal(run("generate m --prompt-ids 257,32,99,97,116,258 --print-ids "
                         "--temperature 0 --max-tokens 12"),
                     HR_OK);
    assert_string_equal(out, told);
    put("prompt.txt", "the cat the");
    assert_int_equal(run("generate m --file prompt.txt --tokenizer small.json --print-ids "
                         "--temperature 0 --max-tokens 12"),
                     HR_OK);
    assert_string_equal(out, told);
    assert_int_equal(run("generate m --prompt the --temperature 0 --json"), HR_OK);
    json_t *answer = out_json();
    assert_int_equal((int)number(answer, "prompt_tokens"), 1);
    json_decref(answer);
}

/* The tokenizer of the directory is used unless bytes are requested; generation_config.json is
 * copied; and the directory is not overwritten. */
static void a_run_from_a_model_directory_uses_its_tokenizer(void **state)
{
    static char told[PROGRAM_TEXT_BYTES], given[PROGRAM_TEXT_BYTES];
    (void)state;
    train_with_a_tokenizer("<|endoftext|>");
    static const char *const beside[] = { "generation_config.json", "tokenizer_config.json",
                                          "special_tokens_map.json", "chat_template.jinja" };
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        snprintf(told, sizeof told, "m/%s", beside[i]);
        put(told, "{\"eos_token_id\": 9}\n");
    }
    put("from.yaml", "model: {from: m}\ndata: {train: text.txt}\n"
                     "train: {batch: 4, seq_len: 16, steps: 1, threads: 2}\n");
    assert_int_equal(run("train from.yaml --out n"), HR_OK);
    get("n/tokenizer.json", told);
    get("small.json", given);
    assert_string_equal(told, given);
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        snprintf(given, sizeof given, "n/%s", beside[i]);
        get(given, told);
        assert_string_equal(told, "{\"eos_token_id\": 9}\n");
    }
    assert_int_equal(run("train from.yaml --out n"), HR_OK); /* it is the run that wrote them */
    assert_int_equal(run("generate n --prompt the --temperature 0 --json"), HR_OK);
    assert_int_equal(run("train from.yaml data.tokenizer=bytes --out b"), HR_OK);
    assert_int_equal(system("test ! -e b/tokenizer.json"), 0);
    assert_int_equal(system("ln -s m same"), 0);
    assert_int_equal(run("train from.yaml --out same"), HR_USAGE);
    said("train.out same is the folder of model.from, whose weights would be "
         "overwritten");
}

/* The ids of a sampled answer, the same each time; the last is -1. */
static void answer_of(const char *more, int32_t ids[64], const char **end)
{
    static char command[256], how[32];
    snprintf(command, sizeof command,
             "generate m --prompt the --temperature 3 --max-tokens 40 --print-ids --json%s", more);
    assert_int_equal(run("%s", command), HR_OK);
    json_t *answer = out_json();
    const json_t *list = json_object_get(answer, "ids");
    const size_t count = json_array_size(list);
    for (size_t i = 0; i < count; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    ids[count] = -1;
    snprintf(how, sizeof how, "%s", json_string_value(json_object_get(answer, "end")));
    *end = how;
    json_decref(answer);
}

/* An answer ends with the first of the end tokens of the model, which has no text. */
static void an_end_token_of_the_model_ends_an_answer(void **state)
{
    static const struct {
        const char *file, *text; /* %d: an id of the answer */
    } cases[] = { { "generation_config.json", "{\"a\": [1], \"eos_token_id\": [99999, %d]}" },
                  { "generation_config.json", "{\"eos_token_id\": %d, \"b\": {}}" } };
    static char text[PROGRAM_TEXT_BYTES];
    int32_t whole[64], here[64];
    const char *end;
    (void)state;
    train_with_a_tokenizer("<|endoftext|>");
    answer_of(" --ignore-eos", whole, &end);
    assert_string_equal(end, "tokens");
    int32_t last = 4; /* an id that none before it equals */
    for (int32_t i = 0; i < last; i++) {
        if (whole[i] != whole[last]) continue;
        last++;
        i = -1;
    }
    assert_true(last < 39);
    print_message("token %d of the answer ends it\n", last);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, cases[i].text, whole[last]);
        put("m/generation_config.json", text);
        answer_of("", here, &end);
        assert_string_equal(end, "document");
        assert_int_equal(here[last], whole[last]);
        assert_int_equal(here[last + 1], -1);
        answer_of(" --ignore-eos", here, &end);
        assert_memory_equal(here, whole, sizeof whole / 2);
    }
    put("m/generation_config.json", "{\"eos_token_id\": \"x\"}");
    assert_int_equal(run("generate m --prompt the"), HR_CORRUPT);
    said("m/generation_config.json: \"eos_token_id\" is neither a token id nor a list of them");
    put("m/generation_config.json", "{\"eos_token_id\": null");
    assert_int_equal(run("generate m --prompt the"), HR_CORRUPT);
    /* Without it, config.json has them. */
    assert_int_equal(system("rm m/generation_config.json"), 0);
    snprintf(text, sizeof text, "sed -i '1s/{/{\"eos_token_id\": [%d],/' m/config.json",
             whole[last]);
    assert_int_equal(system(text), 0);
    answer_of("", here, &end);
    assert_string_equal(end, "document");
    assert_int_equal(here[last + 1], -1);
}

/* Bits per byte are the losses of all tokens except the first, over the bytes of these. */
static void the_loss_of_windows_is_the_sum_over_their_tokens(void **state)
{
    (void)state;
    train_with_a_tokenizer("<|endoftext|>");
    put("some.txt", "the cat 7 in the hat");
    assert_int_equal(run("eval m --file some.txt --context 64 --per-token loss.jsonl --json"),
                     HR_OK);
    json_t *whole = out_json();
    /* the, space c a t, space 7, space i n, " the", space h a t */
    assert_int_equal((int)number(whole, "tokens"), 14);
    const double bits = number(whole, "loss_sum") / log(2) / 17;
    assert_true(fabs(number(whole, "bits_per_byte") - bits) < 1e-9);
    assert_int_equal(run("eval m --file some.txt --context 5 --stride 2 --json"), HR_OK);
    json_t *sliding = out_json();
    assert_int_equal((int)number(sliding, "tokens"), 14);
    json_decref(sliding);
    put("questions.jsonl", "{\"context\": \"the cat 7 in\", \"choices\": [\" the hat\", \"zz\"], "
                           "\"answer\": 0}\n");
    assert_int_equal(run("eval m --choices questions.jsonl --json"), HR_OK);
    json_t *choices = out_json();
    assert_int_equal((int)number(choices, "tokens"), 5 + 2);
    assert_int_equal((int)number(choices, "questions"), 1);
    json_decref(choices);
    json_decref(whole);
}

static double loss_of(const char *arguments)
{
    assert_int_equal(run("eval m %s --json", arguments), HR_OK);
    json_t *facts = out_json();
    const double loss = number(facts, "loss_sum");
    json_decref(facts);
    return loss;
}

/* "th" is one token, of which "t" is none: it follows the id that ends documents, if the tokenizer
 * has one, and is scored completely; the other choice is unaffected. */
static void a_choice_that_forms_one_token_with_its_context_can_be_scored(void **state)
{
    static char list[PROGRAM_TEXT_BYTES];
    static const int64_t merged[] = { SMALL_ADDED, SMALL_TH }, apart[] = { 't', 'x' };
    (void)state;
    train_with_a_tokenizer("<|endoftext|>");
    put("questions.jsonl", "\n{\"context\": \"t\", \"choices\": [\"h\", \"x\"], \"answer\": 1}\n");
    stored_file file = stored_begin();
    stored_add(&file, "input_ids", "I64", "[1,2]", merged, sizeof merged);
    stored_end(&file, "merged");
    file = stored_begin();
    stored_add(&file, "input_ids", "I64", "[1,2]", apart, sizeof apart);
    stored_end(&file, "apart");
    const double sum = loss_of("--choices questions.jsonl --per-token list");
    get("list", list);
    assert_non_null(strstr(list, "{\"sequence\": 0, \"position\": 1, \"id\": 256, "));
    assert_non_null(strstr(list, "{\"sequence\": 1, \"position\": 1, \"id\": 120, "));
    assert_true(fabs(sum - loss_of("--tokens merged") - loss_of("--tokens apart")) < 1e-6);
    assert_int_equal(run("eval m --choices questions.jsonl --json"), HR_OK);
    assert_null(strstr(out, "bits_per_byte"));
    put("small.json", small_tokenizer("<|other|>"));
    assert_int_equal(run("eval m --choices questions.jsonl --tokenizer small.json"), HR_CORRUPT);
    assert_said("questions.jsonl, line 2: context and choice are one token together, so "
                "there is no context to score it with: write a longer context");
}

/* With byte tokens, each id above 255 is U+FFFD. */
static void ids_above_255_have_no_text_in_byte_models(void **state)
{
    (void)state;
    int32_t beyond = 0;
    train_with_a_tokenizer("<|endoftext|>");
    for (int32_t seed = 0; seed < 8; seed++) {
        char want[256];
        size_t used = 0;
        assert_int_equal(run("generate m --prompt-ids 32 --print-ids --temperature 100 --seed %d "
                             "--max-tokens 60",
                             (int)seed),
                         HR_OK);
        for (char *at = out; *at && *at != '\n'; at += *at == ',') {
            const long id = strtol(at, &at, 10);
            beyond += id > 255;
            if (id > 255) memcpy(want + used, "\xef\xbf\xbd", 3);
            else want[used] = (char)id;
            used += id > 255 ? 3 : 1;
        }
        assert_int_equal(run("generate m --prompt ' ' --tokenizer bytes --temperature 100 "
                             "--seed %d --max-tokens 60",
                             (int)seed),
                         HR_OK);
        assert_memory_equal(out, want, used - 3); /* a character may be cut at the end */
    }
    assert_true(beyond > 0);
}

/* Long texts take time to tokenize; nothing else has started then. */
static void an_interrupt_ends_tokenization(void **state)
{
    static const volatile sig_atomic_t interrupts = 1;
    const hr_infer_request model = { .size = sizeof model,
                                     .folder = "m",
                                     .interrupts = &interrupts };
    const hr_evaluate_request question = { .size = sizeof question,
                                           .model = &model,
                                           .text = "text.txt" };
    const hr_generate_request request = { .size = sizeof request,
                                          .model = &model,
                                          .prompt_file = "text.txt",
                                          .tokens = 8,
                                          .sampling = { .repetition_penalty = 1, .top_p = 1 } };
    hr_evaluate_result facts;
    hr_generate_result answer;
    hr_error error = { HR_OK, "" };
    (void)state;
    train_with_a_tokenizer("<|endoftext|>");
    assert_int_equal(hr_generate(&request, &answer, &error), HR_INTERRUPTED);
    assert_string_equal(error.message, "interrupted while tokenizing the prompt");
    assert_int_equal(hr_evaluate(&question, &facts, &error), HR_INTERRUPTED);
    assert_string_equal(error.message, "interrupted; no file was written");
    assert_int_equal(facts.sequences, 0);
}

static void a_missing_part_of_a_tokenizer_is_reported(void **state)
{
    (void)state;
    train_with_a_tokenizer("<|endoftext|>");
    assert_int_equal(run("train tiny.yaml data.tokenizer=small.json data.train=text.txt --out n"),
                     HR_USAGE);
    said("use model.vocab_size=260");
    assert_int_equal(run("train tiny.yaml data.tokenizer=none.json data.train=text.txt --out n"),
                     HR_USAGE);
    said("none.json");
    put("m/tokenizer.json", "{\"model\": {\"type\": \"WordPiece\"}}");
    assert_int_equal(run("generate m --prompt the"), HR_CORRUPT);
    said("tokenizer.json");
    assert_int_equal(run("generate m --prompt-ids 1 --print-ids --max-tokens 2"), HR_OK);
    remove("m/tokenizer.json");
    assert_int_equal(run("generate m --prompt the"), HR_USAGE);
    said("no tokenizer");
    put("bad.txt", "the \xff cat");
    assert_int_equal(run("eval m --file bad.txt --tokenizer small.json"), HR_CORRUPT);
    said("not UTF-8");
}

/* A megabyte without a boundary is one piece; more is an error. */
static void a_piece_has_at_most_one_mebibyte(void **state)
{
    (void)state;
    require_program();
    put("small.json", small_tokenizer("<|endoftext|>"));
    put("tiny.yaml", tiny);
    for (int64_t more = 0; more < 2; more++) {
        FILE *file = fopen("long.txt", "w");
        assert_non_null(file);
        fputs("the cat\n", file);
        for (int64_t i = 0; i < (1 << 20) + more; i++) fputc('a' + (int)(i % 20), file);
        fputs("\nthe end\n", file);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(
            run("data inspect tiny.yaml model.vocab_size=260 data.tokenizer=small.json "
                "data.train=long.txt --out n"),
            more ? HR_CORRUPT : HR_OK);
    }
    said("long.txt: byte ");
    said("the limit is 1048576");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_text_has_the_same_ids_in_every_command),
        IN_A_FOLDER(a_run_from_a_model_directory_uses_its_tokenizer),
        IN_A_FOLDER(an_end_token_of_the_model_ends_an_answer),
        IN_A_FOLDER(the_loss_of_windows_is_the_sum_over_their_tokens),
        IN_A_FOLDER(a_choice_that_forms_one_token_with_its_context_can_be_scored),
        IN_A_FOLDER(ids_above_255_have_no_text_in_byte_models),
        IN_A_FOLDER(an_interrupt_ends_tokenization),
        IN_A_FOLDER(a_missing_part_of_a_tokenizer_is_reported),
        IN_A_FOLDER(a_piece_has_at_most_one_mebibyte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
