/* SPDX-License-Identifier: Apache-2.0 */
/* cli_tokenize_test.c - `headroom tokenize` in scripts: round trips, identical for any number of
 * threads, and an exit code and an error for invalid input. */
#include "headroom/status.h"
#include "support/program.h"

#define CASES HR_SOURCE "/tests/tokenizer/cases"

static void json_lines_equal_the_reference_encodings(void **state)
{
    static const char *const names[] = { "gpt2", "nfc", "paper-two", "ranks" };
    (void)state;
    require_program();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        char *line = NULL;
        size_t room = 0;
        snprintf(path, sizeof path, CASES "/%s.jsonl", names[i]);
        assert_int_equal(
            run("tokenize encode --tokenizer " CASES "/%s.json --jsonl %s --json", names[i], path),
            HR_OK);
        FILE *cases = fopen(path, "r");
        assert_non_null(cases);
        const char *at = out;
        for (; getline(&line, &room, cases) > 0; at = strchr(at, '\n') + 1) {
            json_t *wanted = json_loads(line, JSON_ALLOW_NUL, NULL);
            json_t *got = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
            assert_true(json_equal(json_object_get(wanted, "ids"), json_object_get(got, "ids")));
            json_decref(wanted);
            json_decref(got);
        }
        assert_int_equal(*at, 0);
        free(line);
        fclose(cases);
    }
}

static void ids_decode_to_their_text(void **state)
{
    (void)state;
    require_program();
    static const char text[] = "The plan of 1234567 bytes, caf\xc3\xa9 \xf0\x9f\x99\x82\n";
    put("text.txt", text);
    assert_int_equal(run("tokenize encode --tokenizer " CASES "/paper-two.json text.txt"), HR_OK);
    put("ids.txt", out);
    assert_int_equal(run("tokenize decode --tokenizer " CASES "/paper-two.json ids.txt"), HR_OK);
    assert_string_equal(out, text);
    assert_int_equal(run("tokenize decode --tokenizer " CASES "/paper-two.json < ids.txt"), HR_OK);
    assert_string_equal(out, text);
    put("ids.jsonl", "{\"ids\": [1, 2, 3]}\n{\"ids\": []}\n");
    assert_int_equal(run("tokenize decode --tokenizer " CASES "/gpt2.json --jsonl ids.jsonl"),
                     HR_OK);
    assert_non_null(strstr(out, "\"}\n{\"text\": \"\"}\n"));
}

static void only_a_file_or_standard_input_is_read(void **state)
{
    static const char *const words[] = { "encode", "encode --jsonl", "count", "decode",
                                         "decode --jsonl" };
    static const char *const cases[][2] = {
        { "none", "headroom: none: no such file\n" },
        { "d", "headroom: d: is a directory, a file is needed" },
        { "pipe", "headroom: pipe: is a device or pipe, a file is needed" },
        { "/dev/null", "headroom: /dev/null: is a device or pipe, a file is needed" },
    };
    (void)state;
    require_program();
    assert_int_equal(system("mkdir d && mkfifo pipe"), 0);
    put("empty", "");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            const int code = run("tokenize %s --tokenizer " CASES "/gpt2.json %s", words[i],
                                 cases[c][0]);
            if (code != HR_USAGE || strncmp(err, cases[c][1], strlen(cases[c][1])))
                fail_msg("%s %s: %d, %s", words[i], cases[c][0], code, err);
        }
        assert_int_equal(run("tokenize %s --tokenizer " CASES "/gpt2.json empty", words[i]), HR_OK);
    }
}

