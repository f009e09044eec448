/* SPDX-License-Identifier: Apache-2.0 */
/* cli_words_test.c - models of data.tokenizer=words: their vocabulary is saved as tokenizer.json,
 * and every command that runs the model reads it. */
#include "headroom/status.h"
#include "support/program.h"

static const char recipe[] =
    "model: {d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32, vocab_size: 40, family: llama}\n"
    "data: {tokenizer: words, train: text.txt}\n"
    "train: {batch: 2, seq_len: 8, steps: 2, threads: 1}\n";

/* In order of frequency: ids 4 to 12. The word <unk> is an ordinary word. */
static const char text[] =
    "the the the the the the the the the the\n"
    "<unk> <unk> <unk> <unk> <unk> <unk> <unk> <unk> <unk>\n"
    "\xc3\xa9t\xc3\xa9 \xc3\xa9t\xc3\xa9 \xc3\xa9t\xc3\xa9 \xc3\xa9t\xc3\xa9 "
    "\xc3\xa9t\xc3\xa9 \xc3\xa9t\xc3\xa9 \xc3\xa9t\xc3\xa9 \xc3\xa9t\xc3\xa9\n"
    "\"a\\b\" \"a\\b\" \"a\\b\" \"a\\b\" \"a\\b\" \"a\\b\" \"a\\b\"\n"
    "istanbul istanbul istanbul istanbul istanbul istanbul\n"
    "tab tab tab tab tab\nend end end end\nof of of\ncat cat\n";

static void put_model(void)
{
    put("recipe.yaml", recipe);
    put("text.txt", text);
    assert_int_equal(run("train recipe.yaml --out m"), HR_OK);
}

/* The ids of a text except the first, which is never predicted. */
static void ids_are(const char *content, const char *wanted)
{
    char ids[256] = "";
    put("asked.txt", content);
    assert_int_equal(run("eval m --file asked.txt --context 8 --per-token ids.jsonl"), HR_OK);
    get("ids.jsonl", out);
    for (const char *at = out; (at = strstr(at, "\"id\": ")); at++)
        sprintf(ids + strlen(ids), "%d ", atoi(at + 6));
    assert_string_equal(ids, wanted);
}

/* Tokens and covered tokens of data.valid. */
static void counts(const char *tokenizer, int64_t *tokens, int64_t *covered)
{
    assert_int_equal(run("data inspect recipe.yaml data.valid=asked.txt data.tokenizer=%s "
                         "model.vocab_size=302 data.cache=cache --json",
                         tokenizer),
                     HR_OK);
    json_t *answer = out_json();
    const json_t *valid = json_array_get(json_object_get(answer, "texts"), 1);
    *tokens = json_integer_value(json_object_get(valid, "tokens"));
    *covered = json_integer_value(json_object_get(valid, "covered"));
    json_decref(answer);
}

/* The HF tokenizers library (0.23.3) gave these ids for these texts with this file. */
static void a_text_has_the_same_ids_as_in_the_shard(void **state)
{
    (void)state;
    require_program();
    put_model();
    ids_are("x The <unk> <UNK> \xc3\x89T\xc3\x89 \"A\\B\" \xc4\xb0STANBUL dog", "4 5 5 6 7 8 1 ");
    ids_are("x the\x1cof\xc2\xa0"
            "cat\xe3\x80\x80"
            "end\n\n\ttab\x1f"
            "the ",
            "4 11 12 10 9 4 ");
    ids_are("<EOS> <PAD> the <SOS>", "1 4 1 ");
}

