/* SPDX-License-Identifier: Apache-2.0 */
/* verify_json_test.c - the verifier's JSON reader, compared with jansson. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/random.h"
#include "judge/verify_json.h"

enum { SEED = 20261122, CASES = 20000 * HR_COUNT };

static hr_status parse(const char *text, size_t length, hr_judged_json *json, int32_t *line)
{
    char *own = malloc(length + 1);
    assert_non_null(own);
    memcpy(own, text, length);
    return hr_judged_parse(own, (int64_t)length, json, line);
}

static bool is_json(const char *text, size_t length)
{
    hr_judged_json json;
    int32_t line = 0;
    const hr_status status = parse(text, length, &json, &line);
    hr_judged_json_close(&json);
    assert_true(status == HR_OK || (status == HR_CORRUPT && line > 0));
    return status == HR_OK;
}

static void hold(const hr_judged_json *json, const hr_judged_value *value, const json_t *other)
{
    const char *name;
    size_t index;
    json_t *element;
    const hr_judged_value *at = value + 1;
    switch (json_typeof(other)) {
    case JSON_OBJECT:
        assert_int_equal(value->type, HR_JUDGED_OBJECT);
        assert_int_equal(value->count, json_object_size(other));
        json_object_foreach((json_t *)other, name, element)
        {
            const hr_judged_value *hint = NULL;
            const hr_judged_value *member = hr_judged_member(json, value, name, &hint);
            assert_non_null(member);
            hold(json, member, element);
        }
        break;
    case JSON_ARRAY:
        assert_int_equal(value->type, HR_JUDGED_LIST);
        assert_int_equal(value->count, json_array_size(other));
        json_array_foreach(other, index, element)
        {
            hold(json, at, element);
            at = hr_judged_after(json, at);
        }
        break;
    case JSON_STRING:
        assert_int_equal(value->type, HR_JUDGED_TEXT);
        assert_int_equal(value->count, json_string_length(other));
        assert_string_equal(value->text, json_string_value(other));
        break;
    case JSON_INTEGER:
        assert_int_equal(value->type, HR_JUDGED_INTEGER);
        assert_true(value->integer == json_integer_value(other));
        break;
    case JSON_NULL: assert_int_equal(value->type, HR_JUDGED_NULL); break;
    default: assert_int_equal(value->type, HR_JUDGED_OTHER);
    }
}

static const char sample[] =
    "{\"version\":1, \"names\":[\"a\\u00e9\\n\",\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\",\"\"],\n"
    "\t\"pairs\":[[0,\"write\"],[12,\"update\"]], \"view_of\":null,\"yes\":true,\"no\":false,\r\n"
    "\"numbers\":[-1,0,-0,1.5,10,9223372036854775807,-9223372036854775808,2E3],\n"
    "\"\\ud83d\\ude00\":{\"empty\":{},\"none\":[ ]},\"escapes\":\"\\\"\\\\\\/\\b\\f\\r\\t\"}\n";

static void both_readers_accept_and_refuse_the_same(void **state)
{
    int32_t taken = 0;
    (void)state;
    for (uint64_t i = 0; i < (uint64_t)CASES; i++) {
        static const char signs[] = "\"\\{}[],:0123456789-. \n\tu\x01\x80\xc0\xe0\xf0\xff";
        char text[sizeof sample];
        size_t length = strlen(sample);
        hr_judged_json json;
        int32_t line = 0;
        memcpy(text, sample, sizeof sample);
        for (uint64_t k = 0; k < i % 4; k++) {
            const uint64_t bits = hr_random_mix(SEED + 8 * i + k);
            const size_t at = bits % length;
            if (bits >> 62 == 0) memmove(&text[at], &text[at + 1], --length - at);
            else text[at] = signs[(bits >> 32) % (sizeof signs - 1)];
        }
        json_t *other = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
        const hr_status status = parse(text, length, &json, &line);
        assert_int_equal(status, other ? HR_OK : HR_CORRUPT);
        if (other) hold(&json, json.values, other);
        taken += other != NULL;
        json_decref(other);
        hr_judged_json_close(&json);
    }
    print_message("%d of %d texts are JSON\n", taken, CASES);
    assert_true(taken > CASES / 4 && taken < CASES);
}

static void a_duplicate_name_is_refused(void **state)
{
    char text[4096] = "{";
    (void)state;
    assert_false(is_json("{\"a\":1,\"b\":2,\"a\":3}", 19));
    assert_true(is_json("{\"ab\":1,\"cb\":2,\"b\":{\"ab\":3}}", 28));
    for (int32_t i = 0; i < 100; i++)
        snprintf(text + strlen(text), 32, "%s\"name %d\":%d", i ? "," : "", i, i);
    const size_t length = strlen(text);
    text[length] = '}';
    assert_true(is_json(text, length + 1));
    strcpy(text + length, ",\"name 50\":1}");
    assert_false(is_json(text, strlen(text)));
}

static void invalid_json_is_refused_with_its_line(void **state)
{
    static const char *const texts[] = { "",
                                         "1",
                                         "\"a\"",
                                         "null",
                                         "[1] 2",
                                         "[01]",
                                         "[1.]",
                                         "[+1]",
                                         "[,",
                                         "[1,]",
                                         "{\"a\"}",
                                         "{a:1}",
                                         "[-]",
                                         "[1e]",
                                         "[\"\\x\"]",
                                         "[\"\\u0000\"]",
                                         "]",
                                         "[\"\\ud800\"]",
                                         "[\"\\udc00\"]",
                                         "[9223372036854775808]",
                                         "[\"a\nb\"]",
                                         "[nul]" };
    static const char late[] = "[1,\n\"\\n\\n\",\n x]";
    hr_judged_json json;
    int32_t line = 0;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(is_json(texts[i], strlen(texts[i])));
    assert_int_equal(parse(late, strlen(late), &json, &line), HR_CORRUPT);
    assert_int_equal(line, 3);
    hr_judged_json_close(&json);
}

static void lists_nest_at_most_64_deep(void **state)
{
    char text[130];
    (void)state;
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    assert_true(is_json(text + 1, 128));
    assert_false(is_json(text, 130));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_readers_accept_and_refuse_the_same),
        cmocka_unit_test(a_duplicate_name_is_refused),
        cmocka_unit_test(invalid_json_is_refused_with_its_line),
        cmocka_unit_test(lists_nest_at_most_64_deep),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
