/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_train_test.c - complete trainings: the files, interrupts and resuming, budgets, and
 * errors. tests/tokenizer/train/small has a text and the files that the reference trainer writes
 * for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "headroom/tokenize_train.h"

static char folder[] = "/tmp/headroom-train-XXXXXX";
static char text_path[128], other_path[128], even_path[128];

/* Static, because a training plans the heap. */
enum { FILE_MOST = 4 << 20 };
static char contents[2][FILE_MOST];

static char *read_file(int which, const char *directory, const char *name, long *bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    *bytes = (long)fread(contents[which], 1, FILE_MOST, file);
    fclose(file);
    return contents[which];
}

static void write_file(const char *path, const void *text, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    fclose(file);
}

static void expect_same_file(const char *a, const char *b, const char *name)
{
    long a_bytes, b_bytes;
    char *one = read_file(0, a, name, &a_bytes), *two = read_file(1, b, name, &b_bytes);
    assert_int_equal(a_bytes, b_bytes);
    assert_memory_equal(one, two, (size_t)a_bytes);
}

static void expect_same(const char *a, const char *b)
{
    expect_same_file(a, b, "tokenizer.json");
    expect_same_file(a, b, "vocab.json");
    expect_same_file(a, b, "merges.txt");
}

static const char *out_named(const char *name)
{
    static char path[8][160];
    static int turn;
    char *out = path[turn++ % 8];
    snprintf(out, 160, "%s/%s", folder, name);
    return out;
}

/* Records the progress of a training, and when to interrupt it. */
typedef struct {
    volatile sig_atomic_t interrupts;
    int64_t reports, interrupt_at; /* -1: never */
    const char *work;              /* count only progress of this work; null: any */
    hr_tokenize_train_plan plans[8];
    int32_t plan_count;
} listener;

static void planned(void *context, const hr_tokenize_train_plan *plan)
{
    listener *l = context;
    assert_true(l->plan_count < 8);
    l->plans[l->plan_count++] = *plan;
}

static void report(void *context, const char *work, int64_t done, int64_t all)
{
    listener *l = context;
    assert_true(done >= 0 && done <= all);
    if (l->work && strcmp(work, l->work) != 0) return;
    if (l->reports++ == l->interrupt_at) l->interrupts = 1;
}

static hr_tokenize_train_request request_for(const char *const *files, listener *l, const char *out)
{
    hr_tokenize_train_request request;
    *l = (listener){ .interrupt_at = -1 };
    hr_tokenize_train_default(&request);
    request.files = files;
    request.file_count = 1;
    request.out = out;
    request.threads = 2;
    request.interrupts = &l->interrupts;
    request.planned = planned;
    request.progress = report;
    request.context = l;
    return request;
}

static hr_status train(const hr_tokenize_train_request *request, hr_tokenize_train_result *result,
                       hr_error *err)
{
    *err = (hr_error){ HR_OK, "" };
    const hr_status status = hr_tokenize_train(request, result, err);
    if (status != HR_OK) assert_int_equal(err->status, status);
    return status;
}

static void train_well(const hr_tokenize_train_request *request)
{
    hr_tokenize_train_result result;
    hr_error err;
    const hr_status status = train(request, &result, &err);
    if (status != HR_OK) print_error("%s\n", err.message);
    assert_int_equal(status, HR_OK);
}

static void files_equal_those_of_the_reference(void **state)
{
    (void)state;
    static const char *const files[] = { HR_SOURCE "/tests/tokenizer/train/small/text.txt" };
    static const char *const special[] = { "<|end|>", "the", "the" };
    listener l;
    hr_tokenize_train_request request = request_for(files, &l, out_named("small"));
    request.vocab_size = 120;
    request.min_frequency = 2;
    request.special_tokens = special;
    request.special_count = 2;
    train_well(&request);
    expect_same(HR_SOURCE "/tests/tokenizer/train/small", request.out);
    /* The sections around the model come from that file; a duplicate special token counts once. */
    request.special_count = 3;
    request.out = out_named("small-again");
    train_well(&request);
    expect_same(HR_SOURCE "/tests/tokenizer/train/small", request.out);
}

static hr_tokenize_train_request superwords(const char *const *files, listener *l, const char *out)
{
    hr_tokenize_train_request request = request_for(files, l, out);
    request.vocab_size = 700;
    request.transition = files[0] == even_path ? 50 : 250;
    return request;
}