static void the_commands_of_tokenize_read_the_vocabulary(void **state)
{
    (void)state;
    require_program();
    put_model();
    put("asked.txt", "x The <unk> <UNK> \xc3\x89T\xc3\x89 \"A\\B\" \xc4\xb0STANBUL dog\n");
    assert_int_equal(run("tokenize encode --tokenizer m asked.txt"), HR_OK);
    assert_string_equal(out, "1 4 5 5 6 7 8 1\n");
    put("ids.txt", out);
    assert_int_equal(run("tokenize decode --tokenizer m/tokenizer.json ids.txt"), HR_OK);
    assert_string_equal(out, "<UNK> the <unk> <unk> \xc3\xa9t\xc3\xa9 \"a\\b\" istanbul <UNK>");
    put("asked.jsonl", "{\"text\": \"The cat\"}\n{\"text\": \"\"}\n{\"text\": \"of the\"}\n");
    assert_int_equal(run("tokenize encode --tokenizer m --jsonl --json asked.jsonl"), HR_OK);
    assert_string_equal(out, "{\"ids\": [4, 12]}\n{\"ids\": []}\n{\"ids\": [11, 4]}\n");
    put("ids.jsonl", out);
    assert_int_equal(run("tokenize decode --tokenizer m --jsonl ids.jsonl"), HR_OK);
    assert_string_equal(out, "{\"text\": \"the cat\"}\n{\"text\": \"\"}\n{\"text\": \"of the\"}\n");
    assert_int_equal(run("tokenize count --tokenizer m --jsonl asked.jsonl"), HR_OK);
    assert_memory_equal(out, "4 tokens, 13 bytes, 3 texts: ", 28);
    assert_int_equal(run("tokenize inspect m"), HR_OK);
    assert_non_null(strstr(out, "  ids            13, of which 13 have a token\n"
                                "  model          WordLevel"));
    assert_int_equal(system("printf 'the \\377' >asked.txt"), 0);
    assert_int_equal(run("tokenize count --tokenizer m asked.txt"), HR_CORRUPT);
    assert_memory_equal(err, "headroom: asked.txt: byte 4 (0xff) is not UTF-8", 46);
    static const char *const words[] = { "tokenize count --tokenizer words asked.txt",
                                         "eval m --file text.txt --tokenizer words" };
    for (int32_t i = 0; i < 2; i++) {
        assert_int_equal(run("%s", words[i]), HR_USAGE);
        assert_string_equal(err, "headroom: the tokenizer words has no vocabulary of its own; give "
                                 "the folder of a model that was trained with it\n");
    }
}

/* Longer than the window, with words and characters across its end. */
static void a_long_text_has_the_same_words_as_in_the_shard(void **state)
{
    (void)state;
    require_program();
    put_model();
    FILE *file = fopen("asked.txt", "w");
    assert_non_null(file);
    for (int32_t i = 0; i < 300000; i++) fprintf(file, "\xc3\x89T\xc3\x89 the%s", i % 7 ? " " : "");
    assert_int_equal(fclose(file), 0);
    assert_int_equal(run("tokenize count --tokenizer m asked.txt --json"), HR_OK);
    json_t *answer = out_json();
    const int64_t count = json_integer_value(json_object_get(answer, "ids"));
    json_decref(answer);
    int64_t tokens, covered;
    counts("m", &tokens, &covered);
    assert_int_equal(count, tokens);
    assert_true(covered < tokens && covered > tokens / 2);
}

static void the_tokenizer_bytes_has_an_id_per_byte(void **state)
{
    (void)state;
    require_program();
    put("asked.txt", "caf\xc3\xa9 \xf0\x9f\x99\x82\n");
    assert_int_equal(run("tokenize encode --tokenizer bytes asked.txt"), HR_OK);
    assert_string_equal(out, "99 97 102 195 169 32 240 159 153 130 10\n");
    put("ids.txt", out);
    assert_int_equal(run("tokenize decode --tokenizer bytes ids.txt"), HR_OK);
    assert_string_equal(out, "caf\xc3\xa9 \xf0\x9f\x99\x82\n");
    assert_int_equal(run("tokenize count --tokenizer bytes asked.txt"), HR_OK);
    assert_memory_equal(out, "11 tokens, 11 bytes, 1 text: ", 28);
    assert_int_equal(run("tokenize inspect bytes"), HR_OK);
    assert_non_null(strstr(out, "  ids            256, of which 256 have a token\n"));
    put("asked.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"c\"}\n");
    assert_int_equal(run("tokenize encode --tokenizer bytes --jsonl --json asked.jsonl"), HR_OK);
    assert_string_equal(out, "{\"ids\": [97, 98]}\n{\"ids\": [99]}\n");
    assert_int_equal(system("head -c 2500000 /dev/urandom >asked.txt"), 0);
    assert_int_equal(run("tokenize encode --tokenizer bytes asked.txt >ids.txt && "
                         "od -An -v -tu1 -w1 asked.txt | tr -d ' ' >1.txt && "
                         "tr ' ' '\\n' <ids.txt | cmp - 1.txt"),
                     HR_OK);
    assert_int_equal(run("tokenize compare asked.txt bytes ./nowhere"), HR_USAGE);
}

static void the_model_continues_a_text_in_words(void **state)
{
    (void)state;
    require_program();
    put_model();
    assert_int_equal(run("generate m --prompt 'The CAT' --max-tokens 5 --seed 1"), HR_OK);
    assert_true(out[0] == ' ' && out[1] != ' ');
    assert_int_equal(run("generate m --prompt 'the cat' --max-tokens 5 --seed 1 --json"), HR_OK);
    json_t *answer = out_json();
    assert_int_equal(json_integer_value(json_object_get(answer, "prompt_tokens")), 2);
    json_decref(answer);
    put("q.jsonl", "{\"context\": \"the\", \"choices\": [\" cat\", \" the\"], \"answer\": 1}\n");
    assert_int_equal(run("eval m --choices q.jsonl"), HR_OK);
    assert_non_null(strstr(out, "1 question: "));
}

