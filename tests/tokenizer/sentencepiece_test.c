/* SPDX-License-Identifier: Apache-2.0 */
/* sentencepiece_test.c - SentencePiece models and the files converted from them, against the
 * encodings of the packages sentencepiece and tokenizers for difficult texts; and the errors of
 * refused files. tools/tokenizer-cases wrote the cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tokenizer/cases.h"

static subject s;
static expected e;

static void expect_case(const char *name, const char *ending)
{
    char path[4096];
    int64_t bytes, number = 0;
    hr_error err;
    snprintf(path, sizeof path, "%s/tests/tokenizer/cases/%s.%s", HR_SOURCE, name, ending);
    if (open_subject(&s, path, NULL, &err) != HR_OK) fail_msg("%s", err.message);
    snprintf(path, sizeof path, "%s/tests/tokenizer/cases/%s.jsonl", HR_SOURCE, name);
    char *text = read_all(path, &bytes);
    assert_non_null(text);
    for (char *at = text, *stop; (stop = strchr(at, '\n')); at = stop + 1, number++) {
        assert_true(read_expected(at, stop - at, &e));
        expect_line(&s, &e, name, number);
    }
    assert_true(number > 80);
    free(text);
    close_subject(&s);
}

static void models_encode_and_decode_like_sentencepiece(void **state)
{
    static const char *const names[] = { "sp-bpe",     "sp-bpe-user",     "sp-bpe-cross",
                                         "sp-unigram", "sp-unigram-user", "sp-unigram-bytes" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) expect_case(names[i], "model");
}

static void converted_files_encode_and_decode_like_the_reference(void **state)
{
    static const char *const names[] = { "sp-llama",         "sp-llama-known", "sp-llama-first",
                                         "sp-llama-bare",    "sp-metaspace",   "sp-metaspace-first",
                                         "sp-metaspace-old", "sp-gemma",       "sp-t5",
                                         "sp-t5-old",        "sp-xlnet",       "sp-unigram-whole" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) expect_case(names[i], "json");
}

/* With float scores, sums depend on all of the text before. */
static void a_long_text_needs_no_more_room_than_its_words(void **state)
{
    static const char *const names[] = { "sp-bpe.model", "sp-llama.json", "sp-unigram.model",
                                         "sp-t5.json" };
    char path[4096];
    hr_error err;
    (void)state;
    enum { BYTES = 1 << 18 };
    char *text = malloc(BYTES);
    for (int64_t i = 0; i < BYTES; i++) text[i] = "the plan of a step "[i % 19];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/tests/tokenizer/cases/%s", HR_SOURCE, names[i]);
        if (open_subject(&s, path, NULL, &err) != HR_OK) fail_msg("%s", err.message);
        const hr_status status = encode_all(&s, (const uint8_t *)text, BYTES, 9000, &err);
        if (status != HR_OK) fail_msg("%s: %s", names[i], err.message);
        assert_true(s.count > BYTES / 19);
        close_subject(&s);
    }
    free(text);
}

/* ---- refusals */

#define META "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\"}"
#define WORDS ",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"<unk>\":3},\"merges\":[[\"a\",\"b\"]]"
#define BPE ",\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\"" WORDS "}}"
#define SCORES ",\"vocab\":[[\"<unk>\",0.0],[\"a\",-1.5]]"

