/* SPDX-License-Identifier: Apache-2.0 */
/* text_test.c - text files to files of ids: counts, reuse, errors, and no partial files. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "config/config.h"
#include "text/text_case.h"
#include "text/word_vocabulary.h"

static void words_get_ids_by_count_and_then_by_first_occurrence(void **state)
{
    (void)state;
    hr_text text;
    write_texts("b a\nC c <unk> a  d b\n", "D c a <unk> e\n");
    /* a, b and c twice each, then <unk> and d once: V = 8 keeps b a c <unk> */
    const text_case desc = describe(HR_TOKENIZER_WORDS, 8, 5);
    const int32_t train[] = { 4, 5, 6, 6, 7, 5, 1, 4 }, valid[] = { 1, 6, 5, 7, 1 };
    assert_prepared(&desc, &text);
    assert_ids(&text.train[0], train, 8);
    assert_ids(&text.valid, valid, 5);
    assert_int_equal(text.train[0].covered, 7);
    assert_int_equal(text.valid.covered, 3);
    assert_int_equal(text.distinct_words, 5);
    assert_int_equal(text.vocabulary_used, 8);
    assert_int_equal(text.train[0].source_bytes, 21);
}

static void few_words_leave_rows_unused(void **state)
{
    (void)state;
    hr_text text;
    write_texts("x y x", "z");
    const text_case desc = describe(HR_TOKENIZER_WORDS, 100000, 2);
    const int32_t train[] = { 4, 5, 4 }, valid[] = { 1 };
    assert_prepared(&desc, &text);
    assert_int_equal(text.vocabulary_used, 6);
    assert_ids(&text.train[0], train, 3);
    assert_ids(&text.valid, valid, 1);
}

static void bytes_are_their_own_ids(void **state)
{
    (void)state;
    hr_text text;
    char content[600];
    int32_t ids[600];
    for (int i = 0; i < 600; i++) {
        content[i] = (char)(i * 7);
        ids[i] = (uint8_t)content[i];
    }
    hr_folder_write(train_path, content, 600);
    hr_folder_write(valid_path, content + 1, 1);
    const text_case desc = describe(HR_TOKENIZER_BYTES, 50304, 0);
    assert_prepared(&desc, &text);
    assert_ids(&text.train[0], ids, 600);
    assert_ids(&text.valid, ids + 1, 1);
    assert_int_equal(text.train[0].covered, 600);
    assert_int_equal(text.vocabulary_used, 256);
    assert_string_equal(text.vocabulary, "");
    const hr_corpus_desc files = corpus_of(&desc);
    assert_true(hr_corpus_bytes(&files) < 512 * 1024);
}

static void a_validation_text_may_be_absent(void **state)
{
    (void)state;
    hr_text text;
    write_texts("x y", "");
    text_case desc = describe(HR_TOKENIZER_WORDS, 10, 2);
    desc.valid = "";
    assert_prepared(&desc, &text);
    assert_string_equal(text.valid.shard, "");
    assert_int_equal(text.valid.tokens, 0);
}

static void unchanged_texts_are_reused_and_changed_ones_are_not(void **state)
{
    (void)state;
    hr_text text;
    write_texts("a b a c", "a c");
    const text_case desc = describe(HR_TOKENIZER_WORDS, 6, 100);
    assert_prepared(&desc, &text);
    assert_false(text.train[0].reused || text.valid.reused);
    assert_int_equal(hr_folder_count(&cache, ""), 3);
    assert_prepared(&desc, &text);
    assert_true(text.train[0].reused && text.valid.reused);
    assert_int_equal(text.train[0].covered, 3);
    assert_int_equal(text.valid.covered, 1);
    write_texts("a b a c", "a b");
    assert_prepared(&desc, &text);
    assert_true(text.train[0].reused);
    assert_false(text.valid.reused);
    assert_int_equal(text.valid.covered, 2);
    write_texts("c c a", "a b");
    assert_prepared(&desc, &text);
    assert_false(text.train[0].reused || text.valid.reused);
    assert_int_equal(text.valid.covered, 1);
    const text_case wider = describe(HR_TOKENIZER_WORDS, 7, 100);
    assert_prepared(&wider, &text);
    assert_false(text.train[0].reused || text.valid.reused);
    const text_case bytes = describe(HR_TOKENIZER_BYTES, 256, 100);
    assert_prepared(&bytes, &text);
    assert_false(text.train[0].reused || text.valid.reused);
}