/* A run from the model keeps its vocabulary, whatever the frequent words of its own text are. */
static void a_run_from_the_model_keeps_its_words(void **state)
{
    (void)state;
    require_program();
    put_model();
    put("text.txt",
        "dog cat dog cat of the dog dog end dog cat dog cat of the dog dog end dog dog\n");
    assert_int_equal(run("train recipe.yaml model.from=m --out n"), HR_OK);
    assert_non_null(strstr(out, "train  20 tokens"));
    assert_int_equal(system("cmp m/tokenizer.json n/tokenizer.json"), 0);
    assert_int_equal(run("train recipe.yaml data.tokenizer=m --out o"), HR_OK);
    assert_int_equal(system("cmp m/tokenizer.json o/tokenizer.json"), 0);
}

static void unknown_words_and_characters_are_not_in_the_vocabulary(void **state)
{
    (void)state;
    require_program();
    int64_t tokens, covered;
    put_model();
    put("asked.txt", "the dog and the cat <UNK> the bird of the end the\n");
    counts("words", &tokens, &covered);
    assert_int_equal(tokens, 12);
    assert_int_equal(covered, 9);
    counts("m", &tokens, &covered);
    assert_int_equal(tokens, 12);
    assert_int_equal(covered, 9);
    put("asked.txt", "the \xe2\x98\x83 the end of the cat the\n"); /* id 0 is unknown */
    assert_int_equal(run("tokenize encode --bare --tokenizer " HR_SOURCE
                         "/tests/tokenizer/cases/sp-t5.json asked.txt"),
                     HR_OK);
    int64_t known = 0, all = 0;
    for (const char *at = out; *at; at += strcspn(at, " "), at += *at == ' ')
        all++, known += atoi(at) != 0;
    counts(HR_SOURCE "/tests/tokenizer/cases/sp-t5.json", &tokens, &covered);
    assert_int_equal(tokens, all);
    assert_int_equal(covered, known);
    assert_true(covered < tokens);
}

/* Writes m/tokenizer.json again, indented, with one member changed; null: none. */
static void rewrite(const char *member, const char *value)
{
    json_error_t why;
    json_t *root = json_load_file("m/tokenizer.json", 0, &why);
    assert_non_null(root);
    if (member) {
        json_t *new_value = json_loads(value, JSON_DECODE_ANY, &why);
        assert_non_null(new_value);
        assert_int_equal(json_object_set_new(root, member, new_value), 0);
    }
    assert_int_equal(json_dump_file(root, "m/tokenizer.json", JSON_INDENT(2)), 0);
    json_decref(root);
}

static void the_vocabulary_file_can_be_indented_but_not_changed(void **state)
{
    (void)state;
    require_program();
    static const char *const cases[][3] = {
        { "normalizer", "{\"type\": \"Lowercase\"}", "another normalizer" },
        { "pre_tokenizer", "null", "another pre-tokenizer" },
        { "added_tokens", "[{\"id\": 0, \"content\": \"<PAD>\"}]", "added tokens" },
        { "model",
          "{\"type\": \"WordLevel\", \"vocab\": {\"a\": 0, \"b\": 2}, \"unk_token\": \"a\"}",
          "ids that are not consecutive from 0" },
        { "model", "{\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": \"b\"}",
          "no unknown word in its vocabulary" },
    };
    put_model();
    rewrite(NULL, NULL);
    ids_are("x the of", "4 11 ");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[512];
        assert_int_equal(system("cp m/tokenizer.json kept.json"), 0);
        rewrite(cases[i][0], cases[i][1]);
        assert_int_equal(run("eval m --file text.txt"), HR_CORRUPT);
        snprintf(expected, sizeof expected,
                 "headroom: m/tokenizer.json: is a WordLevel tokenizer with %s; only those that "
                 "data.tokenizer=words writes are supported\n",
                 cases[i][2]);
        assert_string_equal(err, expected);
        assert_int_equal(system("cp kept.json m/tokenizer.json"), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_text_has_the_same_ids_as_in_the_shard),
        IN_A_FOLDER(the_commands_of_tokenize_read_the_vocabulary),
        IN_A_FOLDER(a_long_text_has_the_same_words_as_in_the_shard),
        IN_A_FOLDER(the_tokenizer_bytes_has_an_id_per_byte),
        IN_A_FOLDER(the_model_continues_a_text_in_words),
        IN_A_FOLDER(a_run_from_the_model_keeps_its_words),
        IN_A_FOLDER(unknown_words_and_characters_are_not_in_the_vocabulary),
        IN_A_FOLDER(the_vocabulary_file_can_be_indented_but_not_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
