/* SPDX-License-Identifier: Apache-2.0 */
/* prepared_test.c - corpora as shards: separators, masks, held-out and skipped documents, mixtures,
 * and reuse. */
#include "corpus_case.h"

#include "config/config.h"
#include "text/shard.h"
#include "text/text.h"

static hr_folder folder, cache;
static hr_text text;
static _Alignas(64) uint8_t shard_memory[1 << 17];

static int set_up(void **state)
{
    (void)state;
    folder = hr_folder_open();
    cache = hr_folder_open();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hr_folder_close(&folder);
    hr_folder_close(&cache);
    return 0;
}

static void put(const char *name, const char *content)
{
    hr_folder_write(hr_folder_path(&folder, name), content, (int64_t)strlen(content));
}

/* A recipe's text and tokenizer. */
typedef struct {
    const char *train, *valid; /* @ stands for the folder */
    hr_tokenizer_kind tokenizer;
    int64_t vocab_size, document_end;
    bool skip;
} recipe;

static void spell(const char *from, char *to)
{
    for (*to = 0; *from; from++) {
        if (*from == '@') sprintf(to + strlen(to), "%s/", folder.path);
        else strncat(to, from, 1);
    }
}

static hr_status prepare(const recipe *r, hr_error *err)
{
    char train[2048], valid[2048];
    hr_corpus_case opened;
    hr_guard guard;
    spell(r->train, train);
    spell(r->valid, valid);
    hr_corpus_desc desc = hr_corpus_case_desc(train, valid);
    desc.skip_bad_lines = r->skip;
    desc.vocab_size = r->vocab_size;
    hr_status status = hr_corpus_case_open(&opened, &desc, err);
    if (status == HR_OK) {
        const hr_corpus_view *view = hr_corpus_texts(opened.corpus);
        hr_documents parts[HR_SPEC_PARTS_MAX];
        for (int32_t i = 0; i < view->train_count; i++) parts[i] = view->train[i].documents;
        const hr_text_desc whole = { .train = parts,
                                     .train_count = view->train_count,
                                     .valid = view->has_valid ? &view->valid.documents : NULL,
                                     .cache = cache.path,
                                     .tokenizer = r->tokenizer,
                                     .vocab_size = r->vocab_size,
                                     .words_max = 1000,
                                     .document_end = r->document_end };
        const int64_t bytes = hr_text_prepare_bytes(&whole);
        status = hr_text_prepare(&whole, hr_guard_open(&guard, bytes), bytes, NULL, &text, err);
        hr_guard_close(&guard);
    }
    hr_corpus_case_close(&opened);
    assert_int_equal(hr_folder_count(&cache, ".partial"), 0);
    return status;
}

static void assert_prepared(const recipe *r)
{
    hr_error err = { HR_OK, "" };
    if (prepare(r, &err) != HR_OK) fail_msg("%s", err.message);
}

/* Compares a shard as text: byte ids as characters, others as #n; | before each document but the
 * first, ~ before each masked token. */
static void assert_shard(const hr_text_part *part, const char *wanted)
{
    static int32_t ids[4096];
    static uint8_t marks[4096];
    static char rendered[16384];
    hr_shard *shard = NULL;
    hr_error err = { HR_OK, "" };
    int64_t used = 0;
    if (hr_shard_open(&shard, shard_memory, part->shard, &err) != HR_OK)
        fail_msg("%s", err.message);
    const hr_shard_info *info = hr_shard_view(shard);
    assert_true(info->tokens <= 4096);
    assert_int_equal(hr_shard_read(shard, 0, info->tokens, ids, &err), HR_OK);
    assert_int_equal(hr_shard_marks(shard, 0, info->tokens, marks, &err), HR_OK);
    assert_int_equal(hr_shard_check(shard, NULL, &err), HR_OK);
    for (int64_t i = 0; i < info->tokens; i++) {
        if (i && marks[i] & HR_TOKEN_BEGINS) rendered[used++] = '|';
        if (marks[i] & HR_TOKEN_MASKED) rendered[used++] = '~';
        if (ids[i] >= ' ' && ids[i] < 127) rendered[used++] = (char)ids[i];
        else used += sprintf(rendered + used, "#%d", ids[i]);
    }
    rendered[used] = 0;
    hr_shard_close(&shard);
    assert_string_equal(rendered, wanted);
}

