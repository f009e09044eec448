/* SPDX-License-Identifier: Apache-2.0 */
/* lines_test.c - compares the parser of lines with the independent JSON parser, for lines split
 * anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/random.h"
#include "corpus/lines.h"

enum { MOST = 4096 };

static const char *const names[HR_LINE_FIELDS] = { "text", "prompt", "completion" };

/* The fields found in a line. */
typedef struct {
    char text[HR_LINE_FIELDS][MOST];
    int64_t bytes[HR_LINE_FIELDS];
    uint32_t found;
    char problem[64];
} fields;

/* Reads a line in parts of `part` bytes; unread bytes of a part come before the next. */
static bool read_in_parts(const char *content, int64_t bytes, int64_t part, bool stops, fields *f)
{
    static uint8_t buffer[MOST + 64];
    hr_line line;
    int64_t at = 0, fill = 0;
    memset(f, 0, sizeof *f);
    hr_line_begin(&line, names);
    while (at + fill < bytes || at == 0) {
        const int64_t more = bytes - at - fill < part ? bytes - at - fill : part;
        memcpy(buffer + fill, content + at + fill, (size_t)more);
        fill += more;
        const bool last = at + fill == bytes;
        int64_t used = 0;
        do {
            const int64_t here = hr_line_read(&line, buffer + used, fill - used, last, stops);
            for (int32_t i = 0; i < line.span_count; i++) {
                const hr_line_span *span = &line.spans[i];
                memcpy(f->text[span->field] + f->bytes[span->field], span->text,
                       (size_t)span->bytes);
                f->bytes[span->field] += span->bytes;
            }
            used += here;
            if (!here) break;
        } while (last && used < fill);
        if (line.problem) break;
        memmove(buffer, buffer + used, (size_t)(fill - used));
        fill -= used;
        at += used;
        if (last) break;
    }
    const bool whole = hr_line_is_whole(&line);
    f->found = line.found;
    if (!whole) snprintf(f->problem, sizeof f->problem, "%s", line.problem);
    return whole;
}

/* Reads with the other parser; -1: undecided, because it refuses zero bytes and deep nesting. */
static int read_as_json(const char *content, int64_t bytes, fields *f)
{
    static char copy[MOST];
    memset(f, 0, sizeof *f);
    memcpy(copy, content, (size_t)bytes);
    hr_json json = hr_json_over(copy, bytes);
    bool good = hr_json_next(&json) == HR_JSON_OBJECT;
    hr_json_kind kind = HR_JSON_WRONG;
    while (good && (kind = hr_json_next(&json)) == HR_JSON_KEY) {
        int32_t field = -1;
        for (int32_t i = 0; i < HR_LINE_FIELDS; i++)
            if (hr_json_is(&json, names[i])) field = i;
        kind = hr_json_next(&json);
        if (field >= 0) {
            good = kind == HR_JSON_STRING && !(f->found >> field & 1);
            if (!good) break;
            memcpy(f->text[field], json.value, (size_t)json.value_bytes);
            f->bytes[field] = json.value_bytes;
            f->found |= UINT32_C(1) << field;
        } else {
            good = hr_json_skip(&json, kind);
        }
    }
    good = good && kind == HR_JSON_CLOSE && hr_json_next(&json) == HR_JSON_END;
    for (int64_t i = 0; i + 6 <= bytes; i++)
        if (!memcmp(content + i, "\\u0000", 6)) return -1;
    if (json.problem && strstr(json.problem, "32 deep")) return -1;
    return good;
}

/* Both parsers, with all split sizes, give the same result. Returns whether the line is valid. */
static bool assert_agreed(const char *content, int64_t bytes)
{
    static fields whole, parts, other;
    const bool good = read_in_parts(content, bytes, bytes ? bytes : 1, false, &whole);
    const int otherwise = read_as_json(content, bytes, &other);
    if (otherwise >= 0 && otherwise != good)
        fail_msg("\"%.*s\": %d, otherwise %d: %s", (int)bytes, content, good, otherwise,
                 whole.problem);
    for (int64_t part = 1; part <= 40; part += part < 18 ? 1 : 7) {
        assert_int_equal(read_in_parts(content, bytes, part, part % 2, &parts), good);
        if (good) assert_memory_equal(&parts, &whole, sizeof whole);
        else assert_string_equal(parts.problem, whole.problem);
    }
    for (int32_t i = 0; i < HR_LINE_FIELDS && good && otherwise == 1; i++) {
        assert_int_equal(whole.bytes[i], other.bytes[i]);
        assert_memory_equal(whole.text[i], other.text[i], (size_t)other.bytes[i]);
    }
    return good;
}

static void assert_good(const char *content, const char *text)
{
    static fields f;
    assert_true(assert_agreed(content, (int64_t)strlen(content)));
    assert_true(read_in_parts(content, (int64_t)strlen(content), MOST, false, &f));
    assert_int_equal(f.bytes[0], strlen(text));
    assert_memory_equal(f.text[0], text, strlen(text));
}

static void assert_bad(const char *content, const char *problem)
{
    static fields f;
    assert_false(assert_agreed(content, (int64_t)strlen(content)));
    assert_false(read_in_parts(content, (int64_t)strlen(content), MOST, false, &f));
    assert_string_equal(f.problem, problem);
}

