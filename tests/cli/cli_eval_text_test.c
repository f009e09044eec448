/* SPDX-License-Identifier: Apache-2.0 */
/* cli_eval_text_test.c - eval --file reads what data.valid reads: kinds of files, compressed ones,
 * patterns, and prompts that are no targets. */
#include <math.h>

#include "headroom/status.h"
#include "support/program.h"

static void put_model(void)
{
    put_tiny_and_text();
    assert_int_equal(run("train tiny.yaml data.train=text.txt model.family=llama --out m"), HR_OK);
}

/* The predicted ids as characters, and their number. */
static int64_t predicted(const char *file, char *letters)
{
    static char lines[PROGRAM_TEXT_BYTES];
    if (run("eval m --file '%s' --context 16 --per-token ids.jsonl --json", file) != HR_OK)
        fail_msg("%s: %s", file, err);
    get("ids.jsonl", lines);
    int64_t count = 0;
    for (const char *at = lines; (at = strstr(at, "\"id\": ")); at++)
        letters[count++] = (char)atoi(at + 6);
    letters[count] = 0;
    json_t *result = out_json();
    assert_int_equal(json_integer_value(json_object_get(result, "tokens")), count);
    const double sum = json_real_value(json_object_get(result, "loss_sum"));
    const double bits = json_real_value(json_object_get(result, "bits_per_byte"));
    assert_true(fabs(bits * (double)count * log(2) - sum) < 1e-6 * sum);
    json_decref(result);
    return count;
}

static void are_predicted(const char *file, const char *wanted)
{
    static char letters[PROGRAM_TEXT_BYTES];
    predicted(file, letters);
    assert_string_equal(letters, wanted);
}

static void the_text_of_every_kind_of_file_is_scored(void **state)
{
    (void)state;
    require_program();
    put_model();
    put("a.txt", "one two three four five six seven");
    put("a.jsonl",
        "{\"text\": \"one two\", \"n\": 1}\n\n{\"text\": \" three four five six seven\"}\n");
    assert_int_equal(system("gzip -k a.txt a.jsonl; printf '\\357\\273\\277' | cat - a.jsonl "
                            ">marked.jsonl; mkdir d; printf 'one ' >d/1.txt; "
                            "printf 'two three four five six seven' >d/2.txt; cp a.txt 'x[1].txt'"),
                     0);
    static const char *const files[] = { "a.txt",      "a.txt.gz",         "a.jsonl",
                                         "a.jsonl.gz", "marked.jsonl",     "d/",
                                         "d/*.txt",    "d/1.txt; d/2.txt", "x[1].txt" };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        are_predicted(files[i], "ne two three four five six seven");
}

static void a_prompt_is_context_and_not_scored(void **state)
{
    (void)state;
    require_program();
    put_model();
    put("p.jsonl",
        "{\"prompt\": \"question?\", \"completion\": \" yes\"}\n"
        "{\"prompt\": \"a longer question than a window has?\", \"completion\": \" no\"}\n"
        "{\"text\": \"end\"}\n");
    are_predicted("p.jsonl", " yes noend");
    put("none.jsonl", "{\"prompt\": \"question?\", \"completion\": \"\"}\n");
    assert_int_equal(run("eval m --file none.jsonl"), HR_CORRUPT);
    assert_string_equal(err, "headroom: none.jsonl: has no target: every token of it is of a "
                             "prompt\n");
}

/* The end-of-text id of the tokenizer separates documents and is a target, as in training. */
static void documents_are_separated_as_in_training(void **state)
{
    (void)state;
    require_program();
    put_tiny_and_text();
    put("r.yaml", "model: {d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32, vocab_size: 300, "
                  "family: llama}\ndata: {tokenizer: words, train: text.txt}\n"
                  "train: {batch: 2, seq_len: 8, steps: 1, threads: 1}\n");
    assert_int_equal(run("train r.yaml --out m"), HR_OK);
    put("a.jsonl", "{\"text\": \"\"}\n{\"text\": \"a a\"}\n{\"text\": \"\"}\n{\"text\": \"a\"}\n"
                   "{\"text\": \"\"}\n");
    assert_int_equal(run("eval m --file a.jsonl --per-token ids.jsonl"), HR_OK);
    get("ids.jsonl", out);
    const char *second = strstr(strstr(out, "\"id\": ") + 1, "\"id\": ");
    assert_int_equal(atoi(second + 6), 3);
    assert_null(strstr(strstr(second + 1, "\"id\": ") + 1, "\"id\": "));
}

static void ids_of_other_programs_need_no_tokenizer(void **state)
{
    (void)state;
    require_program();
    put_model();
    assert_int_equal(system("printf 'a\\000b\\000c\\000d\\000' >ids.bin"), 0);
    assert_int_equal(run("eval m --file 'ids.bin ids=u16'"), HR_OK);
    assert_non_null(strstr(out, "\n3 tokens in 1 window of 3 tokens"));
    assert_int_equal(run("eval m --file ids.bin"), HR_USAGE);
    assert_non_null(strstr(err, "add ids=u16"));
}