static const char LINES[] = "{\"text\":\"ab\"}\n{\"prompt\":\"cd\",\"completion\":\"e\"}\n"
                            "{\"text\":\"\"}\n{\"text\":\"f\"}\n";

static void the_separator_of_the_recipe_is_between_documents(void **state)
{
    (void)state;
    put("a.jsonl", LINES);
    recipe r = { "@a.jsonl", "", HR_TOKENIZER_BYTES, 300, -1, false };
    assert_prepared(&r);
    assert_shard(&text.train[0], "ab|~c~de|f");
    assert_int_equal(text.train[0].documents, 3);
    assert_int_equal(text.train[0].longest, 3);
    assert_int_equal(text.train[0].masked, 2);
    r.document_end = 10;
    assert_prepared(&r);
    assert_false(text.train[0].reused);
    assert_shard(&text.train[0], "ab#10|~c~de#10|f");
    r.document_end = 299; /* an id that is not a byte */
    assert_prepared(&r);
    assert_shard(&text.train[0], "ab#299|~c~de#299|f");
    assert_int_equal(text.train[0].covered, text.train[0].tokens);
    assert_prepared(&r);
    assert_true(text.train[0].reused);
    hr_error err;
    r.document_end = 300;
    hr_corpus_case_assert_refused(
        prepare(&r, &err), &err, HR_USAGE,
        "data.document_end=300: must be an id below model.vocab_size=300");
}

/* A shard has masks only if tokens are masked, however late the first one comes. */
static void a_shard_has_masks_only_if_tokens_are_masked(void **state)
{
    (void)state;
    static char content[400000];
    int64_t used = 0, bytes[2];
    for (int i = 0; i < 5000; i++) used += sprintf(content + used, "{\"text\":\"%020d\"}\n", i);
    put("a.jsonl", content);
    recipe r = { "@a.jsonl", "", HR_TOKENIZER_BYTES, 256, -1, false };
    assert_prepared(&r);
    free(hr_folder_read(text.train[0].shard, &bytes[0]));
    assert_int_equal(text.train[0].masked, 0);
    strcpy(content + used, "{\"prompt\":\"a\",\"completion\":\"b\"}\n");
    put("a.jsonl", content);
    assert_prepared(&r);
    free(hr_folder_read(text.train[0].shard, &bytes[1]));
    assert_int_equal(text.train[0].masked, 1);
    assert_int_equal(text.train[0].tokens, 100002);
    assert_int_equal(text.train[0].covered, 100002);
    assert_in_range(bytes[1] - bytes[0], 100000 / 8 - 4096, 100000 / 8 + 4096);
}

static void words_do_not_cross_documents_or_prompts(void **state)
{
    (void)state;
    put("a.jsonl", "{\"text\":\"one two\"}\n{\"prompt\":\"t\",\"completion\":\"wo one\"}\n");
    put("b.txt", "two wo");
    recipe r = {
        "@a.jsonl", "@b.txt", HR_TOKENIZER_WORDS, 9, hr_text_document_end(HR_TOKENIZER_WORDS), false
    };
    /* one twice, then two, t and wo by first occurrence: 4 5 6 7 */
    assert_prepared(&r);
    assert_shard(&text.train[0], "#4#5#3|~#6#7#4");
    assert_shard(&text.valid, "#5#7");
    assert_int_equal(text.distinct_words, 4);
}

static void skipped_lines_are_counted_and_give_no_token(void **state)
{
    (void)state;
    put("a.jsonl", "{\"text\":\"ab\"}\n{\"text\":\"cd\nno\n{\"text\":\"e\"}\n");
    recipe r = { "@a.jsonl", "", HR_TOKENIZER_BYTES, 256, 0, true };
    assert_prepared(&r);
    assert_shard(&text.train[0], "ab#0|e");
    assert_int_equal(text.train[0].bad_lines, 2);
    assert_prepared(&r);
    assert_true(text.train[0].reused);
    assert_int_equal(text.train[0].bad_lines, 2);
    hr_error err;
    r.skip = false;
    hr_corpus_case_assert_refused(prepare(&r, &err), &err, HR_CORRUPT,
                                  "a.jsonl: line 2: byte 11: ");
}

