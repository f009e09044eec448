/* SPDX-License-Identifier: Apache-2.0 */
/* base/json.h - a JSON pull parser over text in memory.
 *
 * It reads files from other software where nothing may be allocated: it builds no tree and decodes
 * strings in place. It accepts exactly RFC 8259. The text is valid only when HR_JSON_END is
 * reached. */
#ifndef HR_BASE_JSON_H
#define HR_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

enum { HR_JSON_DEPTH_MAX = 32 };

typedef enum {
    HR_JSON_WRONG, /* an error: `problem` describes it, `at` is its byte; no token follows */
    HR_JSON_END,   /* the one value is complete, and only blanks follow */
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

/* The parser; create it with hr_json_over. `value` is the text of a key or a string (decoded,
 * followed by a null byte), or of a number or word (as written, no null byte). It stays valid as
 * long as the text. */
typedef struct {
    char *text;
    int64_t bytes, at;
    const char *value, *problem;
    int64_t value_bytes;
    int32_t depth;                /* number of open containers */
    char open[HR_JSON_DEPTH_MAX]; /* their brackets */
    uint8_t expects;
    bool zeros; /* option: accept \u0000 in strings, as a zero byte of `value` */
} hr_json;

/* Starts parsing text [bytes]. The text is modified: keys and strings are decoded in place. */
hr_json hr_json_over(char *text, int64_t bytes);

/* Same for the contents of a file: skips a byte order mark (U+FEFF) at the start, as RFC 8259
 * allows. */
hr_json hr_json_over_file(char *text, int64_t bytes);

/* Bytes of a byte order mark at the start of a text; 0: it has none. */
int64_t hr_json_mark_bytes(const char *text, int64_t bytes);

/* Returns the next token. Keys and strings are valid UTF-8 with paired surrogates, and have no zero
 * byte unless `zeros` is set. */
hr_json_kind hr_json_next(hr_json *json);

/* Skips the rest of the value that started with token `kind`. Returns false when it is invalid. */
bool hr_json_skip(hr_json *json, hr_json_kind kind);

/* hr_json_hex: the value of four hexadecimal digits, -1 when they are invalid. hr_json_put_point:
 * writes a code point as UTF-8 and returns its number of bytes. */
int32_t hr_json_hex(const char digits[4]);
int64_t hr_json_put_point(char out[4], int32_t point);

/* Length in bytes of the UTF-8 character at the start of text [bytes > 0]; 0 when it is invalid. */
int64_t hr_json_character(const char *text, int64_t bytes);

/* Writes text [bytes] into out [room] as the inside of a JSON string, with escapes. An invalid
 * UTF-8 byte becomes U+FFFD. Stops before the first character that does not fit. Writes no null
 * byte.
 *
 *   taken  out; bytes of the text that were written: all, if there was room
 *
 * Returns the bytes written, at most six per input byte. */
int64_t hr_json_escape(char *out, int64_t room, const char *text, int64_t bytes, int64_t *taken);

/* Converts the number just read to an integer or a real. Returns false and leaves *value unchanged
 * when it is not one or is out of range. */
bool hr_json_integer(const hr_json *json, int64_t *value);
bool hr_json_real(const hr_json *json, double *value);

/* Returns true when the key or string just read equals `text`. */
bool hr_json_is(const hr_json *json, const char *text);

#endif
