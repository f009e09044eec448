/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_test.c - encoding a text in parts on several threads equals encoding it on one thread:
 * the same ids in the same order, from a file and from a pipe, and the same first error. */
#include <fcntl.h>

#include "headroom/tokenize.h"
#include "support/program.h"

#define CASES HR_SOURCE "/tests/tokenizer/cases"

enum { IDS_MAX = 1 << 23 };

static const int32_t threads_of[] = { 1, 2, 3, 5 };
enum { COUNTS = sizeof threads_of / sizeof *threads_of };

/* ---- texts */

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)*seed * below) >> 32);
}

static void put_words(FILE *file, int32_t count)
{
    static const char *const some[] = {
        "the",  " plan", " of", " 1234567",     "\n",        "One line",         "<|end|>",
        "\r\n", "  ",    "\t",  " caf\xc3\xa9", "e\xcc\x81", "\xf0\x9f\x99\x82", " \n\nTwo",
    };
    uint32_t seed = 7;
    for (int32_t i = 0; i < count; i++) fputs(some[draw(&seed, sizeof some / sizeof *some)], file);
}

static void put_letters(FILE *file, int32_t count)
{
    uint32_t seed = 11;
    for (int32_t i = 0; i < count; i++) fputc("etaoinshrdlu"[draw(&seed, 12)], file);
}

static void nothing(FILE *file)
{
    (void)file;
}

static void a_word(FILE *file)
{
    fputs("plan", file);
}

static void words(FILE *file)
{
    put_words(file, 200000);
}

/* Every second possible split point is invalid because of the character after it. */
static void blanks(FILE *file)
{
    uint32_t seed = 5;
    for (int32_t i = 0; i < 1200000; i++) fputc("a\n "[draw(&seed, 3)], file);
}

/* Words longer than one read, and longer than the part buffer of a thread. */
static void long_words(FILE *file)
{
    put_words(file, 40000);
    put_letters(file, 200 << 10);
    put_words(file, 40000);
    put_letters(file, 700 << 10);
    put_words(file, 40000);
}

/* Each character has twelve bytes in form C, so there are more ids than bytes. */
static void notes(FILE *file)
{
    for (int32_t i = 0; i < 5000; i++) {
        fputs("so it is\n", file);
        for (int32_t n = 0; n < 40; n++) fputs("\xf0\x9d\x85\xa0", file);
    }
}

/* The same without a split point for the length of a thread's part buffer. */
static void many_notes(FILE *file)
{
    for (int32_t i = 0; i < 4; i++) {
        fputs("so it is\n", file);
        for (int32_t n = 1; n < 120 << 10; n++) fputs(n % 1000 ? "\xf0\x9d\x85\xa0" : "a", file);
    }
}

typedef void text_maker(FILE *file);

static void make_text(const char *name, text_maker *make)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    make(file);
    assert_int_equal(fclose(file), 0);
}

/* Makes standard input a pipe that delivers the text in writes of random length. */
static pid_t pipe_text(const char *name)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static char bytes[70000];
        uint32_t seed = 3;
        const int file = open(name, O_RDONLY);
        close(ends[0]);
        for (ssize_t count; (count = read(file, bytes, 1 + draw(&seed, sizeof bytes))) > 0;)
            for (ssize_t at = 0, put_now; at < count; at += put_now)
                if ((put_now = write(ends[1], bytes + at, (size_t)(count - at))) < 0) _exit(1);
        _exit(0);
    }
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    close(ends[1]);
    return child;
}

/* ---- results */

typedef struct {
    uint32_t *ids; /* [IDS_MAX] */
    int64_t count, done;
    int64_t interrupt_at; /* interrupt after this many ids; 0: never */
    const char *cut;      /* truncate this file to zero after the first part; null: none */
    volatile sig_atomic_t interrupts;
    hr_status status;
    hr_error error;
} output;

static void take_ids(void *context, const uint32_t *ids, int64_t count)
{
    output *to = context;
    assert_true(to->count + count <= IDS_MAX);
    memcpy(to->ids + to->count, ids, (size_t)count * sizeof *ids);
    to->count += count;
    if (to->interrupt_at && to->count >= to->interrupt_at)
        __atomic_store_n(&to->interrupts, 1, __ATOMIC_RELAXED);
}

static void take_progress(void *context, int64_t done, int64_t all)
{
    output *to = context;
    assert_true(done >= to->done && (all < 0 || done <= all));
    to->done = done;
    if (to->cut) assert_int_equal(truncate(to->cut, 0), 0);
}

static void encode(hr_tokenize *tokenize, const char *path, output *to)
{
    const hr_tokenize_request request = { .size = sizeof request,
                                          .ids = take_ids,
                                          .progress = take_progress,
                                          .context = to,
                                          .interrupts = &to->interrupts };
    hr_tokenize_result result;
    to->count = to->done = 0;
    to->interrupts = 0;
    to->status = hr_tokenize_file(tokenize, path, &request, &result, &to->error);
    assert_int_equal(result.ids, to->count);
}

/* Encodes a text in memory; must work after any earlier result. */
static void encode_word(hr_tokenize *tokenize)
{
    const hr_tokenize_request request = { .size = sizeof request, .around = false };
    hr_tokenize_result result;
    hr_error error;
    assert_int_equal(hr_tokenize_text(tokenize, "plan", 4, &request, &result, &error), HR_OK);
    assert_true(result.ids > 0);
}

