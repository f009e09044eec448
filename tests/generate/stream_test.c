/* SPDX-License-Identifier: Apache-2.0 */
/* stream_test.c - bytes that arrive one by one are output as complete characters, in order, up to a
 * stop text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "generate/stream.h"

enum { TEXT_MOST = 600 };

static char told[TEXT_MOST];
static int32_t pieces;

/* Adds bytes until a stop; the rest is output at the end. Every piece is complete characters where
 * the text is valid. */
static bool stream(const char *text, int64_t bytes, const char *const *stops, int32_t stop_count,
                   bool is_text)
{
    hr_stream s = { .stops = stops, .stop_count = stop_count };
    int32_t length = 0;
    bool stopped = false;
    pieces = 0;
    for (int64_t i = 0; i < bytes && !stopped; i++) {
        const int32_t certain = hr_stream_add(&s, text[i], &stopped);
        assert_true(certain >= 0 && certain <= s.held_bytes);
        memcpy(told + length, s.held, (size_t)certain);
        length += certain;
        pieces += certain > 0;
        if (is_text && certain) assert_true((s.held[0] & 0xc0) != 0x80);
        hr_stream_drop(&s, certain);
        assert_true(s.held_bytes < HR_STOP_BYTES);
    }
    hr_stream_end(&s);
    if (!stopped) memcpy(told + length, s.held, (size_t)s.held_bytes);
    told[stopped ? length : length + s.held_bytes] = 0;
    return stopped;
}

static void only_complete_characters_are_output(void **state)
{
    (void)state;
    static const char text[] = "a\xc3\xa9 \xe2\x82\xac\xf0\x9f\x98\x80z";
    assert_false(stream(text, (int64_t)strlen(text), NULL, 0, true));
    assert_string_equal(told, text);
    assert_int_equal(pieces, 6); /* six characters, each as soon as it is complete */
}

static void invalid_bytes_are_output_too(void **state)
{
    (void)state;
    static const char text[] = "\x80\xff\xc3(\xe2\x82(\xf0\x9f(";
    assert_false(stream(text, (int64_t)strlen(text), NULL, 0, false));
    assert_string_equal(told, text);
}

/* Also after a possible start of a stop; an incomplete character becomes one U+FFFD. */
static void a_character_cut_by_the_end_is_replaced(void **state)
{
    (void)state;
    static const char *const stops[] = { "a\xe2\x82\xac!" };
    static const char *const cases[][2] = { { "a\xc3", "a\xef\xbf\xbd" },
                                            { "b\xe2\x82", "b\xef\xbf\xbd" },
                                            { "\xf0\x9f\x98", "\xef\xbf\xbd" },
                                            { "a\xe2\x82\xac", "a\xe2\x82\xac" },
                                            { "a\xe2", "a\xef\xbf\xbd" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int32_t count = 0; count < 2; count++) {
            assert_false(stream(cases[i][0], (int64_t)strlen(cases[i][0]), stops, count, false));
            assert_string_equal(told, cases[i][1]);
        }
}

static void the_answer_ends_before_a_stop_however_it_is_split(void **state)
{
    (void)state;
    static const char *const stops[] = { "\n\n", "END", "aab" };
    static const struct {
        const char *text, *before;
        bool stops;
    } cases[] = { { "one\n\ntwo", "one", true },
                  { "one\ntwo\n", "one\ntwo\n", false },
                  { "the EN", "the EN", false },
                  { "ENEND", "EN", true },
                  { "aaaab", "aa", true },
                  { "END", "", true },
                  { "\xc3\xa9"
                    "END",
                    "\xc3\xa9", true } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(stream(cases[i].text, (int64_t)strlen(cases[i].text), stops, 3, true),
                         cases[i].stops);
        assert_string_equal(told, cases[i].before);
    }
}

/* The end of the answer by definition: before the stop that is complete first; of several that are
 * complete at the same byte, before the longest. */
static int32_t end_of(const char *text, int32_t bytes, const char *const *stops, int32_t count)
{
    for (int32_t at = 0; at <= bytes; at++) {
        int32_t longest = 0;
        for (int32_t k = 0; k < count; k++) {
            const int32_t length = (int32_t)strlen(stops[k]);
            if (length <= at && length > longest && !memcmp(text + at - length, stops[k], length))
                longest = length;
        }
        if (longest) return at - longest;
    }
    return bytes;
}

/* Stops of two letters that begin with, end with and contain one another. */
static void the_first_complete_stop_ends_the_answer(void **state)
{
    (void)state;
    for (uint64_t turn = 0; turn < 3000; turn++) {
        char letters[HR_STOPS_MAX][6], text[41], before[41];
        const char *stops[HR_STOPS_MAX];
        const int32_t count = 1 + (int32_t)(hr_random_mix(turn) % HR_STOPS_MAX);
        for (int32_t k = 0; k < count; k++) {
            const uint64_t bits = hr_random_mix(turn * HR_STOPS_MAX + (uint64_t)k + 1);
            const int32_t length = 2 + (int32_t)(bits >> 60) % 4;
            for (int32_t i = 0; i < length; i++) letters[k][i] = (bits >> i & 1) ? 'a' : 'b';
            letters[k][length] = 0;
            stops[k] = letters[k];
        }
        for (int32_t i = 0; i < 40; i++)
            text[i] = "aabc"[hr_random_mix(turn * 41 + (uint64_t)i) >> 62];
        text[40] = 0;
        const int32_t bytes = end_of(text, 40, stops, count);
        memcpy(before, text, (size_t)bytes);
        before[bytes] = 0;
        assert_int_equal(stream(text, 40, stops, count, true), bytes < 40);
        assert_string_equal(told, before);
    }
}

static void the_longest_stop_fits(void **state)
{
    (void)state;
    static char stop[HR_STOP_BYTES], text[TEXT_MOST];
    const char *const stops[] = { stop };
    memset(stop, 'x', HR_STOP_BYTES - 1);
    memset(text, 'x', HR_STOP_BYTES - 2);
    text[HR_STOP_BYTES - 2] = 'y';
    memset(text + HR_STOP_BYTES - 1, 'x', HR_STOP_BYTES - 1);
    assert_true(stream(text, (int64_t)strlen(text), stops, 1, true));
    assert_int_equal(strlen(told), HR_STOP_BYTES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_complete_characters_are_output),
        cmocka_unit_test(invalid_bytes_are_output_too),
        cmocka_unit_test(a_character_cut_by_the_end_is_replaced),
        cmocka_unit_test(the_answer_ends_before_a_stop_however_it_is_split),
        cmocka_unit_test(the_first_complete_stop_ends_the_answer),
        cmocka_unit_test(the_longest_stop_fits),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
