/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_test.c - the reference's encodings of difficult texts, in windows of any length; and
 * the errors of refused files. tools/tokenizer-cases wrote the cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "support/zst.h"
#include "tokenizer/cases.h"

static subject s;
static expected e;

static void expect_case(const char *name, const char *ending, const char *pattern)
{
    char path[4096];
    int64_t bytes, number = 0;
    hr_error err;
    snprintf(path, sizeof path, "%s/tests/tokenizer/cases/%s.%s", HR_SOURCE, name, ending);
    if (open_subject(&s, path, pattern, &err) != HR_OK) fail_msg("%s", err.message);
    assert_true(s.tokenizer->bpe.orderly == (strcmp(name, "unorderly") != 0));
    snprintf(path, sizeof path, "%s/tests/tokenizer/cases/%s.jsonl", HR_SOURCE, name);
    char *text = read_all(path, &bytes);
    assert_non_null(text);
    for (char *at = text, *stop; (stop = strchr(at, '\n')); at = stop + 1, number++) {
        assert_true(read_expected(at, stop - at, &e));
        expect_line(&s, &e, name, number);
    }
    assert_true(number > 200);
    free(text);
    close_subject(&s);
}

static void small_tokenizers_encode_and_decode_like_the_reference(void **state)
{
    static const char *const names[] = { "blank",     "classes",    "contiguous", "digits",
                                         "few-bytes", "gpt2",       "known",      "merged",
                                         "nfc",       "o200k",      "paper-one",  "paper-two",
                                         "pcre",      "prefix",     "prefix-nfc", "prefix-whole",
                                         "qwen",      "ranks",      "super-one",  "super-two",
                                         "unorderly", "whole-first" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) expect_case(names[i], "json", NULL);
}

static void a_tiktoken_file_encodes_like_its_tokenizer_json(void **state)
{
    hr_error err;
    char path[4096];
    (void)state;
    expect_case("ranks", "tiktoken", "gpt2");
    snprintf(path, sizeof path, "%s/tests/tokenizer/cases/ranks.tiktoken", HR_SOURCE);
    assert_int_equal(open_subject(&s, path, NULL, &err), HR_USAGE);
    assert_non_null(strstr(err.message, "give it with --pattern: gpt2, cl100k, o200k or qwen"));
    assert_int_equal(open_subject(&s, path, "gpt5", &err), HR_USAGE);
}

#define GOLDEN HR_SOURCE "/tests/tokenizer/golden/"

/* Writes a published tokenizer to the folder as tokenizer.json. */
static const char *put_published(const hr_folder *folder, const char *name)
{
    char path[512];
    int64_t bytes = 0;
    snprintf(path, sizeof path, GOLDEN "%s.json.zst", name);
    char *text = zst_read(path, &bytes);
    const char *put = hr_folder_path(folder, "tokenizer.json");
    hr_folder_write(put, text, bytes);
    free(text);
    return put;
}

/* Writes vocab.json and merges.txt like Hugging Face's BPE.save. */
static void put_pair(const hr_folder *folder, const char *tokenizer)
{
    json_t *whole = json_load_file(tokenizer, 0, NULL), *merge;
    const json_t *model = json_object_get(whole, "model");
    size_t i;
    assert_int_equal(json_dump_file(json_object_get(model, "vocab"),
                                    hr_folder_path(folder, "vocab.json"), JSON_COMPACT),
                     0);
    FILE *merges = fopen(hr_folder_path(folder, "merges.txt"), "w");
    assert_non_null(merges);
    fputs("#version: 0.2\n", merges);
    json_array_foreach(json_object_get(model, "merges"), i, merge)
        fprintf(merges, "%s %s\n", json_string_value(json_array_get(merge, 0)),
                json_string_value(json_array_get(merge, 1)));
    assert_int_equal(fclose(merges), 0);
    json_decref(whole);
}

static void vocab_json_with_merges_txt_loads_like_its_tokenizer_json(void **state)
{
    hr_error err;
    (void)state;
    const hr_folder folder = hr_folder_open();
    const char *tokenizer = put_published(&folder, "superbpe-t80k");
    put_pair(&folder, tokenizer);
    const char *vocab = hr_folder_path(&folder, "vocab.json");
    if (open_subject(&s, vocab, NULL, &err) != HR_OK) fail_msg("%s", err.message);
    const int64_t merges = s.tokenizer->merges;
    assert_int_equal(s.tokenizer->ids, 200000);
    close_subject(&s);
    if (open_subject(&s, folder.path, NULL, &err) != HR_OK) fail_msg("%s", err.message);
    assert_int_equal(s.tokenizer->merges, merges);
    close_subject(&s);
    hr_folder_close(&folder);
}