static void damaged_cache_files_are_created_again(void **state)
{
    (void)state;
    hr_text text;
    write_texts("a b a c", "a c");
    const text_case desc = describe(HR_TOKENIZER_WORDS, 7, 100);
    assert_prepared(&desc, &text);
    const char *const made[] = { text.train[0].shard, text.valid.shard, text.vocabulary };
    for (int i = 0; i < 3; i++) {
        int64_t bytes;
        char *content = hr_folder_read(made[i], &bytes);
        content[4096 + 9] ^= 4;
        hr_folder_write(made[i], content, bytes);
        hr_text again;
        assert_prepared(&desc, &again);
        int64_t bytes_again;
        char *mended = hr_folder_read(made[i], &bytes_again);
        content[4096 + 9] ^= 4;
        assert_int_equal(bytes_again, bytes);
        assert_memory_equal(mended, content, (size_t)bytes);
        free(content);
        free(mended);
    }
}

static void unusable_texts_are_refused(void **state)
{
    (void)state;
    text_case words = describe(HR_TOKENIZER_WORDS, 10, 2);
    const text_case bytes = describe(HR_TOKENIZER_BYTES, 256, 0);
    assert_refused(&words, HR_USAGE, "train.txt: no such file");
    write_texts("", "a");
    assert_refused(&words, HR_CORRUPT,
                   "train.txt: is empty: use data.train=FILE with a file that has text");
    assert_refused(&bytes, HR_CORRUPT,
                   "train.txt: is empty: use data.train=FILE with a file that has text");
    write_texts("a", "");
    assert_refused(&words, HR_CORRUPT,
                   "valid.txt: is empty: use data.valid=FILE with a file that has text");
    write_texts(" \n\t ", "a");
    assert_refused(&words, HR_CORRUPT,
                   "train.txt: has only white space: use data.train=FILE with a file that has "
                   "words");
    write_texts("a b", "\n");
    assert_refused(&words, HR_CORRUPT,
                   "valid.txt: has only white space: use data.valid=FILE with a file that has "
                   "words");
    write_texts("ab \xff", "a");
    assert_refused(&words, HR_CORRUPT, "train.txt: byte 3 (0xff) is not UTF-8");
    write_texts("a b", "a \xe2\x82 b");
    assert_refused(&words, HR_CORRUPT, "valid.txt: byte 2 (0xe2) is not UTF-8");
    words.train = folder.path;
    assert_refused(&words, HR_USAGE, "is a directory; add a slash");
}

static void descriptions_out_of_range_are_refused(void **state)
{
    (void)state;
    hr_text text;
    hr_error err;
    write_texts("a b", "a");
    text_case desc = describe(HR_TOKENIZER_WORDS, 4, 2);
    assert_refused(&desc, HR_USAGE,
                   "model.vocab_size=4: data.tokenizer=words needs 5 to 2147483647");
    desc.vocab_size = INT64_MAX;
    assert_refused(&desc, HR_USAGE, "model.vocab_size=9223372036854775807");
    desc = describe(HR_TOKENIZER_BYTES, 255, 0);
    assert_refused(&desc, HR_USAGE, "model.vocab_size=255: data.tokenizer=bytes needs 256");
    desc = describe(HR_TOKENIZER_WORDS, 5, 0);
    assert_refused(&desc, HR_USAGE, "data.words_max=0: must lie between 1 and 134217728");
    desc.words_max = INT64_MAX;
    assert_refused(&desc, HR_USAGE, "data.words_max=9223372036854775807: must lie");
    desc.words_max = 2;
    assert_int_equal(prepare_in(&desc, 64, NULL, &text, &err), HR_NO_FIT);
    assert_non_null(strstr(err.message, "64 are available"));
}

static void more_words_than_planned_are_refused_with_both_numbers(void **state)
{
    (void)state;
    hr_text text;
    write_texts("a b c d e f g a b c", "a");
    text_case desc = describe(HR_TOKENIZER_WORDS, 10, 3);
    assert_refused(&desc, HR_USAGE,
                   "train.txt: has 7 distinct words of 7 bytes, but data.words_max=3 has room "
                   "for 3 of 48 bytes: use data.words_max=7");
    assert_int_equal(hr_folder_count(&cache, ""), 0);
    desc.words_max = 7;
    assert_prepared(&desc, &text);
    desc.words_max = 6;
    desc.train = valid_path;
    hr_folder_write(valid_path,
                    "1234567890123456789012345678901234567890 "
                    "1234567890123456789012345678901234567890x "
                    "1234567890123456789012345678901234567890xy ",
                    123 + 3);
    assert_refused(&desc, HR_USAGE,
                   "has 3 distinct words of 123 bytes, but data.words_max=6 has room for 6 of "
                   "96 bytes: use data.words_max=8");
    desc.words_max = 8;
    assert_prepared(&desc, &text);
}

