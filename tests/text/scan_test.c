/* SPDX-License-Identifier: Apache-2.0 */
/* scan_test.c - splits a text into the words of Python's text.lower().split(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "text/scan.h"

static uint8_t word[HR_WORD_BYTES];
static char joined[1 << 20];

/* Joins the words of content [bytes], read in pieces of `piece_bytes`, each followed by '|'. */
static hr_status scan_in_pieces(const void *content, int64_t bytes, int64_t piece_bytes,
                                hr_error *err)
{
    hr_status status = HR_OK;
    int64_t used = 0;
    hr_scan scan = hr_scan_over(word);
    for (int64_t at = 0; status == HR_OK && (at == 0 || at < bytes); at += piece_bytes) {
        const int64_t count = bytes - at < piece_bytes ? bytes - at : piece_bytes;
        const hr_piece piece = { .bytes = (const uint8_t *)content + at,
                                 .count = count,
                                 .begins = at == 0,
                                 .ends = at + count == bytes,
                                 .segment_ends = at + count == bytes,
                                 .path = "text",
                                 .offset = at };
        hr_scan_take(&scan, &piece);
        for (;;) {
            int64_t length;
            status = hr_scan_next(&scan, &length, err);
            if (status != HR_OK || length == 0) break;
            memcpy(joined + used, word, (size_t)length);
            used += length;
            joined[used++] = '|';
        }
    }
    joined[used] = 0;
    return status;
}

/* In one piece and in small ones, with the same result. */
static hr_status scan_all(const void *content, int64_t bytes, hr_error *err)
{
    static char before[sizeof joined];
    hr_error again;
    const hr_status status = scan_in_pieces(content, bytes, bytes + 1, err);
    strcpy(before, joined);
    for (int64_t piece_bytes = 4; piece_bytes < 12 && bytes < 4096; piece_bytes++) {
        assert_int_equal(scan_in_pieces(content, bytes, piece_bytes, &again), status);
        assert_string_equal(joined, before);
        if (status != HR_OK) assert_string_equal(again.message, err->message);
    }
    strcpy(joined, before);
    return status;
}

static void assert_words(const char *content, const char *words)
{
    hr_error err;
    assert_int_equal(scan_all(content, (int64_t)strlen(content), &err), HR_OK);
    assert_string_equal(joined, words);
}

static void words_are_lower_cased_and_split_on_white_space(void **state)
{
    (void)state;
    assert_words("", "");
    assert_words(" \t\r\n\v\f", "");
    assert_words("One TWO\n\n three,", "one|two|three,|");
    assert_words(" @-@ <unk> Caf\xc3\x89 ", "@-@|<unk>|caf\xc3\xa9|");
    assert_words("a\x1c"
                 "b\x1d"
                 "c\x1e"
                 "d\x1f"
                 "e\x1b"
                 "f",
                 "a|b|c|d|e\x1b"
                 "f|");
    assert_words("\xef\xbb\xbf"
                 "bom",
                 "\xef\xbb\xbf"
                 "bom|");
}

static void unicode_white_space_separates_and_similar_characters_do_not(void **state)
{
    (void)state;
    /* U+0085, U+00A0, U+1680, U+2000, U+200A, U+2028, U+2029, U+202F, U+205F, U+3000 */
    assert_words("a\xc2\x85"
                 "b\xc2\xa0"
                 "c\xe1\x9a\x80"
                 "d\xe2\x80\x80"
                 "e\xe2\x80\x8a"
                 "f\xe2\x80\xa8"
                 "g\xe2\x80\xa9"
                 "h\xe2\x80\xaf"
                 "i\xe2\x81\x9f"
                 "j\xe3\x80\x80"
                 "k",
                 "a|b|c|d|e|f|g|h|i|j|k|");
    /* U+200B zero width space, U+FEFF, U+180E: not white space to Python 3 */
    assert_words("a\xe2\x80\x8b"
                 "b\xef\xbb\xbf"
                 "c\xe1\xa0\x8e"
                 "d",
                 "a\xe2\x80\x8b"
                 "b\xef\xbb\xbf"
                 "c\xe1\xa0\x8e"
                 "d|");
}

