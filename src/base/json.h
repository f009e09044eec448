/* SPDX-License-Identifier: Apache-2.0 */
/* base/json.h - JSON, one thing after the other, out of text that is in memory.
 *
 * For files of others that are read where nothing may be allocated: no tree is built, and strings
 * are decoded where they lie. RFC 8259 and no more; a text is whole only when HR_JSON_END comes. */
#ifndef HR_BASE_JSON_H
#define HR_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

enum { HR_JSON_DEPTH_MAX = 32 };

typedef enum {
    HR_JSON_WRONG, /* `problem` says what at byte `at`; nothing else comes any more */
    HR_JSON_END,   /* one value was there, and blanks behind it */
    HR_JSON_OBJECT,
    HR_JSON_ARRAY,
    HR_JSON_CLOSE, /* of the innermost object or array */
    HR_JSON_KEY,   /* its value comes next */
    HR_JSON_STRING,
    HR_JSON_NUMBER,
    HR_JSON_TRUE,
    HR_JSON_FALSE,
    HR_JSON_NULL
} hr_json_kind;

/* Start from hr_json_over. `value` is the text of a key, a string (decoded, a null behind it), a
 * number or a word (as written, no null behind it), until the text goes. */
typedef struct {
    char *text;
    int64_t bytes, at;
    const char *value, *problem;
    int64_t value_bytes;
    int32_t depth;                /* containers open */
    char open[HR_JSON_DEPTH_MAX]; /* their brackets */
    uint8_t expects;
    bool zeros; /* set it: \u0000 in a string is a zero byte of `value`, and not wrong */
} hr_json;

/* text [bytes], written to: keys and strings are decoded in place. */
hr_json hr_json_over(char *text, int64_t bytes);

/* The same for a whole file of others: a byte order mark (U+FEFF) at its beginning is passed over,
 * as RFC 8259 allows a parser. */
hr_json hr_json_over_file(char *text, int64_t bytes);

/* The next thing. Keys and strings are UTF-8, without a zero byte unless `zeros`; surrogates come
 * in pairs. */
hr_json_kind hr_json_next(hr_json *json);

/* Passes over the rest of the value of which `kind` was the beginning; false when it is wrong. */
bool hr_json_skip(hr_json *json, hr_json_kind kind);

/* Four hexadecimal digits, -1 where they are none; and a character as UTF-8: its bytes. */
int32_t hr_json_hex(const char digits[4]);
int64_t hr_json_put_point(char out[4], int32_t point);

/* Bytes of the UTF-8 character that text [bytes > 0] begins with; 0 where it begins with none. */
int64_t hr_json_character(const char *text, int64_t bytes);

/* Writes text [bytes] into out [room] as the inside of a JSON string: what it cannot hold is
 * escaped, and each byte that is no UTF-8 becomes U+FFFD. Ends before the first character that does
 * not fit. No null is put behind.
 *
 *   taken  out; bytes of the text that were written: all, if there was room
 *
 * Returns the bytes written, at most six for one. */
int64_t hr_json_escape(char *out, int64_t room, const char *text, int64_t bytes, int64_t *taken);

/* A number that was just read as a whole number or any; false, and nothing written, when it is none
 * or out of range. */
bool hr_json_integer(const hr_json *json, int64_t *value);
bool hr_json_real(const hr_json *json, double *value);

/* Whether the key or string just read is this. */
bool hr_json_is(const hr_json *json, const char *text);

#endif
