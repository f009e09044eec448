/* SPDX-License-Identifier: Apache-2.0 */
/* base/json.c - a JSON parser as a small state machine: the expected token and a stack of open
 * brackets. */
#include "base/json.h"

#include <string.h>

#include "base/number.h"

enum { VALUE, VALUE_OR_CLOSE, KEY_OR_CLOSE, COMMA_OR_CLOSE, NOTHING, LOST };

hr_json hr_json_over(char *text, int64_t bytes)
{
    return (hr_json){ .text = text, .bytes = bytes, .expects = VALUE };
}

int64_t hr_json_mark_bytes(const char *text, int64_t bytes)
{
    static const char mark[] = "\xef\xbb\xbf";
    const int64_t mark_bytes = sizeof mark - 1;
    return bytes >= mark_bytes && !memcmp(text, mark, sizeof mark - 1) ? mark_bytes : 0;
}

hr_json hr_json_over_file(char *text, int64_t bytes)
{
    hr_json json = hr_json_over(text, bytes);
    json.at = hr_json_mark_bytes(text, bytes);
    return json;
}

static hr_json_kind fail(hr_json *json, const char *problem)
{
    if (!json->problem) json->problem = problem;
    json->expects = LOST;
    return HR_JSON_WRONG;
}

/* The current byte; 0 at the end. A zero byte in the text is the same error as an early end. */
static char current_byte(const hr_json *json)
{
    return json->at < json->bytes ? json->text[json->at] : 0;
}

static void skip_blanks(hr_json *json)
{
    while (current_byte(json) == ' ' || current_byte(json) == '\t' || current_byte(json) == '\n' ||
           current_byte(json) == '\r')
        json->at++;
}

static void after_value(hr_json *json)
{
    json->expects = json->depth ? COMMA_OR_CLOSE : NOTHING;
}

/* ---- strings */

int32_t hr_json_hex(const char digits[4])
{
    int32_t value = 0;
    for (int64_t i = 0; i < 4; i++) {
        const char c = digits[i];
        if (c >= '0' && c <= '9') value = value * 16 + c - '0';
        else if (c >= 'a' && c <= 'f') value = value * 16 + c - 'a' + 10;
        else if (c >= 'A' && c <= 'F') value = value * 16 + c - 'A' + 10;
        else return -1;
    }
    return value;
}

/* Parses four hexadecimal digits at `at`; -1 when the text ends before them. */
static int32_t parse_hex(const hr_json *json, int64_t at)
{
    return at + 4 > json->bytes ? -1 : hr_json_hex(json->text + at);
}

int64_t hr_json_put_point(char out[4], int32_t point)
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char)(0xc0 | point >> 6);
        out[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(0xe0 | point >> 12);
        out[1] = (char)(0x80 | (point >> 6 & 0x3f));
        out[2] = (char)(0x80 | (point & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 0x3f));
    out[2] = (char)(0x80 | (point >> 6 & 0x3f));
    out[3] = (char)(0x80 | (point & 0x3f));
    return 4;
}

/* Decodes the escape after a backslash. Writes at most as many bytes as it reads; returns 0 when
 * the escape is invalid. */
static int64_t unescape(hr_json *json, char *out)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *letter = current_byte(json) ? strchr(letters, current_byte(json)) : NULL;
    if (letter) {
        *out = meant[letter - letters];
        json->at++;
        return 1;
    }
    if (current_byte(json) != 'u') return 0;
    int32_t point = parse_hex(json, json->at + 1);
    json->at += 5;
    if (point < !json->zeros || (point >= 0xdc00 && point < 0xe000)) return 0;
    if (point >= 0xd800 && point < 0xdc00) {
        const bool pair = json->at + 1 < json->bytes && json->text[json->at] == '\\' &&
                          json->text[json->at + 1] == 'u';
        const int32_t low = pair ? parse_hex(json, json->at + 2) : -1;
        if (low < 0xdc00 || low >= 0xe000) return 0;
        json->at += 6;
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    }
    return hr_json_put_point(out, point);
}