static void files_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    const char *const files[] = { text_path };
    const char *first = out_named("threads-1");
    for (int threads = 1; threads <= 5; threads++) {
        char name[32];
        listener l;
        snprintf(name, sizeof name, "threads-%d", threads);
        hr_tokenize_train_request request = superwords(files, &l, out_named(name));
        request.threads = threads;
        train_well(&request);
        assert_int_equal(l.plan_count, 2);
        expect_same(first, request.out);
    }
}

/* Trains with and without cutting. slots: symbols of both; stages: how often stage 2 ran. */
static void expect_cutting_changes_no_file(const char *text, int64_t vocab_size, int threads,
                                           int64_t slots[2], int32_t *stages)
{
    const char *const files[] = { text };
    for (int cut = 0; cut < 2; cut++) {
        listener l;
        hr_tokenize_train_request request = superwords(files, &l,
                                                       out_named(cut ? "rare-cut" : "rare"));
        request.vocab_size = vocab_size;
        request.threads = threads;
        request.cut_from = cut ? 1 : INT64_MAX;
        train_well(&request);
        slots[cut] = l.plans[1].slots;
        *stages = l.plan_count - 1;
        assert_true(cut || *stages == 1);
    }
    expect_same(out_named("rare"), out_named("rare-cut"));
}

static void cutting_rare_text_changes_no_file(void **state)
{
    (void)state;
    int64_t slots[2];
    int32_t stages;
    for (int threads = 1; threads <= 3; threads++) {
        expect_cutting_changes_no_file(text_path, 300, threads, slots, &stages);
        assert_true(slots[1] < slots[0] / 2);
        expect_cutting_changes_no_file(text_path, 4000, threads, slots, &stages);
        assert_int_equal(slots[1], slots[0]);
    }
}

/* All words of this text are adjacent equally often, so each merge makes the others rarer. */
static void stage_2_is_repeated_when_merges_reach_the_cut(void **state)
{
    (void)state;
    int64_t slots[2];
    int32_t stages;
    for (int threads = 1; threads <= 3; threads++) {
        expect_cutting_changes_no_file(even_path, 84, threads, slots, &stages);
        assert_true(slots[1] < slots[0]);
        assert_true(stages > 1);
    }
}

