/* SPDX-License-Identifier: Apache-2.0 */
/* audit/markdown_line.c - splits a line into words, numbers and signs. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "audit/markdown.h"

/* Signs of several bytes, and what they count as. */
static const struct {
    const char *bytes, *as;
} signs[] = {
    { "\xc3\x97", "*" },                                    /* multiplication sign */
    { "\xe2\x86\x92", " = " },                              /* right arrow */
    { "~=", " = ~" },           { "\xe2\x89\x88", " = ~" }, /* almost equal */
    { "\xe2\x89\x83", " = ~" },                             /* asymptotically equal */
    { "\xe2\x80\x93", "-" },                                /* en dash */
    { "\xe2\x88\x92", "-" },                                /* minus sign */
    { "\xc3\xb7", "/" },                                    /* division sign */
    { "\xc2\xb7", "^" }, /* middle dot, of products and lists: what is beside it is not judged */
    { "\xe2\x8b\x85", "^" }, /* dot operator */
    { "\xc2\xa0", " " },     /* no-break space */
};
enum { SIGNS = sizeof signs / sizeof *signs };

/* "2**14", "(a)**2", "2 ** 14": a power, and no emphasis. */
static bool is_power(const char *text, int64_t at, int64_t bytes)
{
    const bool apart = at > 1 && at + 3 < bytes && text[at - 1] == ' ' && text[at + 2] == ' ';
    const int64_t before = at - 1 - apart, next = at + 2 + apart;
    return before >= 0 && next < bytes && isdigit((unsigned char)text[next]) &&
           (isdigit((unsigned char)text[before]) || text[before] == ')');
}

/* Copies a line without ** __ and `, and with plain signs. */
static void clean(const char *text, int64_t bytes, hr_prose_line *line)
{
    int32_t n = 0;
    for (int64_t i = 0; i < bytes;) {
        const char *as = NULL;
        int64_t taken = 1;
        for (int32_t s = 0; s < SIGNS && !as; s++) {
            const int64_t length = (int64_t)strlen(signs[s].bytes);
            if (i + length > bytes || memcmp(text + i, signs[s].bytes, (size_t)length)) continue;
            as = signs[s].as;
            taken = length;
        }
        if (!as && i + 1 < bytes && text[i] == '*' && text[i + 1] == '*')
            as = is_power(text, i, bytes) ? "^" : "", taken = 2;
        if (!as && text[i] == '`') as = "";
        if (!as && (unsigned char)text[i] < ' ') as = " ";
        const char one[2] = { text[i], 0 };
        if (!as) as = one;
        const int32_t length = (int32_t)strlen(as);
        if (n + length >= HR_PROSE_LINE_BYTES) {
            line->cut = true;
            break;
        }
        memcpy(line->text + n, as, (size_t)length);
        n += length;
        i += taken;
    }
    line->text[n] = 0;
    line->length = n;
}