/* The encodings of 543 texts by Hugging Face's tokenizers with five published tokenizers. */
static void golden_encodings_are_reproduced(void **state)
{
    char open[32] = "";
    int64_t bytes = 0, number = 0;
    hr_error err;
    (void)state;
    const hr_folder folder = hr_folder_open();
    char *text = zst_read(GOLDEN "encodings.jsonl.zst", &bytes);
    for (char *at = text, *stop; at < text + bytes; at = stop + 1, number++) {
        char name[32];
        stop = strchr(at, '\n');
        if (!stop) stop = text + bytes;
        assert_int_equal(sscanf(at, "{\"tok\": \"%31[^\"]\"", name), 1);
        if (strcmp(name, open)) {
            if (*open) close_subject(&s);
            snprintf(open, sizeof open, "%s", name);
            if (open_subject(&s, put_published(&folder, name), NULL, &err) != HR_OK)
                fail_msg("%s", err.message);
        }
        assert_true(read_expected(at, stop - at, &e));
        expect_line(&s, &e, name, number);
    }
    print_message("%lld encodings\n", (long long)number);
    assert_int_equal(number, 2715);
    close_subject(&s);
    free(text);
    hr_folder_close(&folder);
}

/* Compares left-to-right encoding with merging as defined. */
static void left_to_right_encoding_equals_merging(void **state)
{
    static uint8_t piece[64];
    char path[4096];
    hr_error err;
    (void)state;
    snprintf(path, sizeof path, "%s/tests/tokenizer/cases/super-two.json", HR_SOURCE);
    if (open_subject(&s, path, NULL, &err) != HR_OK) fail_msg("%s", err.message);
    const int64_t bytes = hr_bpe_workspace_bytes(&s.tokenizer->bpe, 64);
    void *memory = room(bytes);
    hr_region region = hr_region_over(memory, bytes);
    hr_bpe_workspace *work;
    assert_int_equal(hr_bpe_workspace_place(&work, &region, &s.tokenizer->bpe, 64, &err), HR_OK);
    for (int32_t round = 0; round < 40000 * HR_COUNT; round++) {
        const int64_t count = 1 + rand() % 64;
        for (int64_t i = 0; i < count; i++)
            piece[i] = (uint8_t) " the planofmry\nsaei."[rand() % 20];
        const uint32_t *ids;
        uint32_t encoded[64];
        const int64_t id_count = hr_bpe_encode(work, piece, count, count, &ids);
        memcpy(encoded, ids, (size_t)id_count * 4);
        assert_int_equal(hr_bpe_encode_ref(work, piece, count, &ids), id_count);
        assert_memory_equal(encoded, ids, (size_t)id_count * 4);
    }
    free(memory);
    close_subject(&s);
}

/* The ids of the two parts of a split text are the ids of the whole. */
static void split_texts_have_the_same_ids(void **state)
{
    static const char *const names[] = {
        "gpt2", "nfc", "o200k", "paper-two", "super-two", "digits"
    };
    static uint32_t parts[IDS_MAX];
    char path[4096];
    int64_t bytes = 0, splits = 0;
    hr_error err;
    (void)state;
    snprintf(path, sizeof path, "%s/docs/architecture.md", HR_SOURCE);
    char *text = read_all(path, &bytes);
    const uint8_t *at = (const uint8_t *)text;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/tests/tokenizer/cases/%s.json", HR_SOURCE, names[i]);
        if (open_subject(&s, path, NULL, &err) != HR_OK) fail_msg("%s", err.message);
        for (int64_t from = 1, end; from + 3004 < bytes; from += 2500) {
            end = 3000;
            while ((text[from] & 0xc0) == 0x80) from++;
            while ((text[from + end] & 0xc0) == 0x80) end++;
            const int64_t cut = hr_tokenizer_split_point(s.tokenizer, at + from, 0, 2000);
            if (cut < 0) continue;
            splits++;
            assert_int_equal(encode_all(&s, at + from, cut, 0, &err), HR_OK);
            int64_t count = s.count;
            memcpy(parts, s.ids, (size_t)count * 4);
            assert_int_equal(encode_all(&s, at + from + cut, end - cut, 0, &err), HR_OK);
            memcpy(parts + count, s.ids, (size_t)s.count * 4);
            count += s.count;
            assert_int_equal(encode_all(&s, at + from, end, 0, &err), HR_OK);
            assert_int_equal(s.count, count);
            assert_memory_equal(s.ids, parts, (size_t)count * 4);
        }
        close_subject(&s);
    }
    assert_true(splits > 20);
    free(text);
}

