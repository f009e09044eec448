/* SPDX-License-Identifier: Apache-2.0 */
/* cli_tokenize_train_test.c - `headroom tokenize train` in scripts: one exit code per kind of
 * result, and correct figures. */
#include "headroom/status.h"
#include "support/program.h"

static const char text[] = "the cat sat on the mat\nthe dog sat on the cat\nthe mat, the end\n";

static void every_result_has_its_exit_code(void **state)
{
    (void)state;
    require_program();
    static const struct {
        const char *text, *options;
        int code;
        const char *sentence; /* a part of the output */
    } cases[] = {
        { text, "--out made --vocab-size 40", HR_OK, "" },
        { text, "--out made --vocab-size 40 --transition 10", HR_OK, "" },
        { text, "--out made --vocab-size 40 --transition 10 --like-two made/tokenizer.json", HR_OK,
          "" },
        { text, "--out made --vocab-size 40 --special '<s>' --special '</s>'", HR_OK, "" },
        { text, "--out made --pattern cl100k --threads 1", HR_OK, "" },
        { text, "--out made --like made/tokenizer.json", HR_OK, "" },
        { text, "", HR_USAGE, "tokenize train needs --out DIR" },
        { text, "--out ''", HR_USAGE, "tokenize train needs --out DIR" },
        { text, "--out text.txt", HR_USAGE, "text.txt" },
        { text, "--out made nowhere.txt", HR_USAGE, "nowhere.txt: no such file" },
        { text, "--out made --vocab-size 5", HR_USAGE, "vocabulary size 5: " },
        { text, "--out made --vocab-size 1.5", HR_USAGE,
          "--vocab-size 1.5 is not a non-negative integer" },
        { text, "--out made --vocab-size 40 --transition 41", HR_USAGE, "transition 41 is above" },
        { text, "--out made --inherit text.txt", HR_USAGE, "need --transition" },
        { text, "--out made --pattern gpt2 --like made/tokenizer.json", HR_USAGE, "give one" },
        { text,
          "--out made --vocab-size 40 --transition 10 --pattern-two super --like-two text.txt",
          HR_USAGE, "give one" },
        { text, "--out made --like-two made/tokenizer.json", HR_USAGE, "need --transition" },
        { text, "--out made --budget 1MB", HR_NO_FIT, "--budget is 1,000,000 bytes" },
        { text, "--out made --budget 9MB", HR_NO_FIT, "9,000,000 bytes" },
        { "", "--out made", HR_CORRUPT, "text.txt: no text in it" },
        { "a\xff", "--out made", HR_CORRUPT, "text.txt: byte 1 is not UTF-8" },
        { text, "--out made --like text.txt", HR_CORRUPT, "text.txt: byte 0" },
        { text, "--out made --pattern '('", HR_CORRUPT, "pattern \"(\": PCRE2 error" },
        { text, "--out made --transition 2 --inherit text.txt", HR_CORRUPT, "line 1 is not two" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("text.txt", cases[i].text);
        const int code = run("tokenize train text.txt %s", cases[i].options);
        if (code != cases[i].code || !strstr(err, cases[i].sentence))
            fail_msg("case %d: %d, %s", (int)i, code, err);
        if (code == HR_OK) assert_string_equal(err, "");
        else assert_memory_equal(err, "headroom: ", 10);
    }
    assert_int_equal(run("tokenize train"), HR_USAGE);
}

static void a_refused_training_creates_nothing(void **state)
{
    (void)state;
    require_program();
    static const char *const refused[] = { "--vocab-size 5",
                                           "--vocab-size 40 --budget 9MB",
                                           "--vocab-size 40 --transition 10 --budget 9MB",
                                           "--like text.txt",
                                           "--pattern '('",
                                           "nowhere.txt" };
    put("text.txt", text);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_not_equal(run("tokenize train text.txt --out new/made %s", refused[i]), HR_OK);
        if (access("new", F_OK) == 0) fail_msg("%s: the folder was made", refused[i]);
    }
    assert_int_equal(run("tokenize train text.txt --out new/made --vocab-size 40"), HR_OK);
}

static int64_t number(const json_t *answer, const char *name)
{
    const json_t *value = json_object_get(answer, name);
    if (!json_is_integer(value)) fail_msg("no %s in the answer", name);
    return json_integer_value(value);
}

static void the_printed_figures_are_correct(void **state)
{
    (void)state;
    require_program();
    put("text.txt", text);
    assert_int_equal(run("tokenize train text.txt --out told --vocab-size 30 --json"), HR_OK);
    json_t *answer = json_loads(out, 0, NULL);
    assert_non_null(answer);
    assert_int_equal(number(answer, "tokens"), 30);
    assert_int_equal(number(answer, "text_bytes"), (int64_t)strlen(text));
    assert_int_equal(number(answer, "lines"), 3);
    const int64_t planned = number(answer, "process_bytes_planned");
    const int64_t measured = number(answer, "process_bytes_measured");
    assert_true(measured > 0 && measured <= planned);
    json_decref(answer);
    json_error_t error;
    json_t *file = json_load_file("told/tokenizer.json", 0, &error);
    assert_non_null(file);
    const json_t *model = json_object_get(file, "model");
    assert_int_equal(json_object_size(json_object_get(model, "vocab")), 30);
    json_decref(file);
}

/* --like-two reads what --pattern-two writes; another pattern gives another file. */
static void like_two_uses_the_pattern_of_a_file(void **state)
{
    (void)state;
    require_program();
    static char named[PROGRAM_TEXT_BYTES], like[PROGRAM_TEXT_BYTES], other[PROGRAM_TEXT_BYTES];
    static const char options[] = "tokenize train text.txt --vocab-size 60 --transition 12 --out";
    put("text.txt", text);
    assert_int_equal(run("%s named --pattern-two super-paper", options), HR_OK);
    assert_int_equal(run("%s like --like-two named/tokenizer.json", options), HR_OK);
    assert_int_equal(run("%s other --pattern-two gpt2", options), HR_OK);
    get("named/tokenizer.json", named);
    get("like/tokenizer.json", like);
    get("other/tokenizer.json", other);
    assert_string_equal(named, like);
    assert_string_not_equal(named, other);
}

/* The same command resumes after a signal at any time and gives the same files. */
static void an_interrupted_training_resumes(void **state)
{
    (void)state;
    require_program();
    static char whole[PROGRAM_TEXT_BYTES], again[PROGRAM_TEXT_BYTES];
    static const char options[] = "tokenize train text.txt --vocab-size 2000 --out";
    char command[128];
    put_tiny_and_text();
    assert_int_equal(run("%s whole", options), HR_OK);
    snprintf(command, sizeof command, "%s cut", options);
    const int code = run_interrupted(command, "plan   process", false);
    assert_true(code == HR_OK || code == HR_INTERRUPTED || code == 128 + SIGINT);
    assert_int_equal(code == HR_INTERRUPTED, access("cut/training.state", F_OK) == 0);
    assert_int_equal(run("%s", command), HR_OK);
    assert_int_equal(access("cut/training.state", F_OK), -1);
    get("whole/merges.txt", whole);
    get("cut/merges.txt", again);
    assert_string_equal(whole, again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(every_result_has_its_exit_code),
        IN_A_FOLDER(a_refused_training_creates_nothing),
        IN_A_FOLDER(the_printed_figures_are_correct),
        IN_A_FOLDER(like_two_uses_the_pattern_of_a_file),
        IN_A_FOLDER(an_interrupted_training_resumes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