static void texts_are_decoded_at_any_position(void **state)
{
    (void)state;
    assert_good("{\"text\":\"\"}", "");
    assert_good(" {\t\"text\" : \"a b\" }\r", "a b");
    assert_good("{\"text\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud834\\udd1e\"}",
                "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9d\x84\x9e");
    assert_good("{\"id\":[1,-0.5e+3,true,false,null,{\"text\":1}],\"text\":\"\xe2\x82\xac\"}",
                "\xe2\x82\xac");
    assert_good("{\"te\\u0078t\":\"by its escapes\"}", "by its escapes");
    assert_good("{\"textual\":1,\"tex\":2,\"\":{},\"text\":\"this\",\"more\":[]}", "this");
    assert_good("{}", "");
}

static void an_escaped_zero_byte_is_a_character(void **state)
{
    (void)state;
    static fields f;
    const char *content = "{\"text\":\"a\\u0000b\"}";
    assert_true(read_in_parts(content, (int64_t)strlen(content), MOST, false, &f));
    assert_int_equal(f.bytes[0], 3);
    assert_memory_equal(f.text[0], "a\0b", 3);
    assert_false(read_in_parts("{\"text\":\"a\0b\"}", 14, MOST, false, &f));
    assert_string_equal(f.problem, "a control character in a string");
}

static void lines_that_are_not_objects_with_texts_are_refused(void **state)
{
    (void)state;
    assert_bad("", "nothing");
    assert_bad("[]", "not a JSON object");
    assert_bad("{\"text\":\"a\"} {}", "more text after the object");
    assert_bad("{\"text\":\"a\"", "unexpected end");
    assert_bad("{\"text\":\"a", "unexpected end");
    assert_bad("{\"text\":1}", "the field is not a string");
    assert_bad("{\"text\":null}", "the field is not a string");
    assert_bad("{\"text\":\"a\",\"text\":\"b\"}", "a field occurs twice");
    assert_bad("{\"text\" \"a\"}", "no colon after a key");
    assert_bad("{text:\"a\"}", "no quoted key");
    assert_bad("{\"a\":1,}", "no quoted key");
    assert_bad("{\"a\":[1,]}", "no value");
    assert_bad("{\"a\":tru}", "no value");
    assert_bad("{\"a\":01}", "neither a comma nor the closing bracket");
    assert_bad("{\"a\":1.}", "an invalid number");
    assert_bad("{\"a\":[1}", "neither a comma nor the closing bracket");
    assert_bad("{\"text\":\"\\x\"}", "an unknown escape, or half a surrogate pair");
    assert_bad("{\"text\":\"\\ud834\"}", "an unknown escape, or half a surrogate pair");
    assert_bad("{\"text\":\"\\udd1e\"}", "an unknown escape, or half a surrogate pair");
    assert_bad("{\"text\":\"\x01\"}", "a control character in a string");
    assert_bad("{\"text\":\"\xed\xa0\x80\"}", "bytes that are not UTF-8");
    assert_bad("{\"text\":\"\xc3\"}", "bytes that are not UTF-8");
    assert_bad("{\"text\":\"\xe2\x82", "bytes that are not UTF-8");
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    static fields f;
    char content[300] = "{\"a\":";
    for (int depth = 1; depth < HR_LINE_DEPTH_MAX; depth++) strcat(content, "[");
    for (int depth = 1; depth < HR_LINE_DEPTH_MAX; depth++) strcat(content, "]");
    strcat(content, "}");
    assert_true(read_in_parts(content, (int64_t)strlen(content), MOST, false, &f));
    memmove(content + 6, content + 5, strlen(content + 5) + 1);
    assert_false(read_in_parts(content, (int64_t)strlen(content), MOST, false, &f));
    assert_string_equal(f.problem, "nested more than 64 deep");
}

/* Lines of random fragments with a few random bytes. */
static void both_parsers_agree_on_random_lines(void **state)
{
    (void)state;
    static const char *const pieces[] = { "{",
                                          "}",
                                          "[",
                                          "]",
                                          "\"text\"",
                                          ":",
                                          ",",
                                          "\"a\"",
                                          "\"\\n\"",
                                          "1",
                                          "-2.5",
                                          "true",
                                          "null",
                                          "\"\\u00e9\"",
                                          "\"\xc3\xa9\"",
                                          "\"prompt\"",
                                          " ",
                                          "{\"text\":\"",
                                          "\"}",
                                          "\\ud834\\udd1e",
                                          "e",
                                          "\"" };
    const uint64_t seed = 20261122;
    uint64_t random = seed;
    int64_t good = 0;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int64_t i = 0; i < 20000 * HR_COUNT; i++) {
        static char content[MOST];
        random = hr_random_mix(random + 1);
        int64_t bytes = 0;
        if (random & 1) {
            static const char *const values[] = {
                "1", "[]", "{\"text\":[0.5e-7]}", "\"\\ud834\\udd1e\"", "null", "[true,{}]"
            };
            bytes = sprintf(content, "{\"text\":\"some\\ttext\",\"k\": %s}",
                            values[(random >> 1) % (sizeof values / sizeof *values)]);
        } else {
            const uint64_t count = random >> 8 & 7;
            for (uint64_t k = 0; k < count; k++) {
                random = hr_random_mix(random + 1);
                bytes += sprintf(content + bytes, "%s",
                                 pieces[random % (sizeof pieces / sizeof *pieces)]);
            }
        }
        if (bytes && random >> 21 & 1) content[random % (uint64_t)bytes] = (char)(random >> 30);
        good += assert_agreed(content, bytes);
    }
    assert_true(good > 500);
    print_message("%lld lines were good\n", (long long)good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_decoded_at_any_position),
        cmocka_unit_test(an_escaped_zero_byte_is_a_character),
        cmocka_unit_test(lines_that_are_not_objects_with_texts_are_refused),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(both_parsers_agree_on_random_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
