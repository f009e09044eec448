/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/lines.c - a state machine that reads one byte at a time, and runs of plain characters at
 * once inside strings. */
#include "corpus/lines.h"

#include <string.h>

#include "base/json.h"

/* What may come next. Inside a string, a key, a number or a literal, the state names that token. */
enum {
    OBJECT, /* the object of the line itself */
    VALUE,
    VALUE_OR_CLOSE,
    KEY,
    KEY_OR_CLOSE,
    COLON,
    COMMA_OR_CLOSE,
    END,
    IN_KEY,
    IN_TEXT,
    IN_NUMBER,
    IN_LITERAL
};

/* State within a number: its last element. */
enum { MINUS, ZERO, DIGITS, POINT, FRACTION, EXPONENT, SIGN, POWER };

void hr_line_begin(hr_line *line, const char *const names[HR_LINE_FIELDS])
{
    *line = (hr_line){ .field = -1, .wanted = -1, .expects = OBJECT };
    for (int32_t i = 0; i < HR_LINE_FIELDS; i++) line->names[i] = names[i];
}

/* State while a part is read. */
typedef struct {
    hr_line *line;
    uint8_t *at, *end;
    uint8_t *out; /* destination of the next decoded byte of a field's text */
    bool last;
} reader;

static void wrong(reader *r, const char *problem)
{
    if (!r->line->problem) r->line->problem = problem;
}

/* ---- strings */

