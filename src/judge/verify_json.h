/* SPDX-License-Identifier: Apache-2.0 */
/* judge/verify_json.h - parses JSON to one flat list of values in text order.
 *
 * A plan file has a value for every five bytes, and most are read once. So a value is a record in a
 * list instead of a separate object, text stays in the input buffer, and the members of a list or
 * an object follow it directly. */
#ifndef HR_JUDGE_VERIFY_JSON_H
#define HR_JUDGE_VERIFY_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

typedef enum {
    HR_JUDGED_NULL,
    HR_JUDGED_OTHER, /* true, false, a number that is not an integer */
    HR_JUDGED_INTEGER,
    HR_JUDGED_TEXT,
    HR_JUDGED_LIST,
    HR_JUDGED_OBJECT /* names and values alternate */
} hr_judged_type;

typedef struct {
    union {
        int64_t integer;
        const char *text; /* terminated by a zero; contains none */
        int64_t next;     /* of a list or an object: index of the value after its last member */
    };
    int32_t count; /* bytes of text; values of a list; names of an object */
    hr_judged_type type;
} hr_judged_value;

typedef struct {
    char *text;              /* the input, modified in place */
    hr_judged_value *values; /* the first is the top-level value */
    int32_t count, room;
} hr_judged_json;

/* Parses `text`, `bytes` long with one more writable byte, and takes ownership of it.
 *
 *   line  out: the line of a syntax error
 *
 * An object may not have a name twice. Values nest at most 64 deep. Errors: CORRUPT, without
 * a sentence; FAILURE out of memory. Close the result whatever the status. */
HR_MUST_CHECK hr_status hr_judged_parse(char *text, int64_t bytes, hr_judged_json *json,
                                        int32_t *line);
void hr_judged_json_close(hr_judged_json *json);

/* The value after this one and its members. */
static inline const hr_judged_value *hr_judged_after(const hr_judged_json *json,
                                                     const hr_judged_value *value)
{
    return value->type < HR_JUDGED_LIST ? value + 1 : &json->values[value->next];
}

/* The value of an object's member; null: no such member, or no object.
 *
 *   hint  in and out: the member after the last one requested from this object, null at first;
 *          members are mostly requested in order */
const hr_judged_value *hr_judged_member(const hr_judged_json *json, const hr_judged_value *object,
                                        const char *name, const hr_judged_value **hint);

#endif
