/* SPDX-License-Identifier: Apache-2.0 */
/* tokens_test.c - texts through a tokenizer file: ids, separators between documents, and unusable
 * files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "config/config.h"
#include "support/small_tokenizer.h"
#include "text/text_case.h"
#include "text/word_vocabulary.h"

static const char *write_tokenizer(const char *added)
{
    static char path[512];
    const char *text = small_tokenizer(added);
    strcpy(path, hr_folder_path(&folder, "tokenizer.json"));
    hr_folder_write(path, text, (int64_t)strlen(text));
    return path;
}

static text_case by_file(int64_t vocab_size, const char *added)
{
    text_case desc = describe(HR_TOKENIZER_FILE, vocab_size, 1);
    desc.file = write_tokenizer(added);
    return desc;
}

static void a_tokenizer_file_gives_its_ids_and_their_texts(void **state)
{
    (void)state;
    hr_text text;
    hr_guard guard;
    hr_vocabulary *vocabulary = NULL;
    hr_error err;
    char out[64];
    int64_t used;
    write_texts("the cat in the hat", "the<|endoftext|> the");
    text_case desc = by_file(300, "<|endoftext|>");
    const int32_t train[] = { 257, ' ', 'c', 'a', 't', ' ', 'i', 'n', 258, ' ', 'h', 'a', 't' };
    const int32_t valid[] = { 257, 259, 258 }, ids[] = { 257, -1, 299, 't', 258, 259 };
    assert_prepared(&desc, &text);
    assert_ids(&text.train[0], train, 13);
    assert_ids(&text.valid, valid, 3);
    assert_int_equal(text.train[0].covered, 13);
    assert_int_equal(text.vocabulary_used, 260);
    assert_false(text.train[0].reused);
    assert_prepared(&desc, &text);
    assert_true(text.train[0].reused && text.valid.reused);

    void *memory = hr_guard_open(&guard, hr_vocabulary_bytes(HR_TOKENIZER_FILE, 300));
    assert_int_equal(
        hr_vocabulary_open(&vocabulary, memory, HR_TOKENIZER_FILE, 300, text.vocabulary, &err),
        HR_OK);
    assert_int_equal(hr_vocabulary_decode(vocabulary, ids, 6, out, 64, &used, &err), HR_OK);
    assert_int_equal(used, 21);
    assert_memory_equal(out, "thet the<|endoftext|>", 21);
    assert_int_equal(hr_vocabulary_decode(vocabulary, ids, 6, out, 20, &used, &err), HR_OK);
    assert_int_equal(used, 8); /* only complete tokens */
    hr_vocabulary_close(&vocabulary);
    hr_guard_close(&guard);

    desc = by_file(300, "cat in"); /* another tokenizer gets other shards */
    const int32_t other[] = { 257, ' ', 259, 258, ' ', 'h', 'a', 't' };
    assert_prepared(&desc, &text);
    assert_false(text.train[0].reused);
    assert_ids(&text.train[0], other, 8);
}

static void the_usual_end_token_separates_documents(void **state)
{
    (void)state;
    hr_text text;
    const char path[] = "lines.jsonl";
    static char lines[512];
    strcpy(lines, hr_folder_path(&folder, path));
    const char documents[] = "{\"text\": \"the\"}\n{\"text\": \" the\"}\n";
    hr_folder_write(lines, documents, (int64_t)strlen(documents));
    text_case desc = by_file(260, "<|endoftext|>");
    desc.train = desc.valid = lines;
    const int32_t ids[] = { 257, 259, 258 }, none[] = { 257, 258 };
    assert_prepared(&desc, &text);
    assert_ids(&text.train[0], ids, 3);
    desc = by_file(260, "[END]");
    desc.train = desc.valid = lines;
    assert_prepared(&desc, &text);
    assert_ids(&text.train[0], none, 2);
}

static void an_unusable_tokenizer_file_is_refused(void **state)
{
    (void)state;
    write_texts("the", "the");
    text_case desc = by_file(259, "<|endoftext|>");
    assert_refused(&desc, HR_USAGE, "use model.vocab_size=260");
    write_texts("the \xff", "the");
    desc.vocab_size = 260;
    assert_refused(&desc, HR_CORRUPT, "not UTF-8");
    write_texts("the", "the");
    hr_folder_write(desc.file, "{\"model\": 3}", 12);
    assert_refused(&desc, HR_CORRUPT, "tokenizer.json");
    desc.file = "/nowhere/tokenizer.json";
    assert_refused(&desc, HR_USAGE, "/nowhere/tokenizer.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tokenizer_file_gives_its_ids_and_their_texts),
        TEST(the_usual_end_token_separates_documents),
        TEST(an_unusable_tokenizer_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