/* Bytes of the multi-byte UTF-8 character at r->at; 0: invalid, -1: incomplete. */
static int64_t character_bytes(const reader *r)
{
    const uint8_t *text = r->at;
    const int64_t bytes = *text >= 0xf0 ? 4 : *text >= 0xe0 ? 3 : 2;
    if (*text < 0xc2 || *text > 0xf4) return 0;
    if (bytes > r->end - r->at) return r->last ? 0 : -1;
    for (int64_t i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    const bool overlong = (*text == 0xe0 && text[1] < 0xa0) || (*text == 0xf0 && text[1] < 0x90);
    const bool outside_unicode = (*text == 0xed && text[1] >= 0xa0) ||
                                 (*text == 0xf4 && text[1] >= 0x90);
    return overlong || outside_unicode ? 0 : bytes;
}

/* Decodes the escape at r->at into out; *made is the length of the result. Returns the length of
 * the escape; 0: invalid, -1: incomplete. */
static int64_t unescape(const reader *r, uint8_t out[4], int64_t *made)
{
    static const char letters[] = "\"\\/bfnrt", decoded[] = "\"\\/\b\f\n\r\t";
    const uint8_t *text = r->at;
    const int64_t left = r->end - text, none = r->last ? 0 : -1;
    if (left < 2) return none;
    const char *letter = text[1] ? strchr(letters, text[1]) : NULL;
    *made = 1;
    if (letter) {
        *out = (uint8_t)decoded[letter - letters];
        return 2;
    }
    if (text[1] != 'u') return 0;
    if (left < 6) return none;
    int32_t point = hr_json_hex((const char *)(text + 2));
    if (point < 0 || (point >= 0xdc00 && point < 0xe000)) return 0;
    const bool pair = point >= 0xd800 && point < 0xdc00;
    if (pair) {
        if (left < 12) return none;
        const int32_t low = text[6] == '\\' && text[7] == 'u'
                                ? hr_json_hex((const char *)(text + 8))
                                : -1;
        if (low < 0xdc00 || low >= 0xe000) return 0;
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    }
    *made = hr_json_put_point((char *)out, point);
    return pair ? 12 : 6;
}

/* Stores decoded bytes: in the field's text or in the key; other strings are dropped. */
static void put(reader *r, const uint8_t *text, int64_t bytes)
{
    hr_line *line = r->line;
    if (line->expects == IN_KEY) {
        for (int64_t i = 0; i < bytes && line->key_bytes < HR_LINE_NAME_BYTES; i++)
            line->key[line->key_bytes++] = (char)text[i];
    } else if (line->field >= 0) {
        if (r->out != text) memmove(r->out, text, (size_t)bytes);
        r->out += bytes;
    }
}

/* End of the plain characters at `at`: ASCII but no quote, backslash or control character. */
static const uint8_t *plain_end(const uint8_t *at, const uint8_t *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
    for (; end - at >= 8; at += 8) {
        uint64_t eight;
        memcpy(&eight, at, 8);
        const uint64_t quote = eight ^ ones * '"', slash = eight ^ ones * '\\';
        const uint64_t found = (eight - ones * ' ') | (quote - ones) | (slash - ones) | eight;
        if (found & highs) break;
    }
    while (at < end && *at >= ' ' && *at < 0x80 && *at != '"' && *at != '\\') at++;
    return at;
}

/* Reads a string or key up to its quote. Returns false if it cannot continue in this part. */
static bool read_text(reader *r)
{
    while (r->at < r->end) {
        const uint8_t *plain = plain_end(r->at, r->end);
        put(r, r->at, plain - r->at);
        r->at = (uint8_t *)plain;
        if (r->at == r->end) return true;
        if (*r->at == '"') return true;
        uint8_t letter[4];
        int64_t made = 0, taken = 0;
        if (*r->at == '\\') taken = unescape(r, letter, &made);
        else if (*r->at >= 0x80) made = taken = character_bytes(r);
        if (taken < 0) return false;
        if (taken == 0) {
            wrong(r, *r->at == '\\'  ? "an unknown escape, or half a surrogate pair"
                     : *r->at < 0x80 ? "a control character in a string"
                                     : "bytes that are not UTF-8");
            return false;
        }
        put(r, *r->at == '\\' ? letter : r->at, made);
        r->at += taken;
    }
    return true;
}

/* ---- numbers and literals */

static bool is_number(uint8_t state)
{
    return state == ZERO || state == DIGITS || state == FRACTION || state == POWER;
}

/* State of a number after this byte; -1: the byte does not belong to the number. */
static int32_t next_in_number(uint8_t state, uint8_t c)
{
    const bool digit = c >= '0' && c <= '9';
    switch (state) {
    case MINUS: return c == '0' ? ZERO : digit ? DIGITS : -1;
    case DIGITS:
        if (digit) return DIGITS;
        /* fall through */
    case ZERO: return c == '.' ? POINT : c == 'e' || c == 'E' ? EXPONENT : -1;
    case POINT: return digit ? FRACTION : -1;
    case FRACTION: return digit ? FRACTION : c == 'e' || c == 'E' ? EXPONENT : -1;
    case EXPONENT: return digit ? POWER : c == '+' || c == '-' ? SIGN : -1;
    default: return digit ? POWER : -1; /* SIGN, POWER */
    }
}

/* ---- transitions */

static void after_value(hr_line *line)
{
    line->expects = line->depth ? COMMA_OR_CLOSE : END;
}

static void open_container(reader *r, char bracket)
{
    hr_line *line = r->line;
    if (line->depth == HR_LINE_DEPTH_MAX) {
        wrong(r, "nested more than 64 deep");
        return;
    }
    line->open[line->depth++] = bracket;
    line->expects = bracket == '{' ? KEY_OR_CLOSE : VALUE_OR_CLOSE;
    line->wanted = -1;
    r->at++;
}

static void close_container(reader *r)
{
    r->line->depth--;
    r->at++;
    after_value(r->line);
}

/* Opens a span when the text of a field begins, or continues in a new part. */
static void open_span(reader *r, bool begins)
{
    hr_line *line = r->line;
    line->spans[line->span_count++] = (hr_line_span){ .text = r->at,
                                                      .field = line->field,
                                                      .begins = begins };
    r->out = r->at;
}

static void close_span(reader *r, bool ends)
{
    hr_line_span *span = &r->line->spans[r->line->span_count - 1];
    span->bytes = r->out - span->text;
    span->ends = ends;
}

/* Whether the key can be shown in an error message. */
static bool is_plain_key(const hr_line *line)
{
    if (line->key_bytes == HR_LINE_NAME_BYTES) return false;
    for (int32_t i = 0; i < line->key_bytes; i++)
        if (line->key[i] <= ' ' || line->key[i] > '~' || line->key[i] == '"') return false;
    return true;
}

static void begin_text(reader *r)
{
    hr_line *line = r->line;
    line->field = line->wanted;
    line->wanted = -1;
    line->expects = IN_TEXT;
    r->at++;
    if (line->field >= 0) open_span(r, true);
    else if (line->depth == 1 && !line->first_text[0] && is_plain_key(line))
        memcpy(line->first_text, line->key, (size_t)line->key_bytes);
}

static void begin_value(reader *r)
{
    static const char *const words[] = { "true", "false", "null" };
    hr_line *line = r->line;
    const uint8_t c = *r->at;
    if (c == '"') {
        begin_text(r);
        return;
    }
    if (line->wanted >= 0) {
        wrong(r, "the field is not a string");
        return;
    }
    if (c == '{' || c == '[') {
        open_container(r, (char)c);
        return;
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        line->number = c == '-' ? MINUS : c == '0' ? ZERO : DIGITS;
        line->expects = IN_NUMBER;
        r->at++;
        return;
    }
    for (int32_t i = 0; i < 3; i++) {
        if (c != (uint8_t)words[i][0]) continue;
        line->word = words[i] + 1;
        line->expects = IN_LITERAL;
        r->at++;
        return;
    }
    wrong(r, "no value");
}

/* Ends a key: finds whether its value is one of the fields. */
static void end_key(reader *r)
{
    hr_line *line = r->line;
    line->wanted = -1;
    line->expects = COLON;
    if (line->depth != 1) return;
    for (int32_t i = 0; i < HR_LINE_FIELDS; i++) {
        if (!line->names[i] || (int32_t)strlen(line->names[i]) != line->key_bytes ||
            memcmp(line->names[i], line->key, (size_t)line->key_bytes) != 0)
            continue;
        if (line->found >> i & 1) wrong(r, "a field occurs twice");
        line->found |= UINT32_C(1) << i;
        line->wanted = i;
    }
}

/* Handles the closing quote of a string. */
static void end_text(reader *r)
{
    hr_line *line = r->line;
    if (line->expects == IN_KEY) {
        end_key(r);
    } else {
        if (line->field >= 0) close_span(r, true);
        line->field = -1;
        after_value(line);
    }
    r->at++;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Handles one byte outside of strings. */
static void step(reader *r)
{
    hr_line *line = r->line;
    const uint8_t c = *r->at;
    if (line->expects == IN_NUMBER) {
        const int32_t next = next_in_number(line->number, c);
        if (next >= 0) {
            line->number = (uint8_t)next;
            r->at++;
        } else if (is_number(line->number)) {
            after_value(line);
        } else {
            wrong(r, "an invalid number");
        }
        return;
    }
    if (line->expects == IN_LITERAL) {
        if (c != (uint8_t)*line->word) {
            wrong(r, "no value");
            return;
        }
        r->at++;
        if (!*++line->word) after_value(line);
        return;
    }
    if (is_blank(c)) {
        r->at++;
        return;
    }
    const char close = line->depth && line->open[line->depth - 1] == '{' ? '}' : ']';
    switch (line->expects) {
    case OBJECT:
        if (c == '{') open_container(r, '{');
        else wrong(r, "not a JSON object");
        break;
    case KEY_OR_CLOSE:
    case KEY:
        if (c == '"') {
            line->expects = IN_KEY;
            line->key_bytes = 0;
            r->at++;
        } else if (c == '}' && line->expects == KEY_OR_CLOSE) {
            close_container(r);
        } else {
            wrong(r, "no quoted key");
        }
        break;
    case COLON:
        line->expects = VALUE;
        if (c == ':') r->at++;
        else wrong(r, "no colon after a key");
        break;
    case COMMA_OR_CLOSE:
        if (c == (uint8_t)close) {
            close_container(r);
        } else if (c == ',') {
            line->expects = close == '}' ? KEY : VALUE;
            r->at++;
        } else {
            wrong(r, "neither a comma nor the closing bracket");
        }
        break;
    case VALUE_OR_CLOSE:
        if (c == ']') close_container(r);
        else begin_value(r);
        break;
    case VALUE: begin_value(r); break;
    default: wrong(r, "more text after the object"); break;
    }
}

int64_t hr_line_read(hr_line *line, uint8_t *part, int64_t bytes, bool last, bool stops)
{
    reader r = { .line = line, .at = part, .end = part + bytes, .last = last };
    line->span_count = 0;
    if (line->problem) return 0;
    if (line->expects == IN_TEXT && line->field >= 0) open_span(&r, false);
    while (r.at < r.end && !line->problem) {
        if (line->expects == IN_KEY || line->expects == IN_TEXT) {
            if (!read_text(&r)) break;
            if (r.at < r.end && !line->problem) end_text(&r);
            continue;
        }
        if (stops && r.at > part && *r.at == '"' && line->expects == VALUE && line->wanted >= 0)
            break;
        step(&r);
    }
    if (line->expects == IN_TEXT && line->field >= 0) close_span(&r, false);
    line->at += r.at - part;
    return r.at - part;
}

bool hr_line_is_whole(hr_line *line)
{
    if (!line->problem && line->expects != END)
        line->problem = line->expects == OBJECT ? "nothing" : "unexpected end";
    return !line->problem;
}