/* With any small capacity, all words are counted in the minimum table. */
static void a_text_with_far_more_words_than_planned_is_counted_completely(void **state)
{
    (void)state;
    enum { WORDS = 30000, LONG = 5, LONG_BYTES = 64 * 1024 };
    char *content = malloc(WORDS * 8 + LONG * (LONG_BYTES + 1));
    int64_t used = 0;
    hr_text text;
    for (int32_t i = 0; i < WORDS; i++) used += sprintf(content + used, "w%05x ", i);
    for (int32_t i = 0; i < LONG; i++) {
        memset(content + used, 'a' + i, LONG_BYTES);
        used += LONG_BYTES;
        content[used++] = '\n';
    }
    hr_folder_write(train_path, content, used);
    hr_folder_write(valid_path, "a", 1);
    free(content);
    text_case desc = describe(HR_TOKENIZER_WORDS, 10, 1);
    assert_refused(&desc, HR_USAGE,
                   "train.txt: has 30005 distinct words of 507680 bytes, but data.words_max=1 "
                   "has room for 1 of 16 bytes: use data.words_max=31730");
    desc.words_max = 31729;
    assert_refused(&desc, HR_USAGE, "use data.words_max=31730");
    desc.words_max = 31730;
    assert_prepared(&desc, &text);
    assert_int_equal(text.distinct_words, 30005);
}

typedef struct {
    int asked, stop_at;
} stopper;

static bool stop(void *context, const char *work, int64_t bytes_done, int64_t bytes_total)
{
    stopper *s = context;
    assert_non_null(work);
    assert_in_range(bytes_done, 0, bytes_total);
    return s->asked++ == s->stop_at;
}

static void an_interrupt_leaves_no_partial_files(void **state)
{
    (void)state;
    static char content[600000];
    hr_text text;
    hr_error err;
    hr_status status = HR_INTERRUPTED;
    int phases = 0;
    for (size_t i = 0; i < sizeof content; i++) content[i] = i % 5 == 4 ? ' ' : (char)('a' + i % 3);
    hr_folder_write(train_path, content, sizeof content);
    hr_folder_write(valid_path, content, 300000);
    const text_case desc = describe(HR_TOKENIZER_WORDS, 10, 100);
    for (; status == HR_INTERRUPTED; phases++) {
        stopper s = { 0, phases };
        const hr_text_progress progress = { stop, &s };
        hr_folder_empty(&cache);
        status = prepare_with(&desc, &progress, &text, &err);
        if (status == HR_INTERRUPTED)
            assert_non_null(strstr(err.message, "; what was unfinished is removed"));
    }
    assert_int_equal(status, HR_OK);
    assert_in_range(phases, 15, 40);
    assert_int_equal(hr_folder_count(&cache, ""), 3);
}

static void a_full_disk_leaves_no_partial_files(void **state)
{
    (void)state;
    static char content[600000];
    struct rlimit before;
    hr_text text;
    hr_error err;
    memset(content, 'x', sizeof content);
    hr_folder_write(train_path, content, sizeof content);
    hr_folder_write(valid_path, content, 9);
    const text_case desc = describe(HR_TOKENIZER_BYTES, 256, 0);
    getrlimit(RLIMIT_FSIZE, &before);
    const struct rlimit limit = { 200000, before.rlim_max };
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    const hr_status status = prepare_with(&desc, NULL, &text, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, HR_FAILURE);
    assert_non_null(strstr(err.message, "cannot be written after 200,000 bytes, and was removed"));
    assert_int_equal(hr_folder_count(&cache, ""), 0);
}

static void ids_decode_to_their_text(void **state)
{
    (void)state;
    static const int32_t ids[] = { 4, 5, 1, 7, 0, -1, 6 };
    hr_guard guard;
    hr_vocabulary *vocabulary = NULL;
    hr_text text;
    hr_error err;
    char out[64];
    int64_t used;
    write_texts("the cat the na\xc3\xafve", "a");
    const text_case desc = describe(HR_TOKENIZER_WORDS, 9, 5);
    assert_prepared(&desc, &text);
    void *memory = hr_guard_open(&guard, hr_vocabulary_bytes(HR_TOKENIZER_WORDS, 9));
    assert_int_equal(
        hr_vocabulary_open(&vocabulary, memory, HR_TOKENIZER_WORDS, 10, text.vocabulary, &err),
        HR_CORRUPT);
    assert_int_equal(
        hr_vocabulary_open(&vocabulary, memory, HR_TOKENIZER_WORDS, 9, text.vocabulary, &err),
        HR_OK);
    assert_int_equal(hr_vocabulary_view(vocabulary)->used, 7);
    assert_int_equal(hr_vocabulary_decode(vocabulary, ids, 7, out, 64, &used, &err), HR_OK);
    out[used] = 0;
    assert_string_equal(out, "the cat <unk> <unk> <pad> <unk> na\xc3\xafve");
    assert_int_equal(hr_vocabulary_decode(vocabulary, ids, 7, out, 12, &used, &err), HR_OK);
    assert_int_equal(used, 7);
    hr_vocabulary_close(&vocabulary);
    assert_int_equal(hr_vocabulary_open(&vocabulary, memory, HR_TOKENIZER_BYTES, 9, "", &err),
                     HR_OK);
    static const int32_t raw[] = { 'h', 0xff, 256, '!' };
    assert_int_equal(hr_vocabulary_decode(vocabulary, raw, 4, out, 64, &used, &err), HR_OK);
    assert_int_equal(used, 4);
    assert_memory_equal(out, "h\xff?!", 4);
    hr_vocabulary_close(&vocabulary);
    hr_guard_close(&guard);
}