static void unreadable_input_is_refused_and_nothing_is_overwritten(void **state)
{
    (void)state;
    require_program();
    put_model();
    put("bad.jsonl", "{\"text\": \"a line\"}\n{\"text\": 7}\n");
    assert_int_equal(run("eval m --file bad.jsonl"), HR_CORRUPT);
    assert_non_null(strstr(err, "bad.jsonl: line 2: "));
    assert_int_equal(run("eval m --file none.txt"), HR_USAGE);
    assert_string_equal(err, "headroom: none.txt: no such file\n");
    assert_int_equal(run("eval m --file '*.none'"), HR_USAGE);
    static const char *const cases[][2] = {
        { "folder", "folder: is a directory; add a slash to use the texts in it" },
        { "folder/", "folder/: has no .txt, .jsonl" },
        { "pipe", "pipe: is a device or pipe, a file is needed" },
        { "/dev/null", "/dev/null: is a device or pipe, a file is needed" },
        { "empty", "empty: an evaluation needs two tokens, the text has 0" },
    };
    assert_int_equal(system("mkdir folder && mkfifo pipe && touch empty"), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_not_equal(run("eval m --file %s", cases[i][0]), HR_OK);
        if (!strstr(err, cases[i][1])) fail_msg("eval --file %s: %s", cases[i][0], err);
        if (i == 1) continue; /* generate takes one file */
        assert_int_not_equal(run("generate m --file %s", cases[i][0]), HR_OK);
        assert_memory_equal(err, "headroom: ", 10);
    }
    assert_int_equal(system("mkdir d; echo '{\"text\": \"some text\"}' >d/a.jsonl"), 0);
    assert_int_equal(run("eval m --file d/ --per-token d/a.jsonl"), HR_USAGE);
    assert_string_equal(
        err, "headroom: d/a.jsonl: exists and is not a file of losses; give another path\n");
    get("d/a.jsonl", out);
    assert_string_equal(out, "{\"text\": \"some text\"}\n");
}

/* What the refusal of a line advises. */
static void keys_of_the_data_section_say_how_a_text_is_read(void **state)
{
    (void)state;
    require_program();
    put_model();
    put("bad.jsonl", "{\"text\": \"a line\"}\n{\"text\": 7}\n{\"text\":\n{\"text\": \" more\"}\n");
    assert_int_equal(run("eval m --file bad.jsonl"), HR_CORRUPT);
    assert_non_null(strstr(err, "skip such lines with data.bad_lines=skip\n"));
    assert_int_equal(run("eval m --file bad.jsonl data.bad_lines=skip --per-token ids.jsonl"),
                     HR_OK);
    assert_non_null(
        strstr(out, "10 tokens in 1 window of 10 tokens, no overlap, 2 bad lines skipped\n"));
    assert_int_equal(run("eval m data.bad_lines=skip --file bad.jsonl --json"), HR_OK);
    json_t *answer = out_json();
    assert_int_equal(json_integer_value(json_object_get(answer, "bad_lines")), 2);
    json_decref(answer);
    put("named.jsonl", "{\"content\": \"a line\"}\n");
    assert_int_equal(run("eval m --file named.jsonl"), HR_CORRUPT);
    assert_non_null(strstr(err, "set data.text_field=content"));
    assert_int_equal(run("eval m --file named.jsonl data.text_field=content"), HR_OK);
    assert_non_null(strstr(out, "5 tokens in 1 window of 5 tokens, no overlap\n"));
    static const char *const refused[][2] = {
        { "--file named.jsonl train.batch=3",
          "\"train.batch=3\": the keys of eval are data.text_field, data.prompt_field, "
          "data.completion_field and data.bad_lines" },
        { "--file named.jsonl extra", "\"extra\": the keys of eval are data.text_field" },
        { "--file named.jsonl data.bad_lines=maybe", "data.bad_lines" },
        { "--choices named.jsonl data.bad_lines=skip",
          "data.bad_lines=skip: keys of a recipe need --file" },
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(run("eval m %s", refused[i][0]), HR_USAGE);
        if (!strstr(err, refused[i][1])) fail_msg("%s: %s", refused[i][0], err);
    }
}