static bool is_word(char c)
{
    return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* The end of a word: letters, digits and "_", with "." and "/" inside. */
static int32_t word_end(const hr_prose_line *line, int32_t at)
{
    while (at < line->length &&
           (is_word(line->text[at]) || isdigit((unsigned char)line->text[at]) ||
            ((line->text[at] == '.' || line->text[at] == '/') && at + 1 < line->length &&
             isalnum((unsigned char)line->text[at + 1]))))
        at++;
    return at;
}

/* "32000 x 768": a sign between two numbers. */
static bool is_times(const hr_prose_line *line, int32_t at)
{
    const char *text = line->text;
    if (text[at] == '*') return true;
    if (text[at] != 'x') return false;
    const char next = text[at + 1] == ' ' ? text[at + 2] : text[at + 1];
    return isdigit((unsigned char)next) &&
           (at == 0 || text[at - 1] == ' ' || isdigit((unsigned char)text[at - 1]));
}

static int32_t digits_at(const char *text, int32_t at)
{
    int32_t count = 0;
    while (isdigit((unsigned char)text[at + count])) count++;
    return count;
}

/* The end of "1.000.000", "1'000" or "1 000 000", which are no numbers here; 0: there is none. */
static int32_t grouped_end(const char *text, int32_t at)
{
    const int32_t first = digits_at(text, at);
    const char separator = text[at + first];
    int32_t end = at + first, groups = 0;
    bool zero = false; /* a group that cannot be a number by itself */
    if (first < 1 || first > 3 || !separator || !strchr(".' ", separator)) return 0;
    for (; text[end] == separator && digits_at(text, end + 1) == 3; groups++, end += 4)
        zero |= text[end + 1] == '0';
    const bool certain = groups > 1 ||
                         (groups && (separator == '\'' || (separator == ' ' && zero)));
    return certain ? end : 0;
}

static bool add(hr_prose_line *line, hr_prose_token token)
{
    if (line->token_count == HR_PROSE_TOKENS_MOST) {
        line->cut = true;
        return false;
    }
    line->tokens[line->token_count++] = token;
    return true;
}

static void split(hr_prose_line *line)
{
    const char *text = line->text;
    for (int32_t at = 0; at < line->length;) {
        hr_prose_token token = { .at = at, .length = 1 };
        const char c = text[at];
        if (c == ' ') {
            at++;
            continue;
        }
        const bool number = isdigit((unsigned char)c) ||
                            (strchr("~<>.", c) && isdigit((unsigned char)text[at + 1])) ||
                            (c == '~' && text[at + 1] == ' ' &&
                             isdigit((unsigned char)text[at + 2]));
        const int32_t skip = c == '~' && text[at + 1] == ' ' ? 2 : 0;
        const int32_t grouped = grouped_end(text, at);
        const int64_t taken = number ? hr_stated_scan(text + at + skip, line->length - at - skip,
                                                      &token.number)
                                     : 0;
        if (grouped) {
            token.kind = HR_PROSE_WORD;
            token.length = grouped - at;
        } else if (taken > 0 && hr_stated_in_range(&token.number)) {
            token.kind = HR_PROSE_NUMBER;
            token.length = (int32_t)taken + skip;
            token.number.approximate |= skip > 0;
        } else if (is_times(line, at)) token.kind = HR_PROSE_TIMES;
        else if (c == '=') token.kind = HR_PROSE_EQUALS;
        else if (is_word(c) || number) {
            token.kind = HR_PROSE_WORD;
            token.length = word_end(line, at) - at;
            if (token.length <= 0) token.length = 1;
        } else {
            token.kind = HR_PROSE_MARK;
            token.mark = c;
        }
        if (!add(line, token)) return;
        at += token.length;
    }
}

int64_t hr_prose_take_line(const char *text, int64_t bytes, int64_t number, hr_prose_line *line)
{
    const char *end = memchr(text, '\n', (size_t)bytes);
    const int64_t length = end ? end - text : bytes;
    line->number = number;
    line->raw = text;
    line->raw_length = length && text[length - 1] == '\r' ? length - 1 : length;
    line->token_count = 0;
    line->cut = false;
    line->sized = false;
    clean(text, length, line);
    split(line);
    return length + (end != NULL);
}

static const struct {
    const char *name;
    int32_t index; /* of hr_prose_facts.dtypes */
} dtypes[] = {
    { "fp32", 0 }, { "float32", 0 }, { "f32", 0 },  { "bf16", 1 }, { "bfloat16", 1 },
    { "fp16", 1 }, { "float16", 1 }, { "half", 1 }, { "fp8", 2 },  { "int8", 2 },
};
static const double dtype_bytes[] = { 4, 2, 1 };
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static int32_t dtype_of(const hr_prose_line *line, const hr_prose_token *token)
{
    for (int32_t i = 0; token->kind == HR_PROSE_WORD && i < DTYPES; i++)
        if ((int32_t)strlen(dtypes[i].name) == token->length &&
            !strncasecmp(line->text + token->at, dtypes[i].name, (size_t)token->length))
            return dtypes[i].index;
    return -1;
}

bool hr_prose_is_dtype(const hr_prose_line *line, const hr_prose_token *token)
{
    return dtype_of(line, token) >= 0;
}

double hr_prose_dtype_of(const hr_prose_line *line, int32_t first, int32_t last)
{
    int32_t found = -1;
    for (int32_t i = first; i < last; i++) {
        const int32_t dtype = dtype_of(line, &line->tokens[i]);
        if (dtype >= 0 && found >= 0 && dtype != found) return 0;
        if (dtype >= 0) found = dtype;
    }
    return found < 0 ? 0 : dtype_bytes[found];
}

double hr_prose_dtype(const hr_prose_line *line)
{
    return hr_prose_dtype_of(line, 0, line->token_count);
}

bool hr_prose_begins(const hr_prose_line *line, int32_t i, const char *begin)
{
    const hr_prose_token *t = &line->tokens[i];
    const size_t length = strlen(begin);
    return i < line->token_count && t->kind == HR_PROSE_WORD && t->length >= (int32_t)length &&
           !strncasecmp(line->text + t->at, begin, length);
}

bool hr_prose_is_of_weights(const hr_prose_line *line)
{
    static const char *const weights[] = { "param", "weight", "elem", "value", "float" };
    static const char *const others[] = { "grad",  "optim", "adam",   "sgd",    "moment",
                                          "state", "train", "cache",  "kv",     "activation",
                                          "with",  "total", "master", "buffer", "overhead" };
    bool found = false;
    for (int32_t i = 0; i < line->token_count; i++) {
        for (size_t w = 0; w < sizeof weights / sizeof *weights; w++)
            found |= hr_prose_begins(line, i, weights[w]);
        for (size_t w = 0; w < sizeof others / sizeof *others; w++)
            if (hr_prose_begins(line, i, others[w])) return false;
    }
    return found;
}

/* Units that hr_stated_scan does not know: "TFLOPS", "Mb", "bits", "K" apart from its number. */
static bool is_unit_like(const char *word, int32_t length)
{
    static const char *const ends[] = { "flops", "flop", "bit", "bits", "bps", "hz", "wh" };
    static const char *const whole[] = { "day", "days", "week", "weeks", "month",    "months",
                                         "ms",  "us",   "ns",   "G",     "P",        "k",
                                         "K",   "M",    "B",    "T",     "thousand", "trillion" };
    const int32_t kind = length > 1 && word[length - 1] == 's' ? length - 2 : length - 1;
    if (length > 1 && length <= 4 && kind > 0 && strchr("bB", word[kind]) &&
        strchr("kKmMgGtTpPeE", word[0]) && (kind == 1 || (kind == 2 && word[1] == 'i')))
        return true;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if ((int32_t)strlen(whole[i]) == length && !memcmp(word, whole[i], (size_t)length))
            return true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const int32_t end = (int32_t)strlen(ends[i]);
        if (length >= end && !strncasecmp(word + length - end, ends[i], (size_t)end)) return true;
    }
    return length > 5 && !strncasecmp(word + length - 5, "bytes", 5);
}