/* A hash of all ids of a shard. */
static uint64_t digest_of(const hr_text_part *part)
{
    static _Alignas(64) uint8_t memory[1 << 17];
    uint64_t digest = 0;
    int32_t ids[1000];
    hr_shard *shard = NULL;
    hr_error err;
    assert_int_equal(hr_shard_open(&shard, memory, part->shard, &err), HR_OK);
    for (int64_t first = 0; first < part->tokens; first += 1000) {
        const int64_t count = part->tokens - first < 1000 ? part->tokens - first : 1000;
        assert_int_equal(hr_shard_read(shard, first, count, ids, &err), HR_OK);
        for (int64_t i = 0; i < count; i++) digest = digest * 1000003 + (uint64_t)ids[i];
    }
    hr_shard_close(&shard);
    return digest;
}

/* Two parts of WikiText-2; the words of the first are counted. tests/text/wikitext/goldens.py
 * computes the counts and digests with Python's split and Counter. */
static void wikitext_has_its_golden_counts(void **state)
{
    (void)state;
    static const char *const words[] = { "<pad>", "<unk>", "<sos>", "<eos>", "the", "<unk>", ",",
                                         ".",     "of",    "and",   "in",    "to",  "a",     "=" };
    hr_text text;
    text_case desc = describe(HR_TOKENIZER_WORDS, 10000, 1 << 20);
    desc.train = HR_SOURCE "/tests/text/wikitext/test.txt.zst";
    desc.valid = HR_SOURCE "/tests/text/wikitext/valid.txt.zst";
    assert_prepared(&desc, &text);
    assert_int_equal(text.train[0].tokens, 241211);
    assert_int_equal(text.valid.tokens, 213886);
    assert_int_equal(text.distinct_words, 12506);
    assert_int_equal(text.train[0].covered, 238701);
    assert_int_equal(text.valid.covered, 201605);
    assert_int_equal(text.vocabulary_used, 10000);
    assert_int_equal(digest_of(&text.train[0]), UINT64_C(0x3b18bc7d1d628f54));
    assert_int_equal(digest_of(&text.valid), UINT64_C(0xe1b8ff6fb83c7909));
    hr_vocabulary *vocabulary = NULL;
    hr_error err;
    char word[64];
    int64_t used;
    void *memory = malloc((size_t)hr_vocabulary_bytes(HR_TOKENIZER_WORDS, 10000));
    assert_int_equal(
        hr_vocabulary_open(&vocabulary, memory, HR_TOKENIZER_WORDS, 10000, text.vocabulary, &err),
        HR_OK);
    for (int32_t id = 0; id < 14; id++) {
        assert_int_equal(hr_vocabulary_decode(vocabulary, &id, 1, word, 63, &used, &err), HR_OK);
        word[used] = 0;
        assert_string_equal(word, words[id]);
    }
    const int32_t last = 9999;
    assert_int_equal(hr_vocabulary_decode(vocabulary, &last, 1, word, 63, &used, &err), HR_OK);
    word[used] = 0;
    assert_string_equal(word, "evans");
    hr_vocabulary_close(&vocabulary);
    free(memory);
    desc.vocab_size = 5000;
    desc.words_max = 10000;
    assert_refused(&desc, HR_USAGE,
                   "has 12506 distinct words of 87598 bytes, but data.words_max=10000 has room "
                   "for 10000 of 160000 bytes: use data.words_max=12506");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(words_get_ids_by_count_and_then_by_first_occurrence),
        TEST(few_words_leave_rows_unused),
        TEST(bytes_are_their_own_ids),
        TEST(a_validation_text_may_be_absent),
        TEST(unchanged_texts_are_reused_and_changed_ones_are_not),
        TEST(damaged_cache_files_are_created_again),
        TEST(unusable_texts_are_refused),
        TEST(descriptions_out_of_range_are_refused),
        TEST(more_words_than_planned_are_refused_with_both_numbers),
        TEST(a_text_with_far_more_words_than_planned_is_counted_completely),
        TEST(an_interrupt_leaves_no_partial_files),
        TEST(a_full_disk_leaves_no_partial_files),
        TEST(ids_decode_to_their_text),
        TEST(wikitext_has_its_golden_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
