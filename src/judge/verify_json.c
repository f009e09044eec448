/* SPDX-License-Identifier: Apache-2.0 */
/* judge/verify_json.c - a strict JSON reader (RFC 8259): valid UTF-8, no zero byte in text,
 * integers of 64 bits. Uses an explicit stack instead of recursion. */
#include "judge/verify_json.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 64,
    VALUES_FIRST = 1 << 12,
    FEW_NAMES = 16,
    SMALL_DIGITS = 18 /* of integers that always fit in 64 bits */
};

typedef struct {
    hr_judged_json *json;
    char *at, *end;
    int32_t line;
    bool no_memory;
} reader;

/* ---- values */

/* False: out of memory or of indices. */
static bool make_room(reader *r)
{
    hr_judged_json *json = r->json;
    const int32_t room = json->room ? json->room * 2 : VALUES_FIRST;
    hr_judged_value *values = json->room > INT32_MAX / 2 - 1
                                  ? NULL
                                  : realloc(json->values, (size_t)room * sizeof *values);
    r->no_memory = !values;
    if (!values) return false;
    json->values = values;
    json->room = room;
    return true;
}

/* Index of a new value; -1: no room. */
static inline int32_t add(reader *r, hr_judged_type type)
{
    hr_judged_json *json = r->json;
    if (json->count == json->room && !make_room(r)) return -1;
    hr_judged_value *value = &json->values[json->count];
    value->type = type;
    value->count = 0;
    return json->count++;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool same(const hr_judged_value *a, const char *name, size_t length)
{
    return (size_t)a->count == length && !memcmp(a->text, name, length);
}

/* Compares the names of a small object pairwise; different first or last bytes decide quickly. */
static bool few_are_unique(const hr_judged_json *json, const hr_judged_value *object)
{
    const hr_judged_value *names[FEW_NAMES];
    uint64_t seen = 0;
    const hr_judged_value *name = object + 1;
    for (int32_t i = 0; i < object->count; i++, name = hr_judged_after(json, name + 1)) {
        names[i] = name;
        const unsigned last = name->count ? (unsigned char)name->text[name->count - 1] : 0;
        const uint64_t bit = UINT64_C(1)
                             << (((unsigned char)name->text[0] * 5 + last + (unsigned)name->count) %
                                 64);
        for (int32_t k = 0; k < i && seen & bit; k++)
            if (same(names[k], name->text, (size_t)name->count)) return false;
        seen |= bit;
    }
    return true;
}

static bool names_are_unique(reader *r, const hr_judged_value *object)
{
    const hr_judged_json *json = r->json;
    if (object->count <= FEW_NAMES) return few_are_unique(json, object);
    const char **names = malloc((size_t)object->count * sizeof *names);
    bool unique = true;
    if (!names) {
        r->no_memory = true;
        return false;
    }
    const hr_judged_value *name = object + 1;
    for (int32_t i = 0; i < object->count; i++, name = hr_judged_after(json, name + 1))
        names[i] = name->text;
    qsort(names, (size_t)object->count, sizeof *names, compare_names);
    for (int32_t i = 1; i < object->count && unique; i++)
        unique = strcmp(names[i - 1], names[i]) != 0;
    free(names);
    return unique;
}

/* ---- text */

/* Length of the UTF-8 character at p; 0: invalid. */
static int32_t character(const unsigned char *p, const unsigned char *end)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const int32_t bytes = *p < 0x80 ? 1 : *p < 0xC0 ? 0 : *p < 0xE0 ? 2 : *p < 0xF0 ? 3 : 4;
    if (bytes < 2) return bytes;
    if (*p > 0xF4 || end - p < bytes) return 0;
    uint32_t code = *p & (0x7Fu >> bytes);
    for (int32_t i = 1; i < bytes; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | (p[i] & 0x3Fu);
    }
    if (code < least[bytes] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 0;
    return bytes;
}

/* Value of four hexadecimal digits; -1: invalid. */
static int32_t hexadecimal(const char *p, const char *end)
{
    int32_t code = 0;
    if (end - p < 4) return -1;
    for (int32_t i = 0; i < 4; i++) {
        const char c = p[i];
        const int32_t digit = c >= '0' && c <= '9'   ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
        if (digit < 0) return -1;
        code = code * 16 + digit;
    }
    return code;
}

static char *put_character(char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    const int32_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    *to++ = (char)(0xF00u >> (more + 1) | code >> (6 * more));
    for (int32_t i = more - 1; i >= 0; i--) *to++ = (char)(0x80u | (code >> (6 * i) & 0x3Fu));
    return to;
}

/* Decodes an escape after its backslash. The result is never longer than the escape. */
static bool escape(reader *r, char **to)
{
    static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end) return false;
    const char *letter = *r->at ? strchr(letters, *r->at) : NULL;
    if (letter) {
        *(*to)++ = bytes[letter - letters];
        r->at++;
        return true;
    }
    if (*r->at++ != 'u') return false;
    int32_t code = hexadecimal(r->at, r->end);
    if (code <= 0 || (code >= 0xDC00 && code < 0xE000)) return false;
    r->at += 4;
    if (code >= 0xD800 && code < 0xDC00) {
        const int32_t low = r->end - r->at > 2 && r->at[0] == '\\' && r->at[1] == 'u'
                                ? hexadecimal(r->at + 2, r->end)
                                : -1;
        if (low < 0xDC00 || low >= 0xE000) return false;
        r->at += 6;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    *to = put_character(*to, (uint32_t)code);
    return true;
}

/* Skips plain characters, eight bytes at a time. A quote, a backslash, or a byte below a space sets
 * its high bit by a borrow. A borrow may reach the byte behind it, so only the first byte found is
 * certain: one of these, or not ASCII. */
static void skip_plain(reader *r)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    while (r->end - r->at >= 8) {
        uint64_t text;
        memcpy(&text, r->at, sizeof text);
        const uint64_t quote = text ^ ones * '"', slash = text ^ ones * '\\';
        const uint64_t found = (((quote - ones) & ~quote) | ((slash - ones) & ~slash) |
                                ((text - ones * ' ') & ~text) | text) &
                               ones << 7;
        if (found) {
            r->at += __builtin_ctzll(found) / 8;
            return;
        }
        r->at += 8;
    }
}

