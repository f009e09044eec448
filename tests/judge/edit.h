/* SPDX-License-Identifier: Apache-2.0 */
/* tests/judge/edit.h - changes one value of a plan. */
#ifndef HR_TESTS_JUDGE_EDIT_H
#define HR_TESTS_JUDGE_EDIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static inline json_t *parse(const char *text)
{
    char json[512];
    snprintf(json, sizeof json, "%s", text);
    for (char *at = json; *at; at++)
        if (*at == '\'') *at = '"';
    json_t *value = json_loads(json, JSON_DECODE_ANY, 0);
    assert_non_null(value);
    return value;
}

/* Sets the value at a path such as "buffers/3/offset"; one past the end of a list appends to it;
 * "-" removes the value. */
static inline void set(json_t *root, const char *where, const char *value)
{
    char parts[128], *part = parts, *slash;
    snprintf(parts, sizeof parts, "%s", where);
    json_t *at = root;
    for (; (slash = strchr(part, '/')); part = slash + 1) {
        *slash = 0;
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(part)) : json_object_get(at, part);
        assert_non_null(at);
    }
    if (!strcmp(value, "-")) {
        assert_int_equal(json_is_array(at) ? json_array_remove(at, (size_t)atoi(part))
                                           : json_object_del(at, part),
                         0);
        return;
    }
    json_t *made = parse(value);
    if (!json_is_array(at)) assert_int_equal(json_object_set_new(at, part, made), 0);
    else if ((size_t)atoi(part) == json_array_size(at))
        assert_int_equal(json_array_append_new(at, made), 0);
    else assert_int_equal(json_array_set_new(at, (size_t)atoi(part), made), 0);
}

#endif