bool hr_prose_is_unclear(const hr_prose_line *line, int32_t i)
{
    const hr_prose_token *t = &line->tokens[i], *next = t + 1;
    const char *text = line->text;
    const int32_t end = t->at + t->length;
    if (t->at > 1 && text[t->at - 1] == ',' && isdigit((unsigned char)text[t->at - 2])) return true;
    if (text[end] == ',' && isdigit((unsigned char)text[end + 1])) return true;
    return i + 1 < line->token_count && next->kind == HR_PROSE_WORD &&
           is_unit_like(text + next->at, next->length);
}

void hr_prose_learn(const hr_prose_line *line, hr_prose_facts *facts)
{
    for (int32_t i = 0; i < line->token_count; i++) {
        const hr_prose_token *token = &line->tokens[i];
        const int32_t dtype = dtype_of(line, token);
        if (dtype >= 0) facts->dtypes[dtype] = true;
        const bool vocabulary = hr_prose_begins(line, i, "vocab");
        /* "vocab size of 151,936": a number without a suffix within four words. */
        for (int32_t j = i + 1; vocabulary && j <= i + 4 && j < line->token_count; j++) {
            const hr_prose_token *next = &line->tokens[j];
            if (next->kind == HR_PROSE_MARK && next->mark != ':') break;
            if (next->kind != HR_PROSE_NUMBER) continue;
            if (next->number.scale != 1 || next->number.approximate || next->number.value < 100)
                break;
            facts->several |= facts->vocabulary != 0 && facts->vocabulary != next->number.value;
            facts->vocabulary = next->number.value;
            break;
        }
    }
}