/* ---- refusals */

#define HEAD \
    "{\"version\":\"1.0\",\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define MODEL(more) HEAD ",\"model\":{\"type\":\"BPE\"" more "}}"
#define WORDS ",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[[\"a\",\"b\"]]"

static void unsupported_features_are_refused_by_name(void **state)
{
    (void)state;
    expect_refused(&s, MODEL(WORDS ",\"dropout\":0.1"), "model.dropout is set");
    expect_refused(&s, MODEL(WORDS ",\"byte_fallback\":true"),
                   "model.byte_fallback is set but byte 0 has no token");
    expect_refused(&s, MODEL(WORDS ",\"continuing_subword_prefix\":\"##\""),
                   "continuing_subword_prefix is ##");
    expect_refused(&s, MODEL(WORDS ",\"end_of_word_suffix\":\"</w>\""),
                   "end_of_word_suffix is </w>");
    expect_refused(&s, MODEL(WORDS ",\"unk_token\":\"a\""),
                   "unk_token is set but byte 0 has no token");
    expect_refused(&s, HEAD ",\"model\":{\"type\":\"WordPiece\"" WORDS "}}",
                   "model type WordPiece is not supported");
    expect_refused(
        &s, "{\"pre_tokenizer\":{\"type\":\"Punctuation\"},\"model\":{\"type\":\"BPE\"" WORDS "}}",
        "pre_tokenizer of type Punctuation is not supported");
    expect_refused(&s, "{\"model\":{\"type\":\"BPE\"" WORDS "}}",
                   "pre_tokenizer has neither ByteLevel nor Metaspace");
    expect_refused(
        &s, HEAD ",\"normalizer\":{\"type\":\"NFKC\"},\"model\":{\"type\":\"BPE\"" WORDS "}}",
        "normalizer of type NFKC");
    expect_refused(
        &s, HEAD ",\"decoder\":{\"type\":\"WordPiece\"},\"model\":{\"type\":\"BPE\"" WORDS "}}",
        "decoder of type WordPiece");
    expect_refused(
        &s, HEAD ",\"post_processor\":{\"type\":\"Other\"},\"model\":{\"type\":\"BPE\"" WORDS "}}",
        "post_processor of type Other");
    expect_refused(&s,
                   HEAD ",\"truncation\":{\"max_length\":3},\"model\":{\"type\":\"BPE\"" WORDS "}}",
                   "truncation is set");
    expect_refused(
        &s,
        "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"},"
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}]},"
        "\"model\":{\"type\":\"BPE\"" WORDS "}}",
        "ByteLevel with add_prefix_space after another");
    expect_refused(
        &s,
        "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
        "\"pattern\":{\"Regex\":\"(a\"},\"behavior\":\"Isolated\",\"invert\":false},"
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},"
        "\"model\":{\"type\":\"BPE\"" WORDS "}}",
        "PCRE2 error at byte 2");
    expect_refused(
        &s,
        "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
        "\"pattern\":{\"Regex\":\"[^a[b]]\"},\"behavior\":\"Isolated\",\"invert\":false},"
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},"
        "\"model\":{\"type\":\"BPE\"" WORDS "}}",
        "a nested class is not supported");
    expect_refused(
        &s,
        "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
        "\"pattern\":{\"Regex\":\"[^\\\\W_]\"},\"behavior\":\"Isolated\",\"invert\":false},"
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},"
        "\"model\":{\"type\":\"BPE\"" WORDS "}}",
        "a negated class (");
    expect_refused(
        &s,
        HEAD
        ",\"added_tokens\":[{\"id\":999,\"content\":\"<x>\"}],\"model\":{\"type\":\"BPE\"" WORDS
        "}}",
        "has id 999, and the Python package tokenizers would give it ");
}