static void expect_resumed_equals_uninterrupted(const char *text, int64_t vocab_size,
                                                int64_t cut_from, int32_t resumed_least)
{
    const char *const files[] = { text };
    listener l;
    hr_tokenize_train_request request = superwords(files, &l, out_named("whole"));
    request.vocab_size = vocab_size;
    request.cut_from = cut_from;
    train_well(&request);
    const int64_t all = l.reports;
    int32_t saved = 0, resumed = 0;
    for (int64_t at = 0; at < all; at += 1 + all / 23) {
        char name[32];
        hr_tokenize_train_result result;
        hr_error err;
        snprintf(name, sizeof name, "cut-%lld", (long long)at);
        request = superwords(files, &l, out_named(name));
        request.vocab_size = vocab_size;
        request.cut_from = cut_from;
        l.interrupt_at = at;
        assert_int_equal(train(&request, &result, &err), HR_INTERRUPTED);
        saved += result.saved;
        const char *out = request.out;
        if (result.saved) { /* also where stage 1, which had it, is complete */
            request = superwords(files, &l, out);
            request.vocab_size = vocab_size;
            request.cut_from = cut_from;
            request.pattern = "[a-e]+|[^a-e]+";
            assert_int_equal(train(&request, &result, &err), HR_USAGE);
            assert_non_null(strstr(err.message, "with other settings; remove it"));
        }
        request = superwords(files, &l, out);
        request.vocab_size = vocab_size;
        request.cut_from = cut_from;
        train_well(&request);
        for (int32_t i = 0; i < l.plan_count; i++) resumed += l.plans[i].resumed;
        expect_same(out_named("whole"), out);
        char path[200];
        snprintf(path, sizeof path, "%s/training.state", out);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    assert_true(saved > 10 && resumed >= resumed_least);
}

static void a_resumed_training_writes_the_same_files(void **state)
{
    (void)state;
    expect_resumed_equals_uninterrupted(even_path, 84, 1, 2);
    expect_resumed_equals_uninterrupted(text_path, 700, INT64_MAX, 6);
}

/* Interrupts many times, each a little later. */
static void a_training_can_be_interrupted_many_times(void **state)
{
    (void)state;
    const char *const files[] = { text_path };
    hr_status status = HR_INTERRUPTED;
    int32_t times = 0;
    listener l;
    for (; status == HR_INTERRUPTED && times < 200; times++) {
        hr_tokenize_train_result result;
        hr_error err;
        hr_tokenize_train_request request = superwords(files, &l, out_named("often"));
        l.work = "merging";
        l.interrupt_at = 1;
        status = train(&request, &result, &err);
        if (status == HR_INTERRUPTED) {
            assert_true(result.saved);
            assert_non_null(strstr(err.message, "the state is saved, the same command resumes"));
        }
    }
    assert_int_equal(status, HR_OK);
    assert_true(times > 10);
    expect_same(out_named("whole"), out_named("often"));
}

static void interrupt_while_merging(const char *out)
{
    const char *const files[] = { text_path };
    hr_tokenize_train_result result;
    hr_error err;
    listener l;
    hr_tokenize_train_request request = request_for(files, &l, out);
    request.vocab_size = 500;
    l.work = "merging";
    l.interrupt_at = 3;
    assert_int_equal(train(&request, &result, &err), HR_INTERRUPTED);
    assert_true(result.saved);
}

static void the_state_of_another_training_is_refused(void **state)
{
    (void)state;
    const char *const files[] = { text_path }, *const others[] = { other_path };
    const char *out = out_named("else");
    char expected[300], path[200];
    hr_tokenize_train_result result;
    hr_error err;
    listener l;
    interrupt_while_merging(out);
    hr_tokenize_train_request request = request_for(files, &l, out);
    request.vocab_size = 501;
    assert_int_equal(train(&request, &result, &err), HR_USAGE);
    snprintf(expected, sizeof expected,
             "%s/training.state belongs to a training with other settings; remove it to "
             "start over",
             out);
    assert_string_equal(err.message, expected);
    request.vocab_size = 500;
    request.files = others;
    assert_int_equal(train(&request, &result, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "with other text; remove it"));

    long bytes;
    char *saved = read_file(0, out, "training.state", &bytes);
    snprintf(path, sizeof path, "%s/training.state", out);
    for (long at = 3; at < bytes; at += bytes / 7) {
        saved[at] ^= 16;
        write_file(path, saved, (size_t)bytes);
        saved[at] ^= 16;
        request = request_for(files, &l, out);
        request.vocab_size = 500;
        const hr_status status = train(&request, &result, &err);
        assert_true(status == HR_CORRUPT || status == HR_USAGE || status == HR_NO_FIT);
    }
    l.plan_count = 0;
    write_file(path, saved, (size_t)bytes / 2);
    assert_int_equal(train(&request, &result, &err), HR_CORRUPT);
    assert_non_null(strstr(err.message, "damaged or of another version; remove it"));
    l.plan_count = 0;
    write_file(path, saved, (size_t)bytes);
    train_well(&request);
}

static void the_process_stays_within_the_plan_and_a_smaller_budget_is_refused(void **state)
{
    (void)state;
    const char *const files[] = { text_path };
    for (int stage = 1; stage <= 2; stage++) {
        hr_tokenize_train_result result;
        hr_error err;
        listener l;
        hr_tokenize_train_request request = superwords(files, &l, out_named("budget"));
        if (stage == 1) request.transition = 0;
        assert_int_equal(train(&request, &result, &err), HR_OK);
        int64_t most = 0;
        for (int32_t i = 0; i < l.plan_count; i++)
            most = l.plans[i].process_bytes_planned > most ? l.plans[i].process_bytes_planned
                                                           : most;
        request.budget = most;
        l.plan_count = 0;
        assert_int_equal(train(&request, &result, &err), HR_OK);
        request.budget = most - 1;
        l.plan_count = 0;
        assert_int_equal(train(&request, &result, &err), HR_NO_FIT);
        assert_non_null(strstr(err.message, "use a larger --budget or less text"));
        request.budget = 1 << 20;
        assert_int_equal(train(&request, &result, &err), HR_NO_FIT);
        assert_non_null(strstr(err.message, "needs at least"));
    }
    unlink(out_named("budget/training.state"));
}

static void less_room_for_pairs_changes_no_file(void **state)
{
    (void)state;
    /* A larger vocabulary plans more room; the merges that both have are equal. */
    const char *const files[] = { text_path };
    long few_bytes, many_bytes;
    listener l;
    hr_tokenize_train_request request = request_for(files, &l, out_named("few"));
    request.vocab_size = 300;
    train_well(&request);
    request = request_for(files, &l, out_named("many"));
    request.vocab_size = 600;
    train_well(&request);
    char *few = read_file(0, out_named("few"), "merges.txt", &few_bytes);
    char *many = read_file(1, out_named("many"), "merges.txt", &many_bytes);
    assert_true(few_bytes < many_bytes);
    assert_memory_equal(few, many, (size_t)few_bytes);
}

typedef struct {
    const char *text;
    size_t bytes;
    hr_status status;
    const char *said; /* the message after the path */
} invalid_text;

static void invalid_texts_are_refused(void **state)
{
    (void)state;
    static const invalid_text wrong[] = {
        { "", 0, HR_CORRUPT, ": no text in it" },
        { "abc\xff\n", 5, HR_CORRUPT, ": byte 3 is not UTF-8" },
        { "ab\xe2\x82", 4, HR_CORRUPT, ": byte 2 is not UTF-8" },
        { "\xed\xa0\x80", 3, HR_CORRUPT, ": byte 0 is not UTF-8" },
        { "\xc0\xaf", 2, HR_CORRUPT, ": byte 0 is not UTF-8" },
    };
    char path[160];
    snprintf(path, sizeof path, "%s/wrong.txt", folder);
    const char *const files[] = { path };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char expected[256];
        hr_tokenize_train_result result;
        hr_error err;
        listener l;
        write_file(path, wrong[i].text, wrong[i].bytes);
        const hr_tokenize_train_request request = request_for(files, &l, out_named("wrong"));
        assert_int_equal(train(&request, &result, &err), wrong[i].status);
        snprintf(expected, sizeof expected, "%s%s", path, wrong[i].said);
        assert_string_equal(err.message, expected);
    }
}