static void held_out_documents_are_not_trained_on(void **state)
{
    (void)state;
    static char content[1 << 15];
    int64_t used = 0;
    for (int i = 0; i < 300; i++) used += sprintf(content + used, "{\"text\":\"d%03d\"}\n", i);
    put("a.jsonl", content);
    recipe r = { "@a.jsonl", "20%", HR_TOKENIZER_BYTES, 256, -1, false };
    assert_prepared(&r);
    assert_int_equal(text.train[0].documents + text.valid.documents, 300);
    assert_int_equal(text.train[0].tokens, 4 * text.train[0].documents);
    assert_in_range(text.valid.documents, 30, 90);
    assert_prepared(&r);
    assert_true(text.train[0].reused && text.valid.reused);
    hr_error err;
    put("b.jsonl", "{\"text\":\"alone\"}");
    r.train = "@b.jsonl";
    hr_corpus_case_assert_refused(prepare(&r, &err), &err, HR_CORRUPT,
                                  ": the share leaves it no text");
}

static void a_mixture_has_a_shard_for_each_part(void **state)
{
    (void)state;
    put("a.txt", "first");
    put("b.jsonl", LINES);
    recipe r = {
        "@a.txt weight=3; @b.jsonl weight=1", "@a.txt", HR_TOKENIZER_BYTES, 256, -1, false
    };
    assert_prepared(&r);
    assert_int_equal(text.train_count, 2);
    assert_shard(&text.train[0], "first");
    assert_shard(&text.train[1], "ab|~c~de|f");
    assert_true(text.valid.reused); /* the same file */
    assert_string_equal(text.valid.shard, text.train[0].shard);
}

static void ids_of_other_programs_are_kept_unchanged(void **state)
{
    (void)state;
    static const uint16_t ids[] = { 300, 5, 0, 7, 49999, 0, 65 };
    hr_folder_write(hr_folder_path(&folder, "a.bin"), ids, sizeof ids);
    recipe r = { "@a.bin ids=u16", "", HR_TOKENIZER_BYTES, 50000, -1, false };
    assert_prepared(&r);
    assert_shard(&text.train[0], "#300#5#0#7#49999#0A");
    assert_int_equal(text.train[0].documents, 1);
    assert_non_null(strstr(text.train[0].shard, "/ids-50000-"));
    hr_error err;
    r.vocab_size = 400;
    hr_corpus_case_assert_refused(prepare(&r, &err), &err, HR_CORRUPT, "token 4 is 49999");
}

static void a_corpus_without_text_is_refused(void **state)
{
    (void)state;
    hr_error err;
    put("a.txt", "");
    put("b.txt", "");
    put("c.jsonl", "\n\n{\"text\":\"\"}\n");
    recipe r = { "@*.txt", "", HR_TOKENIZER_BYTES, 256, -1, false };
    hr_corpus_case_assert_refused(prepare(&r, &err), &err, HR_CORRUPT,
                                  "is empty: use data.train=FILE with a file that has text");
    r.train = "@*.jsonl";
    hr_corpus_case_assert_refused(prepare(&r, &err), &err, HR_CORRUPT,
                                  ": has no document with text");
    assert_int_equal(hr_folder_count(&cache, ".partial"), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_separator_of_the_recipe_is_between_documents),
        TEST(a_shard_has_masks_only_if_tokens_are_masked),
        TEST(words_do_not_cross_documents_or_prompts),
        TEST(skipped_lines_are_counted_and_give_no_token),
        TEST(held_out_documents_are_not_trained_on),
        TEST(a_mixture_has_a_shard_for_each_part),
        TEST(ids_of_other_programs_are_kept_unchanged),
        TEST(a_corpus_without_text_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
