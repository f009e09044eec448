/* SPDX-License-Identifier: Apache-2.0 */
/* plan/verify_json.h - JSON text into one list of values, in the order of the text.
 *
 * A plan file has a value for every five bytes, and most are looked at once. So a value is a record
 * in a list and no object of its own, text stays where it was read, and a list or an object is
 * followed by what it holds. */
#ifndef HR_PLAN_VERIFY_JSON_H
#define HR_PLAN_VERIFY_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

typedef enum {
    HR_JUDGED_NULL,
    HR_JUDGED_OTHER, /* true, false, a number that is not whole */
    HR_JUDGED_INTEGER,
    HR_JUDGED_TEXT,
    HR_JUDGED_LIST,
    HR_JUDGED_OBJECT /* names and values in turn */
} hr_judged_type;

typedef struct {
    union {
        int64_t integer;
        const char *text; /* ends with a zero, and holds none */
        int64_t next;     /* of a list or an object: index of the value after all that it holds */
    };
    int32_t count; /* bytes of text; values of a list; names of an object */
    hr_judged_type type;
} hr_judged_value;

typedef struct {
    char *text;              /* of the file, changed in place */
    hr_judged_value *values; /* the first is the whole */
    int32_t count, room;
} hr_judged_json;

/* Takes text over: `bytes` of it and one more that may be written.
 *
 *   line  out: where it stops being JSON
 *
 * Objects may not have a name twice, and nothing is nested deeper than 64. Errors: CORRUPT, without
 * a sentence; FAILURE out of memory. Closed whatever the status. */
HR_MUST_CHECK hr_status hr_judged_parse(char *text, int64_t bytes, hr_judged_json *json,
                                        int32_t *line);
void hr_judged_json_close(hr_judged_json *json);

/* The value after this one and all that it holds. */
static inline const hr_judged_value *hr_judged_after(const hr_judged_json *json,
                                                     const hr_judged_value *value)
{
    return value->type < HR_JUDGED_LIST ? value + 1 : &json->values[value->next];
}

/* The value of an object's member, null if there is none or no object.
 *
 *   hint  in and out: the member after the last of the object that was asked, null at first;
 *         members are mostly asked in order */
const hr_judged_value *hr_judged_member(const hr_judged_json *json, const hr_judged_value *object,
                                        const char *name, const hr_judged_value **hint);

#endif