/* Reads text after its first quote. */
static bool read_text(reader *r)
{
    const int32_t index = add(r, HR_JUDGED_TEXT);
    char *const first = r->at, *to = NULL; /* text moves down after the first escape */
    if (index < 0) return false;
    while (r->at < r->end) {
        if (!to) skip_plain(r);
        const unsigned char c = (unsigned char)*r->at; /* zero at the end of the text */
        if (c == '"') {
            char *last = to ? to : r->at;
            *last = 0;
            r->at++;
            r->json->values[index].text = first;
            r->json->values[index].count = (int32_t)(last - first);
            return true;
        }
        if (c < 0x20) return false;
        if (c == '\\') {
            if (!to) to = r->at;
            r->at++;
            if (!escape(r, &to)) return false;
            continue;
        }
        const int32_t bytes = c < 0x80 ? 1
                                       : character((const unsigned char *)r->at,
                                                   (const unsigned char *)r->end);
        if (bytes == 0) return false;
        for (int32_t i = 0; i < bytes && to; i++) *to++ = r->at[i];
        r->at += bytes;
    }
    return false;
}

/* ---- numbers and words */

static bool is_digit(const reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

static bool read_number(reader *r)
{
    const int32_t index = add(r, HR_JUDGED_INTEGER);
    const bool negative = *r->at == '-';
    const uint64_t most = (uint64_t)INT64_MAX + negative;
    uint64_t number = 0;
    bool too_large = false, whole = true;
    if (index < 0) return false;
    r->at += negative;
    if (!is_digit(r)) return false;
    if (*r->at == '0') r->at++;
    else
        for (int32_t digits = 1; is_digit(r); digits++, r->at++) {
            const uint64_t digit = (uint64_t)(*r->at - '0');
            if (digits > SMALL_DIGITS && number > (most - digit) / 10) too_large = true;
            else number = number * 10 + digit;
        }
    if (is_digit(r)) return false;
    if (r->at < r->end && *r->at == '.') {
        whole = false;
        r->at++;
        if (!is_digit(r)) return false;
        while (is_digit(r)) r->at++;
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        whole = false;
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-')) r->at++;
        if (!is_digit(r)) return false;
        while (is_digit(r)) r->at++;
    }
    if (!whole) r->json->values[index].type = HR_JUDGED_OTHER;
    else if (too_large) return false;
    else r->json->values[index].integer = (int64_t)(negative ? 0 - number : number);
    return true;
}

static bool read_word(reader *r)
{
    static const char *const words[] = { "null", "true", "false" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i]);
        if ((size_t)(r->end - r->at) < length || memcmp(r->at, words[i], length)) continue;
        r->at += length;
        return add(r, i ? HR_JUDGED_OTHER : HR_JUDGED_NULL) >= 0;
    }
    return false;
}