/* Windows editors write one. */
static void a_byte_order_mark_before_json_lines_is_skipped(void **state)
{
    static char marked[PROGRAM_TEXT_BYTES];
    (void)state;
    require_program();
    put("a.jsonl", "\xef\xbb\xbf{\"text\": \"one two\"}\n{\"text\": \"three\"}\n");
    put("blank.jsonl", "\xef\xbb\xbf\n{\"text\": \"one two\"}\n{\"text\": \"three\"}\n");
    put("plain.jsonl", "{\"text\": \"one two\"}\n{\"text\": \"three\"}\n");
    static const char *const files[] = { "a.jsonl", "blank.jsonl", "plain.jsonl" };
    for (int32_t i = 0; i < 3; i++) {
        assert_int_equal(
            run("tokenize encode --json --jsonl --tokenizer " CASES "/gpt2.json %s", files[i]),
            HR_OK);
        if (i) assert_string_equal(out, marked);
        snprintf(marked, sizeof marked, "%s", out);
    }
    put("ids.txt", marked);
    assert_int_equal(system("printf '\\357\\273\\277' | cat - ids.txt >ids.jsonl"), 0);
    assert_int_equal(run("tokenize decode --jsonl --tokenizer " CASES "/gpt2.json ids.jsonl"),
                     HR_OK);
    assert_string_equal(out, "{\"text\": \"one two\"}\n{\"text\": \"three\"}\n");
}

/* Long enough for several windows and parts, with lines, numbers and added tokens. */
static void ids_do_not_depend_on_threads(void **state)
{
    static const char *const names[] = { "gpt2", "nfc", "paper-two", "super-two", "merged" };
    static char one[PROGRAM_TEXT_BYTES];
    (void)state;
    require_program();
    FILE *file = fopen("text.txt", "w");
    for (int32_t i = 0; i < 200000; i++)
        fprintf(file, "%s the plan of %d bytes%s", i % 7 ? " so" : "<|end|>", i * 977 % 100003,
                i % 5 ? "," : ".\nOne more line");
    fclose(file);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (int32_t threads = 1; threads <= 3; threads++) {
            assert_int_equal(run("tokenize encode --threads %d --tokenizer " CASES
                                 "/%s.json text.txt > "
                                 "ids%d.txt && cksum < ids%d.txt",
                                 threads, names[i], threads, threads),
                             HR_OK);
            if (threads == 1) snprintf(one, sizeof one, "%s", out);
            assert_string_equal(out, one);
        }
    }
}

/* The first piece, which gets a space, is as long as the text, which is a part of one thread. */
static void a_first_piece_can_be_long(void **state)
{
    (void)state;
    require_program();
    assert_int_equal(system("head -c 20000 /dev/zero | tr '\\0' '\\n' >text.txt"), 0);
    for (int32_t threads = 1; threads <= 2; threads++) {
        assert_int_equal(run("tokenize count --threads %d --json --tokenizer " CASES
                             "/prefix.json text.txt",
                             threads),
                         HR_OK);
        assert_non_null(strstr(out, "\"ids\": 20000,"));
    }
}

/* Longer than the window and the initial buffer for a piece, as text and as a line. */
static void pieces_and_lines_can_be_long(void **state)
{
    static const char *const names[] = { "gpt2", "prefix-nfc", "prefix-whole", "super-two" };
    static char plain[PROGRAM_TEXT_BYTES];
    (void)state;
    require_program();
    FILE *text = fopen("text.txt", "w"), *line = fopen("line.jsonl", "w");
    fprintf(line, "{\"text\": \"");
    uint32_t seed = 1;
    for (int32_t i = 0; i < 3 << 20; i++) {
        seed = seed * 1664525 + 1013904223;
        /* No blank for 2.6 million letters in the middle. */
        const bool blank = i % 9 == 8 && (i < 1 << 18 || i > 11 << 18);
        const char c = blank ? ' ' : "etaoinshrdlu"[(seed >> 16) % 12];
        fputc(c, text);
        fputc(c, line);
    }
    fprintf(line, "\"}\n{\"text\": \"the last line\"}\n");
    fclose(text);
    fclose(line);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (int32_t threads = 1; threads <= 2; threads++) {
            assert_int_equal(run("tokenize encode --threads %d --tokenizer " CASES
                                 "/%s.json text.txt > ids.txt && cksum < ids.txt",
                                 threads, names[i]),
                             HR_OK);
            if (threads == 1) snprintf(plain, sizeof plain, "%s", out);
            assert_string_equal(out, plain);
        }
        assert_int_equal(run("tokenize decode --tokenizer " CASES "/%s.json ids.txt > back.txt && "
                             "sed 's/^ //' back.txt | cmp - text.txt",
                             names[i]),
                         HR_OK);
        assert_int_equal(run("tokenize encode --jsonl --tokenizer " CASES
                             "/%s.json line.jsonl > two.txt && head -n 1 two.txt | cksum",
                             names[i]),
                         HR_OK);
        assert_string_equal(out, plain);
    }
    assert_int_equal(run("tokenize encode --tokenizer " CASES "/unorderly.json text.txt"),
                     HR_CORRUPT);
    assert_non_null(strstr(err, "the limit is 262144"));
}