static void expect_refused(const hr_tokenize_train_request *request, hr_status status,
                           const char *said)
{
    hr_tokenize_train_result result;
    hr_error err;
    assert_int_equal(train(request, &result, &err), status);
    if (!strstr(err.message, said)) print_error("%s\n", err.message);
    assert_non_null(strstr(err.message, said));
}

static void invalid_settings_are_refused(void **state)
{
    (void)state;
    const char *const files[] = { text_path }, *const none[] = { "/no/such/file" };
    static const char *const empty[] = { "" };
    listener l;
    const hr_tokenize_train_request fine = request_for(files, &l, out_named("refused"));
    hr_tokenize_train_request r = fine;
    r.file_count = 0;
    expect_refused(&r, HR_USAGE, "no text: give at least one file");
    r = fine;
    r.files = none;
    expect_refused(&r, HR_USAGE, "/no/such/file: no such file");
    r = fine;
    r.vocab_size = 10;
    expect_refused(&r, HR_USAGE, "vocabulary size 10: 12 characters and 0 special tokens need 12");
    r = fine;
    r.vocab_size = 0;
    expect_refused(&r, HR_USAGE, "vocabulary size 0 is not from 1 to");
    r = fine;
    r.vocab_size = 100;
    r.transition = 101;
    expect_refused(&r, HR_USAGE, "transition 101 is above the vocabulary size 100");
    r = fine;
    r.transition = 50;
    r.limit_alphabet = 5;
    expect_refused(&r, HR_USAGE,
                   "--limit-alphabet and --transition exclude each other: stage 2 has the "
                   "alphabet of the text");
    r = fine;
    r.inherit = text_path;
    expect_refused(&r, HR_USAGE, "--inherit and --pattern-two need --transition");
    r = fine;
    r.transition = 5;
    r.inherit = text_path;
    expect_refused(&r, HR_CORRUPT, "is not two tokens separated by a space");
    r = fine;
    r.special_tokens = empty;
    r.special_count = 1;
    expect_refused(&r, HR_USAGE, "a special token is empty");
    r = fine;
    r.pattern = "(";
    expect_refused(&r, HR_CORRUPT, "pattern \"(");
    r = fine;
    r.like = text_path;
    expect_refused(&r, HR_CORRUPT, "byte 0");
    r = fine;
    r.pattern = "gpt2";
    r.like = text_path;
    expect_refused(&r, HR_USAGE, "give one");
    r = fine;
    r.initial_alphabet = "a\xff";
    expect_refused(&r, HR_USAGE, "initial alphabet: byte 1 is not UTF-8");
}