static void lower_case_may_need_more_bytes_or_fewer(void **state)
{
    (void)state;
    assert_words("\xc8\xba\xd0\x96", "\xe2\xb1\xa5\xd0\xb6|"); /* U+023A, U+0416 */
    assert_words("\xe2\x84\xaa", "k|");                        /* U+212A, the Kelvin sign */
    assert_words("\xf0\x90\x90\x80", "\xf0\x90\x90\xa8|");     /* U+10400 */
}

static void invalid_utf8_is_refused_with_its_offset(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "ab \x80",             /* a continuation byte alone */
        "ab \xc0\x80",         /* overlong */
        "ab \xe0\x80\x80",     /* overlong */
        "ab \xed\xa0\x80",     /* a surrogate */
        "ab \xf4\x90\x80\x80", /* past U+10FFFF */
        "ab \xf8\x88\x80\x80", /* five bytes */
        "ab \xff",
        "ab \xe2\x82",   /* truncated by the end of the text */
        "ab \xe2\x82 c", /* truncated by another byte */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hr_error err;
        assert_int_equal(scan_all(bad[i], (int64_t)strlen(bad[i]), &err), HR_CORRUPT);
        assert_non_null(strstr(err.message, "byte 3 (0x"));
        assert_non_null(strstr(err.message, "is not UTF-8"));
        assert_string_equal(joined, "ab|");
    }
}

static void a_word_has_at_most_64_kib(void **state)
{
    (void)state;
    enum { MOST = HR_WORD_BYTES };
    static char content[MOST + 8];
    hr_error err;
    memset(content, 'X', sizeof content);
    content[1] = ' ';
    assert_int_equal(scan_all(content, MOST + 2, &err), HR_OK);
    assert_int_equal(strlen(joined), 2 + MOST + 1);
    assert_int_equal(scan_all(content, MOST + 3, &err), HR_CORRUPT);
    assert_non_null(strstr(err.message, "longer than 65536 bytes"));
    memcpy(content + MOST + 1, "\xc3\xa9", 2);
    assert_int_equal(scan_all(content, MOST + 3, &err), HR_CORRUPT);
}

/* Pieces that split a character of two, three or four bytes, or a word, at every offset. */
static void pieces_do_not_split_characters_or_words(void **state)
{
    (void)state;
    enum { PIECE = 64 };
    static char content[PIECE + 64];
    for (int shift = 0; shift < 12; shift++) {
        hr_error err;
        memset(content, ' ', sizeof content);
        const int64_t at = PIECE - shift;
        memcpy(content + at, "A\xc3\x89\xe2\x82\xac\xf0\x90\x90\x80Z", 11);
        assert_int_equal(scan_in_pieces(content, at + 11, PIECE, &err), HR_OK);
        assert_string_equal(joined, "a\xc3\xa9\xe2\x82\xac\xf0\x90\x90\xa8z|");
        content[at + 5] = 'x';
        assert_int_equal(scan_in_pieces(content, at + 11, PIECE, &err), HR_CORRUPT);
        char place[32];
        snprintf(place, sizeof place, "byte %lld ", (long long)at + 3);
        assert_non_null(strstr(err.message, place));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test(name)
    const struct CMUnitTest tests[] = {
        TEST(words_are_lower_cased_and_split_on_white_space),
        TEST(unicode_white_space_separates_and_similar_characters_do_not),
        TEST(lower_case_may_need_more_bytes_or_fewer),
        TEST(invalid_utf8_is_refused_with_its_offset),
        TEST(a_word_has_at_most_64_kib),
        TEST(pieces_do_not_split_characters_or_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