static void unsupported_features_of_files_are_refused_by_name(void **state)
{
    (void)state;
    expect_refused(&s, META ",\"model\":{\"type\":\"BPE\"" WORDS "}}", "model.unk_token names no");
    expect_refused(&s,
                   META
                   ",\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"unk_token\":\"<unk>\","
                   "\"vocab\":{\"<unk>\":0,\"<0x0A>\":1},\"merges\":[]}}",
                   "model.byte_fallback is set but byte 0 has no token");
    expect_refused(&s,
                   META
                   ",\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"ignore_merges\":true,"
                   "\"vocab\":{\"<unk>\":0,\"x\":1,\"<unk>x\":2},\"merges\":[[\"<unk>\",\"x\"]]}}",
                   "merge 1 uses the unknown token");
    expect_refused(&s, META ",\"normalizer\":{\"type\":\"Lowercase\"}" BPE,
                   "normalizer of type Lowercase is not supported");
    expect_refused(&s,
                   META ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x+\"},"
                        "\"content\":\"y\"}" BPE,
                   "Replace with a regular expression other than \" {2,}\"");
    expect_refused(&s,
                   META ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":"
                        "\"AAAA\"}" BPE,
                   "precompiled_charsmap of the normalizer: it is too short");
    expect_refused(&s,
                   META ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":"
                        "\"?\"}" BPE,
                   "it is not base64");
    expect_refused(&s, "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"}" BPE,
                   "a replacement other than U+2581");
    expect_refused(&s,
                   "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\","
                   "\"prepend_scheme\":\"last\"}" BPE,
                   "Metaspace with an unknown prepend_scheme");
    expect_refused(&s,
                   "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\","
                   "\"prepend_scheme\":\"first\",\"add_prefix_space\":false}" BPE,
                   "with contradictory add_prefix_space and prepend_scheme");
    expect_refused(&s,
                   "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\","
                   "\"prepend_scheme\":\"first\"},\"normalizer\":{\"type\":\"Strip\","
                   "\"strip_left\":true,\"strip_right\":true}" BPE,
                   "Metaspace with prepend_scheme first is not supported after a normalizer");
    expect_refused(&s, META ",\"decoder\":{\"type\":\"CTC\"}" BPE, "decoder of type CTC");
    expect_refused(&s,
                   META ",\"decoder\":{\"type\":\"Strip\",\"content\":\" \",\"start\":1,"
                        "\"stop\":0}" BPE,
                   "Strip of anything but spaces at the start of the text");
    expect_refused(&s, META ",\"model\":{\"type\":\"Unigram\",\"unk_id\":5" SCORES "}}",
                   "model.unk_id names no token");
    expect_refused(&s, META ",\"model\":{\"type\":\"Unigram\",\"unk_id\":0" WORDS "}}",
                   "model type Unigram, but the vocabulary is not a list of scores");
    expect_refused(&s, META ",\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",1],[\"a\",1]]}}",
                   "token 1, \"a\": it occurs twice");
    expect_refused(&s,
                   "{\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"Unigram\","
                   "\"unk_id\":0" SCORES "}}",
                   "Unigram with ByteLevel is not supported");
}

/* A SentencePiece message under construction. */
typedef struct {
    uint8_t bytes[4096];
    int64_t count;
} message;

static void put_varint(message *m, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) m->bytes[m->count++] = (uint8_t)(value | 0x80);
    m->bytes[m->count++] = (uint8_t)value;
}

static void put_bytes(message *m, int32_t field, const void *bytes, int64_t count)
{
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, (uint64_t)count);
    memcpy(m->bytes + m->count, bytes, (size_t)count);
    m->count += count;
}

static void put_number(message *m, int32_t field, uint64_t value)
{
    put_varint(m, (uint64_t)field << 3);
    put_varint(m, value);
}

static void put_piece(message *m, const char *text, float score, uint64_t type)
{
    message piece = { .count = 0 };
    put_bytes(&piece, 1, text, (int64_t)strlen(text));
    put_varint(&piece, 2 << 3 | 5);
    memcpy(piece.bytes + piece.count, &score, 4);
    piece.count += 4;
    put_number(&piece, 3, type);
    put_bytes(m, 1, piece.bytes, piece.count);
}

static message begun(void)
{
    message m = { .count = 0 };
    put_piece(&m, "<unk>", 0, 2);
    put_piece(&m, "a", -1, 1);
    put_piece(&m, "b", -2, 1);
    return m;
}

/* A message with an embedded message. */
static message with(int32_t field, const message *inner)
{
    message m = begun();
    put_bytes(&m, field, inner->bytes, inner->count);
    return m;
}

static hr_status open_message(const message *m, hr_error *err)
{
    char path[] = "/tmp/sentencepiece_testXXXXXX";
    const int fd = mkstemp(path);
    FILE *out = fdopen(fd, "w");
    fwrite(m->bytes, 1, (size_t)m->count, out);
    fclose(out);
    const hr_status status = open_subject(&s, path, NULL, err);
    remove(path);
    return status;
}

static void expect_model_refused(const message *m, const char *sentence)
{
    hr_error err = { HR_OK, "" };
    const hr_status status = open_message(m, &err);
    close_subject(&s);
    if (status != HR_CORRUPT || !strstr(err.message, sentence))
        fail_msg("gave %d: %s\n not: %s", status, err.message, sentence);
}