static void unsupported_pipelines_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *json, *said;
    } wrong[] = {
        { "{\"pre_tokenizer\":null}", "has no pre_tokenizer" },
        { "{\"pre_tokenizer\":{\"type\":\"Whitespace\"}}",
          "pre_tokenizer: Whitespace is not supported" },
        { "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[]}}", "has no ByteLevel" },
        { "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"odd\":1}}", "odd is not supported" },
        { "{\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}",
          "has a normalizer" },
        { "{\"added_tokens\":[{}],\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}",
          "has added tokens" },
        { "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":"
          "\"Odd\"}}",
          "unknown behavior Odd of Split" },
        { "[]", "not a tokenizer.json" },
    };
    const char *const files[] = { text_path };
    char path[160];
    snprintf(path, sizeof path, "%s/like.json", folder);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        listener l;
        hr_tokenize_train_request request = request_for(files, &l, out_named("refused"));
        write_file(path, wrong[i].json, strlen(wrong[i].json));
        request.like = path;
        expect_refused(&request, HR_CORRUPT, wrong[i].said);
    }
}

/* A line longer than a read, and words across its ends. */
static void long_lines_and_files_without_a_final_newline_are_read(void **state)
{
    (void)state;
    char path[160];
    snprintf(path, sizeof path, "%s/long.txt", folder);
    const size_t bytes = 3 << 20;
    char *text = contents[0];
    for (size_t i = 0; i < bytes; i++) text[i] = "abcdefg h"[i * 7 % 9];
    write_file(path, text, bytes);
    const char *const files[] = { path };
    for (int threads = 1; threads <= 3; threads++) {
        char name[32];
        listener l;
        snprintf(name, sizeof name, "long-%d", threads);
        hr_tokenize_train_request request = request_for(files, &l, out_named(name));
        request.vocab_size = 30;
        request.threads = threads;
        train_well(&request);
        assert_int_equal(l.plans[0].lines, 1);
        expect_same(out_named("long-1"), request.out);
    }
}

static void make_texts(void)
{
    uint64_t seed = 7;
    char *text = contents[0];
    size_t bytes = 0;
    while (bytes < 300000) {
        static const char *const ends[] = { " ", " ", " ", " ", ", ", ": ", "\n" };
        seed = hr_random_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
        uint64_t word = seed >> 40 & (seed >> 20 & 1 ? 15 : 255); /* some are frequent */
        for (int i = 0; i < 6 && (i < 2 || word); i++, word >>= 2)
            text[bytes++] = "abcdefgh"[word & 7];
        const char *end = ends[(seed & 0xffff) % 7];
        memcpy(text + bytes, end, strlen(end));
        bytes += strlen(end);
    }
    snprintf(text_path, sizeof text_path, "%s/text.txt", folder);
    snprintf(other_path, sizeof other_path, "%s/other.txt", folder);
    write_file(text_path, text, bytes);
    text[1000] = 'z';
    write_file(other_path, text, bytes);
    for (bytes = 0; bytes < 150000;) {
        seed = hr_random_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
        text[bytes++] = "abcd"[seed >> 30 & 3];
        text[bytes++] = "abcd"[seed >> 40 & 3];
        text[bytes++] = (seed >> 50) % 64 ? ' ' : '\n';
    }
    snprintf(even_path, sizeof even_path, "%s/even.txt", folder);
    write_file(even_path, text, bytes);
}

int main(void)
{
    if (!mkdtemp(folder)) return 1;
    make_texts();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_equal_those_of_the_reference),
        cmocka_unit_test(files_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(cutting_rare_text_changes_no_file),
        cmocka_unit_test(stage_2_is_repeated_when_merges_reach_the_cut),
        cmocka_unit_test(a_resumed_training_writes_the_same_files),
        cmocka_unit_test(a_training_can_be_interrupted_many_times),
        cmocka_unit_test(the_state_of_another_training_is_refused),
        cmocka_unit_test(the_process_stays_within_the_plan_and_a_smaller_budget_is_refused),
        cmocka_unit_test(less_room_for_pairs_changes_no_file),
        cmocka_unit_test(invalid_texts_are_refused),
        cmocka_unit_test(invalid_settings_are_refused),
        cmocka_unit_test(unsupported_pipelines_are_refused_by_name),
        cmocka_unit_test(long_lines_and_files_without_a_final_newline_are_read),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 || failed;
}