/* ---- lists and objects */

static inline void skip_space(reader *r)
{
    if (*r->at > ' ') return; /* a zero ends the text */
    for (; r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t');
         r->at++)
        r->line += *r->at == '\n';
}

static bool take(reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

/* Reads a name and its colon. */
static bool read_name(reader *r)
{
    return take(r, '"') && read_text(r) && take(r, ':');
}

/* Open lists and objects, the innermost last. */
typedef struct {
    int32_t open[DEPTH_MAX], depth;
} stack;

/* Opens the list or object that starts here. */
static bool open_one(reader *r, stack *s)
{
    const bool object = *r->at++ == '{';
    if (s->depth == DEPTH_MAX) return false;
    const int32_t index = add(r, object ? HR_JUDGED_OBJECT : HR_JUDGED_LIST);
    if (index < 0) return false;
    s->open[s->depth++] = index;
    return true;
}

static bool close_one(reader *r, stack *s)
{
    hr_judged_value *value = &r->json->values[s->open[--s->depth]];
    value->next = r->json->count;
    return value->type != HR_JUDGED_OBJECT || names_are_unique(r, value);
}

/* Closes everything that ends here and counts its members. True: a value is next, or the outermost
 * has ended. */
static bool go_on(reader *r, stack *s)
{
    while (s->depth > 0) {
        hr_judged_value *value = &r->json->values[s->open[s->depth - 1]];
        const bool object = value->type == HR_JUDGED_OBJECT;
        value->count++;
        if (take(r, ',')) return !object || read_name(r);
        if (!take(r, object ? '}' : ']') || !close_one(r, s)) return false;
    }
    return true;
}

static bool read_all(reader *r)
{
    stack s = { .depth = 0 };
    do {
        skip_space(r);
        if (r->at == r->end) return false;
        const char c = *r->at;
        if (c == '{' || c == '[') {
            if (!open_one(r, &s)) return false;
            if (!take(r, c == '{' ? '}' : ']')) {
                if (c == '{' && !read_name(r)) return false;
                continue;
            }
            if (!close_one(r, &s)) return false;
        } else if (s.depth == 0) {
            return false; /* a file is not a single number or word */
        } else if (c == '"') {
            r->at++;
            if (!read_text(r)) return false;
        } else if (c == '-' || (c >= '0' && c <= '9')) {
            if (!read_number(r)) return false;
        } else if (!read_word(r)) {
            return false;
        }
        if (!go_on(r, &s)) return false;
    } while (s.depth > 0);
    skip_space(r);
    return r->at == r->end;
}

hr_status hr_judged_parse(char *text, int64_t bytes, hr_judged_json *json, int32_t *line)
{
    *json = (hr_judged_json){ .text = text };
    reader r = { .json = json, .at = text, .end = text + bytes, .line = 1 };
    text[bytes] = 0;
    if (read_all(&r)) return HR_OK;
    *line = r.line;
    return r.no_memory ? HR_FAILURE : HR_CORRUPT;
}

void hr_judged_json_close(hr_judged_json *json)
{
    free(json->text);
    free(json->values);
    *json = (hr_judged_json){ .text = NULL };
}

const hr_judged_value *hr_judged_member(const hr_judged_json *json, const hr_judged_value *object,
                                        const char *name, const hr_judged_value **hint)
{
    const size_t length = strlen(name);
    if (object->type != HR_JUDGED_OBJECT) return NULL;
    const hr_judged_value *end = hr_judged_after(json, object), *at = *hint ? *hint : object + 1;
    for (int32_t i = 0; i < object->count; i++) {
        const hr_judged_value *value = at + 1, *next = hr_judged_after(json, value);
        if (next == end) next = object + 1;
        if (same(at, name, length)) {
            *hint = next;
            return value;
        }
        at = next;
    }
    return NULL;
}
