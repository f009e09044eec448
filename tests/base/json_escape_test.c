/* SPDX-License-Identifier: Apache-2.0 */
/* json_escape_test.c - any bytes as a JSON string; another parser reads the same bytes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/json.h"
#include "base/random.h"
#include "guard.h"

/* Escapes the text between quotes into a buffer that ends at a faulting page. */
static int64_t escape(char *quoted, int64_t room, const char *text, int64_t bytes, int64_t *taken)
{
    hr_guard guard;
    char *out = hr_guard_open(&guard, room);
    const int64_t used = hr_json_escape(out, room, text, bytes, taken);
    assert_in_range(used, 0, room);
    assert_in_range(*taken, 0, bytes);
    snprintf(quoted, 8192, "\"%.*s\"", (int)used, out);
    hr_guard_close(&guard);
    return used;
}

static void characters_that_json_forbids_are_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
        const char *wanted;
    } cases[] = {
        { "", 0, "\"\"" },
        { "plain", 5, "\"plain\"" },
        { "a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\"" },
        { "\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"" },
        { "\0\1\037\177", 4, "\"\\u0000\\u0001\\u001f\\u007f\"" },
        { "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x99\x82", 9, "\"\xc3\xa9\xe4\xb8\xad\xf0\x9f\x99\x82\"" },
        { "x\xff\xc3", 3, "\"x\xef\xbf\xbd\xef\xbf\xbd\"" },               /* incomplete
                                                                            * character */
        { "\xc0\x80", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"" },                 /* overlong encoding */
        { "\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" }, /* unpaired surrogate */
        { "\xf4\x90\x80\x80", 4,
          "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" }, /* above U+10FFFF */
    };
    char quoted[8192];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t taken;
        escape(quoted, 256, cases[i].text, cases[i].bytes, &taken);
        assert_int_equal(taken, cases[i].bytes);
        assert_string_equal(quoted, cases[i].wanted);
    }
}

/* Every byte that jansson would refuse becomes U+FFFD: counted independently. */
static void any_bytes_become_a_string_and_valid_characters_are_kept(void **state)
{
    (void)state;
    uint64_t draw = 23;
    print_message("seed %llu\n", (unsigned long long)draw);
    static const char *const atoms[] = {
        "a",    "\"",   "\\",   "\n",      "\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x99\x82",
        "\x7f", "\x80", "\xff", "\xe4\xb8"
    };
    for (int32_t i = 0; i < 3000; i++) {
        char text[256], quoted[8192];
        int64_t bytes = 0, taken;
        while (bytes < 200 && hr_random_mix(++draw) % 60) {
            const char *atom = atoms[hr_random_mix(++draw) % 11];
            if (hr_random_mix(++draw) % 8) bytes += sprintf(text + bytes, "%s", atom);
            else text[bytes++] = (char)hr_random_mix(++draw);
        }
        const int64_t room = (int64_t)(hr_random_mix(++draw) % 600);
        const int64_t used = escape(quoted, room, text, bytes, &taken);
        json_t *value = json_loadb(quoted, (size_t)used + 2, JSON_DECODE_ANY | JSON_ALLOW_NUL, 0);
        assert_non_null(value);
        if (taken < bytes) assert_in_range(room - used, 0, 5);

        const char *at = json_string_value(value);
        int64_t left = (int64_t)json_string_length(value), from = 0;
        while (from < taken) {
            assert_true(left > 0);
            const bool replaced = left >= 3 && !memcmp(at, "\xef\xbf\xbd", 3) &&
                                  (taken - from < 3 || memcmp(text + from, "\xef\xbf\xbd", 3));
            if (!replaced) assert_int_equal(*at, text[from]);
            at += replaced ? 3 : 1;
            left -= replaced ? 3 : 1;
            from++;
        }
        assert_int_equal(left, 0);
        json_decref(value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_that_json_forbids_are_escaped),
        cmocka_unit_test(any_bytes_become_a_string_and_valid_characters_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