static void every_result_has_its_exit_code(void **state)
{
    static const struct {
        const char *words;
        int code;
        const char *sentence;
    } cases[] = {
        { "encode text.txt", HR_USAGE, "tokenize encode needs --tokenizer" },
        { "encode --tokenizer nowhere text.txt", HR_USAGE, "nowhere" },
        { "encode --tokenizer . text.txt", HR_USAGE, "no tokenizer found" },
        { "encode --tokenizer " CASES "/gpt2.json nowhere.txt", HR_USAGE, "nowhere.txt" },
        { "encode --tokenizer text.txt text.txt", HR_CORRUPT, "text.txt: invalid JSON at byte 0" },
        { "encode --tokenizer " CASES "/gpt2.json wrong.txt", HR_CORRUPT,
          "wrong.txt: byte 1: not UTF-8" },
        { "count --tokenizer " CASES "/gpt2.json --jsonl lines.jsonl", HR_CORRUPT,
          "lines.jsonl: line 2: \"text\" is missing" },
        { "encode --tokenizer " CASES "/ranks.tiktoken text.txt", HR_USAGE,
          "give it with --pattern" },
        { "encode --tokenizer " CASES "/gpt2.json --pattern qwen text.txt", HR_USAGE,
          "has its own pattern" },
        { "decode --tokenizer " CASES "/gpt2.json wrong.txt", HR_CORRUPT,
          "wrong.txt: byte 0: expected a token id" },
        { "decode --tokenizer " CASES "/gpt2.json - <wrong.txt", HR_CORRUPT,
          "standard input: byte 0: expected a token id" },
        { "decode --tokenizer " CASES "/gpt2.json --jsonl lines.jsonl", HR_CORRUPT,
          "lines.jsonl: line 1: \"ids\" is missing" },
        { "count --tokenizer " CASES "/gpt2.json text.txt", HR_OK, "" },
        { "count --tokenizer " CASES "/ranks.tiktoken --pattern gpt2 --json text.txt", HR_OK, "" },
        { "inspect " CASES "/pcre.json", HR_OK, "" },
        { "inspect --json " CASES "/qwen.json", HR_OK, "" },
        { "compare text.txt " CASES "/gpt2.json " CASES "/nfc.json", HR_OK, "" },
    };
    (void)state;
    require_program();
    put("text.txt", "a text\n");
    put("wrong.txt", "a\xff");
    put("lines.jsonl", "{\"text\": \"a\"}\n{\"txt\": 1}\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int code = run("tokenize %s", cases[i].words);
        if (code != cases[i].code || !strstr(err, cases[i].sentence))
            fail_msg("%s: %d, %s", cases[i].words, code, err);
    }
    assert_int_equal(run("tokenize inspect " CASES "/pcre.json"), HR_OK);
    assert_non_null(strstr(out, "pcre2: no built-in scanner for this pattern"));
    assert_int_equal(run("tokenize encode --bare --tokenizer " CASES "/qwen.json text.txt"), HR_OK);
    const size_t bare = strlen(out);
    assert_int_equal(run("tokenize encode --tokenizer " CASES "/qwen.json text.txt"), HR_OK);
    assert_true(strlen(out) > bare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(json_lines_equal_the_reference_encodings),
        IN_A_FOLDER(ids_decode_to_their_text),
        IN_A_FOLDER(only_a_file_or_standard_input_is_read),
        IN_A_FOLDER(a_byte_order_mark_before_json_lines_is_skipped),
        IN_A_FOLDER(ids_do_not_depend_on_threads),
        IN_A_FOLDER(a_first_piece_can_be_long),
        IN_A_FOLDER(pieces_and_lines_can_be_long),
        IN_A_FOLDER(every_result_has_its_exit_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