static void invalid_files_are_refused(void **state)
{
    (void)state;
    expect_refused(&s, "", "invalid JSON");
    expect_refused(&s, "{", "invalid JSON: unexpected end of file");
    expect_refused(&s, "{\"model\":{}}}", "invalid JSON: unmatched closing bracket");
    /* Vocabulary and merges are checked when they are read, the rest of the file separately. */
    expect_refused(&s, MODEL(",\"vocab\":{\"a\":0}7,\"merges\":[]"), "the vocabulary is invalid");
    expect_refused(&s, MODEL(",\"vocab\":{\"a\":0},\"merges\":[]7"),
                   "the list of merges is invalid");
    expect_refused(&s, MODEL(",\"merges\":[],\"vocab\":{\"a\":0,}"), "the vocabulary is invalid");
    expect_refused(&s, "{\"model\":{\"merges\":[],\"vocab\":{\"a\":0}},\"a\" 1}",
                   "invalid JSON at byte 43: no colon after a key");
    expect_refused(&s, "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[]},}",
                   "invalid JSON at byte 39");
    expect_refused(&s, MODEL(",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]"),
                   "token \"b\" with id 0: another token has the same id");
    expect_refused(&s, MODEL(",\"vocab\":{\"a\":0,\"a\":1},\"merges\":[]"),
                   "token \"a\" with id 1: it occurs twice");
    expect_refused(&s, MODEL(",\"vocab\":{\"a\":-1},\"merges\":[]"),
                   "id -1: the id is out of range");
    expect_refused(&s, MODEL(",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a b\"]"),
                   "the token \"ab\" is not in the vocabulary");
    expect_refused(&s, MODEL(",\"vocab\":{\"a\":0,\"ac\":1},\"merges\":[\"a c\"]"),
                   "the token \"c\" is not in the vocabulary");
    expect_refused(&s, MODEL(",\"vocab\":{\"a\":0},\"merges\":[\"a\"]"),
                   "merge 1, \"a\", is not two tokens separated by a space");
    expect_refused(&s, MODEL(",\"vocab\":{\"a\":0}"), "the model has no merges");
    expect_refused(&s, MODEL(",\"vocab\":{\"a\":0},\"vocab\":{\"a\":0},\"merges\":[]"),
                   "the key \"vocab\" at byte");
    expect_refused(&s, MODEL(",\"vocab\":{\"a\":2097152},\"merges\":[]"), "ids up to 2097152");
    expect_refused(
        &s,
        HEAD ",\"added_tokens\":[{\"id\":9,\"content\":\"a\"}],\"model\":{\"type\":\"BPE\"" WORDS
             "}}",
        "added token \"a\" with id 9: the vocabulary has it under another id");
    expect_refused(
        &s,
        HEAD ",\"added_tokens\":[{\"id\":1,\"content\":\"x\"}],\"model\":{\"type\":\"BPE\"" WORDS
             "}}",
        "added token \"x\" with id 1: another token has the same id");
}

static void invalid_utf8_is_refused_with_its_byte_offset(void **state)
{
    char path[4096];
    hr_error err;
    (void)state;
    snprintf(path, sizeof path, "%s/tests/tokenizer/cases/gpt2.json", HR_SOURCE);
    if (open_subject(&s, path, NULL, &err) != HR_OK) fail_msg("%s", err.message);
    static const char *const wrong[] = { "abc\xff",         "abc\xc3",     "abc\xe2\x82",
                                         "abc\xed\xa0\x80", "abc\xc0\x80", "abc\xf4\x90\x80\x80" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int64_t window = 0; window < 3; window++) {
            assert_int_equal(
                encode_all(&s, (const uint8_t *)wrong[i], (int64_t)strlen(wrong[i]), window, &err),
                HR_CORRUPT);
            assert_string_equal(err.message, "byte 3: not UTF-8");
        }
    close_subject(&s);
}

int main(void)
{
    srand(5);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_tokenizers_encode_and_decode_like_the_reference),
        cmocka_unit_test(a_tiktoken_file_encodes_like_its_tokenizer_json),
        cmocka_unit_test(vocab_json_with_merges_txt_loads_like_its_tokenizer_json),
        cmocka_unit_test(golden_encodings_are_reproduced),
        cmocka_unit_test(left_to_right_encoding_equals_merging),
        cmocka_unit_test(split_texts_have_the_same_ids),
        cmocka_unit_test(unsupported_features_are_refused_by_name),
        cmocka_unit_test(invalid_files_are_refused),
        cmocka_unit_test(invalid_utf8_is_refused_with_its_byte_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