static hr_tokenize *opened(const char *name, int32_t threads)
{
    char path[512];
    hr_tokenize *tokenize = NULL;
    hr_error error;
    snprintf(path, sizeof path, CASES "/%s.json", name);
    const hr_tokenize_setting setting = { .path = path, .threads = threads };
    if (hr_tokenize_open(&tokenize, &setting, &error) != HR_OK) fail_msg("%s", error.message);
    return tokenize;
}

static output *room(int32_t which)
{
    static output rooms[2];
    output *to = &rooms[which];
    if (!to->ids) to->ids = malloc(IDS_MAX * sizeof *to->ids);
    assert_non_null(to->ids);
    to->interrupt_at = 0;
    to->cut = NULL;
    return to;
}

static void expect_same(const output *to, const output *wanted)
{
    if (to->status != HR_OK) fail_msg("%s", to->error.message);
    assert_int_equal(to->count, wanted->count);
    assert_memory_equal(to->ids, wanted->ids, (size_t)to->count * sizeof *to->ids);
}

static void expect_prefix(const output *to, const output *whole)
{
    assert_true(to->count < whole->count);
    assert_memory_equal(to->ids, whole->ids, (size_t)to->count * sizeof *to->ids);
}

static void ids_do_not_depend_on_the_number_of_threads(void **state)
{
    static const char *const names[] = { "gpt2", "nfc", "super-two", "prefix-nfc" };
    static text_maker *const texts[] = { nothing, a_word,     words,     blanks,
                                         notes,   many_notes, long_words };
    output *wanted = room(0), *to = room(1);
    (void)state;
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        make_text("text", texts[t]);
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            for (int32_t i = 0; i < COUNTS; i++) {
                int status = -1;
                const pid_t child = pipe_text("text");
                hr_tokenize *tokenize = opened(names[n], threads_of[i]);
                encode(tokenize, "text", i ? to : wanted);
                expect_same(i ? to : wanted, wanted);
                encode(tokenize, "-", to);
                expect_same(to, wanted);
                hr_tokenize_close(&tokenize);
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(status, 0);
            }
        }
    }
}

/* There are two errors. A thread finds the second one earlier, because it is nearer to the start of
 * its part. */
static void the_first_error_is_reported_and_no_ids_follow_it(void **state)
{
    enum { FIRST = 700000, SECOND = FIRST + 40000 };
    output *good = room(0), *to = room(1);
    (void)state;
    make_text("good", words);
    make_text("bad", words);
    FILE *file = fopen("bad", "r+");
    assert_non_null(file);
    for (int64_t at = FIRST; at < SECOND + 400000; at += SECOND - FIRST) {
        assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
        fputs("\xff\xff", file);
    }
    assert_int_equal(fclose(file), 0);
    for (int32_t i = 0; i < COUNTS; i++) {
        hr_tokenize *tokenize = opened("gpt2", threads_of[i]);
        for (int32_t again = 0; again < 5; again++) {
            encode(tokenize, "good", good);
            assert_int_equal(good->status, HR_OK);
            encode(tokenize, "bad", to);
            assert_int_equal(to->status, HR_CORRUPT);
            assert_string_equal(to->error.message, "bad: byte 700000: not UTF-8");
            expect_prefix(to, good);
            encode_word(tokenize);
        }
        hr_tokenize_close(&tokenize);
    }
}

static void read_errors_are_reported_in_text_order(void **state)
{
    output *whole = room(0), *to = room(1);
    (void)state;
    for (int32_t i = 0; i < COUNTS; i++) {
        hr_tokenize *tokenize = opened("gpt2", threads_of[i]);
        make_text("text", words);
        encode(tokenize, "text", whole);
        assert_int_equal(whole->status, HR_OK);
        to->cut = "text";
        if (threads_of[i] > 1) { /* a single thread has the whole file in its window */
            encode(tokenize, "text", to);
            assert_int_equal(to->status, HR_CORRUPT);
            assert_true(to->count > 0);
            expect_prefix(to, whole);
        }
        to->cut = NULL;
        const int folder = open(".", O_RDONLY);
        assert_int_equal(dup2(folder, STDIN_FILENO), STDIN_FILENO);
        close(folder);
        encode(tokenize, "-", to);
        assert_int_equal(to->status, HR_FAILURE);
        assert_non_null(strstr(to->error.message, "standard input: Is a directory"));
        assert_int_equal(to->count, 0);
        hr_tokenize_close(&tokenize);
    }
}

static void an_interrupt_stops_encoding(void **state)
{
    output *whole = room(0), *to = room(1);
    (void)state;
    make_text("text", words);
    for (int32_t i = 0; i < COUNTS; i++) {
        hr_tokenize *tokenize = opened("gpt2", threads_of[i]);
        encode(tokenize, "text", whole);
        to->interrupt_at = 1; /* there are more parts than threads, so some are not started */
        encode(tokenize, "text", to);
        assert_int_equal(to->status, HR_INTERRUPTED);
        expect_prefix(to, whole);
        to->interrupt_at = 0;
        encode(tokenize, "text", to);
        expect_same(to, whole);
        hr_tokenize_close(&tokenize);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(ids_do_not_depend_on_the_number_of_threads),
        IN_A_FOLDER(the_first_error_is_reported_and_no_ids_follow_it),
        IN_A_FOLDER(read_errors_are_reported_in_text_order),
        IN_A_FOLDER(an_interrupt_stops_encoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