int64_t hr_json_character(const char *characters, int64_t there)
{
    const uint8_t *text = (const uint8_t *)characters;
    if (*text < 0x80) return 1;
    const int64_t bytes = *text >= 0xf0 ? 4 : *text >= 0xe0 ? 3 : 2;
    if (*text < 0xc2 || *text > 0xf4 || bytes > there) return 0;
    for (int64_t i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    const bool longer_than_needed = (*text == 0xe0 && text[1] < 0xa0) ||
                                    (*text == 0xf0 && text[1] < 0x90);
    const bool no_point = (*text == 0xed && text[1] >= 0xa0) || (*text == 0xf4 && text[1] >= 0x90);
    return longer_than_needed || no_point ? 0 : bytes;
}

/* Returns the number of bytes of the escape; 0: the character needs none. */
static int64_t escape(char out[6], char c)
{
    static const char letters[] = "\"\\bfnrt", meant[] = "\"\\\b\f\n\r\t",
                      hex[] = "0123456789abcdef";
    const char *letter = c ? strchr(meant, c) : NULL;
    if (letter) {
        out[0] = '\\';
        out[1] = letters[letter - meant];
        return 2;
    }
    if ((uint8_t)c >= ' ' && c != 127) return 0;
    memcpy(out, "\\u00", 4);
    out[4] = hex[c >> 4];
    out[5] = hex[c & 15];
    return 6;
}

int64_t hr_json_escape(char *out, int64_t room, const char *text, int64_t bytes, int64_t *taken)
{
    const char replacement[] = "\xef\xbf\xbd";
    int64_t at = 0, used = 0;
    while (at < bytes) {
        char escaped[6];
        const int64_t length = hr_json_character(text + at, bytes - at);
        int64_t put = length == 1 ? escape(escaped, text[at]) : 0;
        const char *from = put ? escaped : length ? text + at : replacement;
        if (!put) put = length ? length : (int64_t)sizeof replacement - 1;
        if (put > room - used) break;
        memcpy(out + used, from, (size_t)put);
        used += put;
        at += length ? length : 1;
    }
    *taken = at;
    return used;
}

/* Decodes in place: the decoded text is never longer than its source, and the closing quote leaves
 * room for the null byte. */
static hr_json_kind parse_string(hr_json *json, hr_json_kind kind)
{
    char *const first = json->text + json->at + 1, *out = first;
    for (json->at++; current_byte(json) != '"';) {
        const uint8_t c = (uint8_t)current_byte(json);
        if (json->at >= json->bytes) return fail(json, "a string without an end");
        if (c < ' ') return fail(json, "a control character in a string");
        if (c == '\\') {
            json->at++;
            const int64_t written = unescape(json, out);
            if (!written) return fail(json, "an unknown escape");
            out += written;
            continue;
        }
        const int64_t bytes = hr_json_character(json->text + json->at, json->bytes - json->at);
        if (!bytes) return fail(json, "bytes that are not UTF-8");
        memmove(out, json->text + json->at, (size_t)bytes);
        out += bytes;
        json->at += bytes;
    }
    json->at++;
    *out = 0;
    json->value = first;
    json->value_bytes = out - first;
    return kind;
}

/* ---- numbers and words */

static bool parse_digits(hr_json *json)
{
    const int64_t first = json->at;
    while (current_byte(json) >= '0' && current_byte(json) <= '9') json->at++;
    return json->at > first;
}

static hr_json_kind parse_number(hr_json *json)
{
    const int64_t first = json->at;
    if (current_byte(json) == '-') json->at++;
    const int64_t digits = json->at;
    if (!parse_digits(json)) return fail(json, "a number without digits");
    if (json->text[digits] == '0' && json->at > digits + 1)
        return fail(json, "a number with a leading 0");
    if (current_byte(json) == '.') {
        json->at++;
        if (!parse_digits(json)) return fail(json, "no digit after the decimal point");
    }
    if (current_byte(json) == 'e' || current_byte(json) == 'E') {
        json->at++;
        if (current_byte(json) == '+' || current_byte(json) == '-') json->at++;
        if (!parse_digits(json)) return fail(json, "an exponent without digits");
    }
    json->value = json->text + first;
    json->value_bytes = json->at - first;
    return HR_JSON_NUMBER;
}

static hr_json_kind parse_word(hr_json *json)
{
    static const struct {
        const char *word;
        hr_json_kind kind;
    } words[] = { { "true", HR_JSON_TRUE }, { "false", HR_JSON_FALSE }, { "null", HR_JSON_NULL } };
    for (int32_t i = 0; i < 3; i++) {
        const int64_t bytes = (int64_t)strlen(words[i].word);
        if (bytes > json->bytes - json->at) continue;
        if (memcmp(json->text + json->at, words[i].word, (size_t)bytes)) continue;
        json->value = json->text + json->at;
        json->value_bytes = bytes;
        json->at += bytes;
        return words[i].kind;
    }
    return fail(json, json->at < json->bytes ? "no value" : "unexpected end");
}

/* ---- grammar */

static hr_json_kind open_container(hr_json *json, char bracket)
{
    if (json->depth == HR_JSON_DEPTH_MAX) return fail(json, "nested more than 32 deep");
    json->open[json->depth++] = bracket;
    json->at++;
    json->expects = bracket == '{' ? KEY_OR_CLOSE : VALUE_OR_CLOSE;
    return bracket == '{' ? HR_JSON_OBJECT : HR_JSON_ARRAY;
}

static hr_json_kind close_container(hr_json *json)
{
    json->at++;
    json->depth--;
    after_value(json);
    return HR_JSON_CLOSE;
}

static hr_json_kind parse_key(hr_json *json)
{
    if (current_byte(json) != '"') return fail(json, "no quoted key");
    if (parse_string(json, HR_JSON_KEY) == HR_JSON_WRONG) return HR_JSON_WRONG;
    skip_blanks(json);
    if (current_byte(json) != ':') return fail(json, "no colon after a key");
    json->at++;
    json->expects = VALUE;
    return HR_JSON_KEY;
}

static hr_json_kind parse_value(hr_json *json)
{
    const char c = current_byte(json);
    if (c == '{' || c == '[') return open_container(json, c);
    hr_json_kind kind;
    if (c == '"') kind = parse_string(json, HR_JSON_STRING);
    else if (c == '-' || (c >= '0' && c <= '9')) kind = parse_number(json);
    else kind = parse_word(json);
    if (kind != HR_JSON_WRONG) after_value(json);
    return kind;
}

hr_json_kind hr_json_next(hr_json *json)
{
    if (json->expects == LOST) return HR_JSON_WRONG;
    skip_blanks(json);
    if (json->expects == NOTHING)
        return json->at == json->bytes ? HR_JSON_END : fail(json, "more text after the value");
    const char close = json->depth && json->open[json->depth - 1] == '{' ? '}' : ']';
    const bool closes = current_byte(json) == close && json->depth;
    switch (json->expects) {
    case COMMA_OR_CLOSE:
        if (closes) return close_container(json);
        if (current_byte(json) != ',') return fail(json, "neither a comma nor the closing bracket");
        json->at++;
        skip_blanks(json);
        return close == '}' ? parse_key(json) : parse_value(json);
    case KEY_OR_CLOSE: return closes ? close_container(json) : parse_key(json);
    case VALUE_OR_CLOSE: return closes ? close_container(json) : parse_value(json);
    default: return parse_value(json);
    }
}

bool hr_json_skip(hr_json *json, hr_json_kind kind)
{
    if (kind == HR_JSON_KEY) kind = hr_json_next(json);
    if (kind != HR_JSON_OBJECT && kind != HR_JSON_ARRAY) return kind != HR_JSON_WRONG;
    const int32_t outside = json->depth - 1;
    while (kind != HR_JSON_WRONG && json->depth > outside) kind = hr_json_next(json);
    return kind != HR_JSON_WRONG;
}

/* ---- values */

enum { NUMBER_BYTES = 64 };

static bool copy_number(const hr_json *json, char text[NUMBER_BYTES])
{
    if (json->value_bytes >= NUMBER_BYTES) return false;
    memcpy(text, json->value, (size_t)json->value_bytes);
    text[json->value_bytes] = 0;
    return true;
}

bool hr_json_integer(const hr_json *json, int64_t *value)
{
    char text[NUMBER_BYTES];
    return copy_number(json, text) && hr_integer_parse(text, value);
}

bool hr_json_real(const hr_json *json, double *value)
{
    char text[NUMBER_BYTES];
    return copy_number(json, text) && hr_real_parse(text, value);
}

bool hr_json_is(const hr_json *json, const char *text)
{
    const int64_t bytes = (int64_t)strlen(text);
    return bytes == json->value_bytes && !memcmp(json->value, text, (size_t)bytes);
}