static void invalid_models_are_refused(void **state)
{
    (void)state;
    message m = begun();
    put_piece(&m, "a", -3, 1);
    expect_model_refused(&m, "piece 3, \"a\": it occurs twice");
    m = begun();
    put_piece(&m, "", -3, 1);
    expect_model_refused(&m, "it is empty");
    m = begun();
    put_piece(&m, "\xff", -3, 1);
    expect_model_refused(&m, "it is not UTF-8");
    m = begun();
    put_piece(&m, "c", 1.0f / 0.0f, 1);
    expect_model_refused(&m, "its score is not finite");
    m = begun();
    put_piece(&m, "c", 0, 7);
    expect_model_refused(&m, "its type is unknown");
    m = begun();
    put_piece(&m, "<0xZZ>", 0, 6);
    expect_model_refused(&m, "it has type BYTE but is not of the form");
    for (int64_t cut = begun().count - 1; cut > 3; cut -= 5) {
        m = begun();
        m.count = cut;
        hr_error err = { HR_OK, "" };
        const hr_status status = open_message(&m, &err);
        close_subject(&s);
        assert_true(status == HR_OK || status == HR_CORRUPT);
    }
    m = (message){ .count = 0 };
    put_piece(&m, "a", -1, 1);
    expect_model_refused(&m, "there is no piece of type UNKNOWN");
}

static void unsupported_features_of_models_are_refused_by_name(void **state)
{
    message trainer = { .count = 0 }, m;
    (void)state;
    put_number(&trainer, 3, 3);
    m = with(2, &trainer);
    expect_model_refused(&m, "model_type is WORD, which is not supported");
    trainer.count = 0;
    put_number(&trainer, 24, 1);
    m = with(2, &trainer);
    expect_model_refused(&m, "trainer_spec.treat_whitespace_as_suffix is set");
    trainer.count = 0;
    put_number(&trainer, 35, 1);
    m = with(2, &trainer);
    expect_model_refused(&m, "trainer_spec.byte_fallback is set but byte 0 has no piece");
    trainer.count = 0;
    put_number(&trainer, 5, 0);
    m = with(3, &trainer);
    expect_model_refused(&m, "normalizer_spec.escape_whitespaces is false");
    trainer.count = 0;
    put_bytes(&trainer, 2, "abcdefgh", 8);
    m = with(3, &trainer);
    expect_model_refused(&m,
                         "normalizer_spec.precompiled_charsmap: the size of its trie is invalid");
    m = with(5, &trainer);
    expect_model_refused(&m, "denormalizer_spec.precompiled_charsmap is set");
    trainer.count = 0;
    put_number(&trainer, 3, 2);
    m = with(2, &trainer);
    put_piece(&m, "ac", -3, 1);
    expect_model_refused(&m, "piece 3, \"ac\", contains a character that is not a piece");
    m = with(2, &trainer);
    put_piece(&m, "ab", -3, 5);
    expect_model_refused(&m, "a BPE model with pieces of type UNUSED");
}

/* Of equal scores the leftmost pair is merged first. */
static void pieces_of_equal_score_merge_leftmost_first(void **state)
{
    static const char text[] = "aba";
    message trainer = { .count = 0 };
    hr_error err;
    (void)state;
    put_number(&trainer, 3, 2);
    message m = with(2, &trainer);
    put_piece(&m, "ab", -3, 1);
    put_piece(&m, "ba", -3, 1);
    if (open_message(&m, &err) != HR_OK) fail_msg("%s", err.message);
    assert_false(s.tokenizer->bpe.orderly);
    assert_int_equal(encode_all(&s, (const uint8_t *)text, 3, 0, &err), HR_OK);
    assert_int_equal(s.count, 3); /* the added leading space is unknown */
    assert_int_equal(s.ids[0], 0);
    assert_int_equal(s.ids[1], 3);
    assert_int_equal(s.ids[2], 1);
    close_subject(&s);
}

int main(void)
{
    srand(7);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_encode_and_decode_like_sentencepiece),
        cmocka_unit_test(converted_files_encode_and_decode_like_the_reference),
        cmocka_unit_test(a_long_text_needs_no_more_room_than_its_words),
        cmocka_unit_test(unsupported_features_of_files_are_refused_by_name),
        cmocka_unit_test(invalid_models_are_refused),
        cmocka_unit_test(unsupported_features_of_models_are_refused_by_name),
        cmocka_unit_test(pieces_of_equal_score_merge_leftmost_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
