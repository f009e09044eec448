/* SPDX-License-Identifier: Apache-2.0 */
/* text_case.h - two plain files in a temporary folder, and the result of preparing them. */
#ifndef HR_TESTS_TEXT_CASE_H
#define HR_TESTS_TEXT_CASE_H

#include "config/config.h"
#include "corpus/corpus.h"
#include "guard.h"
#include "support/folder.h"
#include "text/shard.h"
#include "text/text.h"

static hr_folder folder, cache;
static char train_path[512], valid_path[512];

static inline int set_up(void **state)
{
    (void)state;
    folder = hr_folder_open();
    cache = hr_folder_open();
    strcpy(train_path, hr_folder_path(&folder, "train.txt"));
    strcpy(valid_path, hr_folder_path(&folder, "valid.txt"));
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    hr_folder_close(&folder);
    hr_folder_close(&cache);
    return 0;
}

/* Two plain files, and the settings to prepare them with. */
typedef struct {
    const char *train, *valid, *cache;
    hr_tokenizer_kind tokenizer;
    int64_t vocab_size, words_max;
    const char *file; /* of a tokenizer */
} text_case;

static inline text_case describe(hr_tokenizer_kind kind, int64_t vocab_size, int64_t words_max)
{
    return (text_case){ train_path, valid_path, cache.path, kind, vocab_size, words_max };
}

static inline void write_texts(const char *train, const char *valid)
{
    hr_folder_write(train_path, train, (int64_t)strlen(train));
    hr_folder_write(valid_path, valid, (int64_t)strlen(valid));
}

static inline hr_corpus_desc corpus_of(const text_case *desc)
{
    return (hr_corpus_desc){ .train = desc->train,
                             .valid = desc->valid,
                             .text_field = "text",
                             .prompt_field = "prompt",
                             .completion_field = "completion",
                             .vocab_size = desc->vocab_size,
                             .document_end = -1 };
}

/* Prepares in exactly the planned memory, or in less, before a guard page. */
static inline hr_status prepare_in(const text_case *desc, int64_t most,
                                   const hr_text_progress *progress, hr_text *text, hr_error *err)
{
    hr_guard listing, guard;
    hr_corpus *corpus = NULL;
    const hr_corpus_desc files = corpus_of(desc);
    const int64_t listing_bytes = hr_corpus_bytes(&files);
    void *listed = hr_guard_open(&listing, listing_bytes);
    hr_status status = hr_corpus_open(&corpus, listed, listing_bytes, &files, err);
    if (status == HR_OK) {
        const hr_corpus_view *view = hr_corpus_texts(corpus);
        const hr_text_desc whole = { .train = &view->train[0].documents,
                                     .train_count = view->train_count,
                                     .valid = view->has_valid ? &view->valid.documents : NULL,
                                     .cache = desc->cache,
                                     .tokenizer = desc->tokenizer,
                                     .file = desc->file,
                                     .vocab_size = desc->vocab_size,
                                     .words_max = desc->words_max,
                                     .document_end = hr_text_document_end(desc->tokenizer) };
        int64_t bytes = hr_text_prepare_bytes(&whole);
        if (bytes > most) bytes = most;
        void *memory = hr_guard_open(&guard, bytes);
        status = hr_text_prepare(&whole, memory, bytes, progress, text, err);
        hr_guard_close(&guard);
    }
    hr_corpus_close(&corpus);
    hr_guard_close(&listing);
    assert_int_equal(hr_folder_count(&cache, ".partial"), 0);
    return status;
}

static inline hr_status prepare_with(const text_case *desc, const hr_text_progress *progress,
                                     hr_text *text, hr_error *err)
{
    return prepare_in(desc, INT64_MAX, progress, text, err);
}

static inline void assert_prepared(const text_case *desc, hr_text *text)
{
    hr_error err = { HR_OK, "" };
    const hr_status status = prepare_with(desc, NULL, text, &err);
    if (status != HR_OK) fail_msg("%s", err.message);
}

static inline void assert_refused(const text_case *desc, hr_status status, const char *sentence)
{
    hr_text text = { .distinct_words = -3 };
    hr_error err = { HR_OK, "" };
    assert_int_equal(prepare_with(desc, NULL, &text, &err), status);
    if (!strstr(err.message, sentence)) fail_msg("\"%s\" lacks \"%s\"", err.message, sentence);
    assert_int_equal(text.distinct_words, -3);
}

/* Asserts all ids of a shard. */
static inline void assert_ids(const hr_text_part *part, const int32_t *expected, int64_t count)
{
    static _Alignas(64) uint8_t memory[1 << 17];
    static int32_t ids[1000];
    hr_shard *shard = NULL;
    hr_error err;
    assert_int_equal(part->tokens, count);
    assert_int_equal(hr_shard_open(&shard, memory, part->shard, &err), HR_OK);
    assert_int_equal(hr_shard_view(shard)->tokens, count);
    assert_int_equal(hr_shard_read(shard, 0, count, ids, &err), HR_OK);
    assert_memory_equal(ids, expected, (size_t)count * sizeof *ids);
    hr_shard_close(&shard);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