/* ulimit -f stands for a full disk. */
static void a_temporary_file_that_cannot_be_written_is_named_with_its_folder(void **state)
{
    (void)state;
    require_program();
    static const char rest[] = "a temporary file for token ids is needed there, 4 bytes per token: "
                               "set TMPDIR to another directory\n";
    char sentence[512];
    put_model();
    assert_int_equal(system("mkdir d full; for i in 1 2 3; do cat text.txt; done >d/a.txt"), 0);
    assert_int_equal(WEXITSTATUS(system("ulimit -f 4; TMPDIR=full \"$HEADROOM\" eval m --file d/ "
                                        "2>err.txt >out.txt")),
                     HR_FAILURE);
    get("err.txt", err);
    snprintf(sentence, sizeof sentence, "headroom: full: File too large; %s", rest);
    assert_string_equal(err, sentence);
    assert_int_equal(WEXITSTATUS(system("TMPDIR=none \"$HEADROOM\" eval m --file d/ 2>err.txt")),
                     HR_FAILURE);
    get("err.txt", err);
    snprintf(sentence, sizeof sentence, "headroom: none: No such file or directory; %s", rest);
    assert_string_equal(err, sentence);
}

/* What has been read of a line that turns out to be bad is taken back. */
static void a_bad_line_that_is_skipped_leaves_nothing(void **state)
{
    enum { LONG = 9 << 20 }; /* more than is held of a line */
    (void)state;
    require_program();
    put_model();
    FILE *file = fopen("bad.jsonl", "w");
    fputs("{\"text\": \"one\"}\n{\"text\": \"", file);
    for (int i = 0; i < LONG; i++) fputc('a' + i % 26, file);
    fputs("\\ud800\"}\n{\"text\": \"two\"}\n", file);
    assert_int_equal(fclose(file), 0);
    put("good.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
    assert_int_equal(run("eval m --file good.jsonl --per-token good.ids"), HR_OK);
    assert_int_equal(run("eval m --file bad.jsonl data.bad_lines=skip --per-token bad.ids"), HR_OK);
    assert_non_null(strstr(out, "1 bad line"));
    assert_int_equal(system("diff good.ids bad.ids"), 0);
}

static void a_named_corpus_is_found(void **state)
{
    (void)state;
    require_program();
    put_model();
    assert_int_equal(run("eval m --file wikitext-2"), HR_USAGE);
    assert_int_equal(system("mkdir -p data/wikitext-2 && printf 'a corpus' "
                            ">data/wikitext-2/valid.txt"),
                     0);
    are_predicted("wikitext-2", " corpus");
}

/* A model whose losses are too large for exp. */
static void what_is_no_number_is_null(void **state)
{
    (void)state;
    require_program();
    put_model();
    assert_int_equal(
        run("train tiny.yaml data.train=text.txt model.family=llama train.steps=1 "
            "train.optimizer.lr=1000 train.optimizer.kind=sgd train.optimizer.clip=none "
            "--out wild"),
        HR_OK);
    assert_int_equal(run("eval wild --file text.txt --json"), HR_OK);
    json_t *result = out_json();
    assert_true(json_real_value(json_object_get(result, "loss")) > 710);
    assert_true(json_is_null(json_object_get(result, "perplexity")));
    json_decref(result);
}

/* tests/tokenizer/cases/qwen.json puts "!", id 0, before a text and "?", id 30, behind it. */
static void what_a_tokenizer_puts_behind_a_text_is_not_scored(void **state)
{
    static char lines[PROGRAM_TEXT_BYTES];
    (void)state;
    require_program();
    put_tiny_and_text();
    assert_int_equal(
        run("train tiny.yaml data.train=text.txt model.vocab_size=600 data.tokenizer=" HR_SOURCE
            "/tests/tokenizer/cases/qwen.json --out m"),
        HR_OK);
    put("q.jsonl", "{\"context\": \"x\", \"choices\": [\"y\", \"zz\"], \"answer\": 0}\n");
    put("y.txt", "xy");
    assert_int_equal(run("eval m --choices q.jsonl --per-token ids.jsonl"), HR_OK);
    get("ids.jsonl", lines);
    assert_non_null(strstr(lines, "\"id\": "));
    assert_null(strstr(lines, "\"id\": 30,"));
    assert_int_equal(run("eval m --file y.txt --per-token ids.jsonl"), HR_OK);
    get("ids.jsonl", lines);
    assert_null(strstr(lines, "\"id\": 30,"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(the_text_of_every_kind_of_file_is_scored),
        IN_A_FOLDER(a_prompt_is_context_and_not_scored),
        IN_A_FOLDER(documents_are_separated_as_in_training),
        IN_A_FOLDER(ids_of_other_programs_need_no_tokenizer),
        IN_A_FOLDER(unreadable_input_is_refused_and_nothing_is_overwritten),
        IN_A_FOLDER(keys_of_the_data_section_say_how_a_text_is_read),
        IN_A_FOLDER(a_bad_line_that_is_skipped_leaves_nothing),
        IN_A_FOLDER(a_named_corpus_is_found),
        IN_A_FOLDER(what_is_no_number_is_null),
        IN_A_FOLDER(a_temporary_file_that_cannot_be_written_is_named_with_its_folder),
        IN_A_FOLDER(what_a_tokenizer_puts_behind_a_text_is_not_scored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
