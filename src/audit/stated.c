/* SPDX-License-Identifier: Apache-2.0 */
/* audit/stated.c - reads numbers as people write them, and judges them by the digits they have.
 *
 * A claim is true if it is the right value rounded to its last digit, or cut off after it. If it is
 * not, and the digits are those of the value in another unit (GiB for GB, or 1000 x 1024 bytes for
 * MB), the unit is what is wrong. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "audit/quantity.h"

typedef struct {
    const char *name;
    double scale;
    int8_t power;    /* of bytes */
    int8_t binary;   /* 1024^power */
    int8_t attached; /* only directly behind a number: 10K */
    int8_t dimension;
} unit;

#define GIGA 1e9
#define KIB 1024.0

static const unit units[] = {
    { "bytes", 1, 0, 0, 0, HR_AUDIT_BYTES },
    { "byte", 1, 0, 0, 0, HR_AUDIT_BYTES },
    { "kilobytes", 1e3, 1, 0, 0, HR_AUDIT_BYTES },
    { "kilobyte", 1e3, 1, 0, 0, HR_AUDIT_BYTES },
    { "megabytes", 1e6, 2, 0, 0, HR_AUDIT_BYTES },
    { "megabyte", 1e6, 2, 0, 0, HR_AUDIT_BYTES },
    { "gigabytes", GIGA, 3, 0, 0, HR_AUDIT_BYTES },
    { "gigabyte", GIGA, 3, 0, 0, HR_AUDIT_BYTES },
    { "terabytes", 1e12, 4, 0, 0, HR_AUDIT_BYTES },
    { "terabyte", 1e12, 4, 0, 0, HR_AUDIT_BYTES },
    { "kB", 1e3, 1, 0, 0, HR_AUDIT_BYTES },
    { "KB", 1e3, 1, 0, 0, HR_AUDIT_BYTES },
    { "MB", 1e6, 2, 0, 0, HR_AUDIT_BYTES },
    { "GB", GIGA, 3, 0, 0, HR_AUDIT_BYTES },
    { "TB", 1e12, 4, 0, 0, HR_AUDIT_BYTES },
    { "KiB", KIB, 1, 1, 0, HR_AUDIT_BYTES },
    { "MiB", KIB *KIB, 2, 1, 0, HR_AUDIT_BYTES },
    { "GiB", KIB *KIB *KIB, 3, 1, 0, HR_AUDIT_BYTES },
    { "TiB", KIB *KIB *KIB *KIB, 4, 1, 0, HR_AUDIT_BYTES },
    { "hours", 3600, 0, 0, 0, HR_AUDIT_SECONDS },
    { "hour", 3600, 0, 0, 0, HR_AUDIT_SECONDS },
    { "h", 3600, 0, 0, 0, HR_AUDIT_SECONDS },
    { "minutes", 60, 0, 0, 0, HR_AUDIT_SECONDS },
    { "min", 60, 0, 0, 0, HR_AUDIT_SECONDS },
    { "seconds", 1, 0, 0, 0, HR_AUDIT_SECONDS },
    { "s", 1, 0, 0, 0, HR_AUDIT_SECONDS },
    { "million", 1e6, 0, 0, 0, HR_AUDIT_PLAIN },
    { "billion", GIGA, 0, 0, 0, HR_AUDIT_PLAIN },
    { "k", 1e3, 0, 0, 1, HR_AUDIT_PLAIN },
    { "K", 1e3, 0, 0, 1, HR_AUDIT_PLAIN },
    { "M", 1e6, 0, 0, 1, HR_AUDIT_PLAIN },
    { "B", GIGA, 0, 0, 1, HR_AUDIT_PLAIN },
    { "T", 1e12, 0, 0, 1, HR_AUDIT_PLAIN },
    { "%", 0.01, 0, 0, 0, HR_AUDIT_PLAIN },
};
enum { UNITS = sizeof units / sizeof *units };

/* Words behind a claim that say what is counted. */
static const char *const nouns[] = { "params",  "param",     "parameters", "tokens", "samples",
                                     "weights", "sequences", "elements",   "layers", "x" };
enum { NOUNS = sizeof nouns / sizeof *nouns };

static bool is_letter(char c)
{
    return isalpha((unsigned char)c) || c == '%' || c == '_';
}

/* The length of the word at the start. */
static int64_t word_length(const char *text, int64_t length)
{
    int64_t n = 0;
    if (length && *text == '%') return 1;
    while (n < length && (is_letter(text[n]) || (n && isdigit((unsigned char)text[n])))) n++;
    return n;
}

static const unit *find_unit(const char *word, int64_t length, bool attached)
{
    /* "Gigabytes" is a word; "mb" and "Mb" are no MB. */
    for (int32_t i = 0; i < UNITS; i++)
        if ((int64_t)strlen(units[i].name) == length &&
            !(length > 4 ? strncasecmp : strncmp)(units[i].name, word, (size_t)length) &&
            (attached || !units[i].attached))
            return &units[i];
    return NULL;
}

/* Digits with commas between groups of three, a point, an exponent. Returns the bytes taken; `step`
 * is the value of one in the last digit; for "~1,400" in the last that is not zero. */
static int64_t scan_digits(const char *text, int64_t length, bool approximate, double *value,
                           double *step)
{
    char digits[48];
    int32_t used = 0, decimals = 0;
    int64_t at = 0;
    bool point = false, any = false;
    for (; at < length && used < 40; at++) {
        const char c = text[at];
        if (isdigit((unsigned char)c)) {
            digits[used++] = c;
            any = true;
            decimals += point;
        } else if (c == ',' && any && !point && at + 3 < length &&
                   isdigit((unsigned char)text[at + 1]) && isdigit((unsigned char)text[at + 2]) &&
                   isdigit((unsigned char)text[at + 3]) &&
                   (at + 4 >= length || !isdigit((unsigned char)text[at + 4]))) {
            continue;
        } else if (c == '.' && !point && at + 1 < length && isdigit((unsigned char)text[at + 1])) {
            digits[used++] = c;
            point = true;
        } else break;
    }
    if (!any || used >= 40) return HR_NUMBER_NONE;
    int32_t exponent = 0;
    if (at + 1 < length && (text[at] == 'e' || text[at] == 'E')) {
        int64_t next = at + 1;
        const bool minus = text[next] == '-';
        next += minus || text[next] == '+';
        int32_t power = 0, count = 0;
        while (next < length && count < 3 && isdigit((unsigned char)text[next])) {
            power = power * 10 + (text[next++] - '0');
            count++;
        }
        if (count && (next >= length || !isalnum((unsigned char)text[next]))) {
            exponent = minus ? -power : power;
            at = next;
        }
    }
    digits[used] = 0;
    *step = pow(10, exponent - decimals);
    for (int32_t i = used - 1; approximate && !decimals && i > 0 && digits[i] == '0'; i--)
        *step *= 10;
    *value = strtod(digits, NULL) * pow(10, exponent);
    return at;
}

int64_t hr_stated_scan(const char *text, int64_t length, hr_stated *out)
{
    hr_stated s = { .scale = 1, .relation = '=' };
    int64_t at = 0;
    while (at < length && (text[at] == '~' || text[at] == '<' || text[at] == '>')) {
        if (text[at] == '~') s.approximate = true;
        else s.relation = text[at];
        at++;
    }
    const int64_t taken = scan_digits(text + at, length - at, s.approximate, &s.value, &s.step);
    if (taken < 0) return HR_NUMBER_NONE;
    at += taken;
    int64_t blank = at < length && text[at] == ' ' ? 1 : 0;
    int64_t letters = word_length(text + at + blank, length - at - blank);
    const unit *suffix = letters ? find_unit(text + at + blank, letters, !blank) : NULL;
    /* "200M parameters": a suffix, then a noun that stays. "4 M" is no suffix. */
    if (suffix) {
        s.scale = suffix->scale;
        s.power = suffix->power;
        s.binary = suffix->binary;
        s.percent = *suffix->name == '%';
        s.dimension = (hr_audit_dimension)suffix->dimension;
        snprintf(s.unit, sizeof s.unit, "%s", suffix->name);
        at += blank + letters;
    } else if (letters && !blank && !(letters == 1 && text[at] == 'x')) return HR_NUMBER_NONE;
    if (at < length && text[at] == '+' && s.relation == '=' &&
        (at + 1 >= length || !isdigit((unsigned char)text[at + 1]))) {
        s.relation = '+';
        at++;
    }
    s.value *= s.scale;
    s.step *= s.scale;
    *out = s;
    return at;
}

bool hr_stated_in_range(const hr_stated *number)
{
    return number->value <= HR_QUANTITY_MOST && number->step <= HR_QUANTITY_MOST;
}

int32_t hr_audit_nearest(const char *word, const void *rows, int64_t row_bytes, int32_t count)
{
    int32_t nearest = 0, least = INT32_MAX;
    for (int32_t i = 0; i < count; i++) {
        const char *name;
        memcpy(&name, (const char *)rows + i * row_bytes, sizeof name);
        const int32_t distance = hr_word_distance(word, name);
        if (distance >= least) continue;
        least = distance;
        nearest = i;
    }
    return nearest;
}

/* The unit that a word is most like; null: it is like none. The case of letters counts last: "gb"
 * is GB, and not kB. */
static const char *nearest_unit(const char *word)
{
    char given[24] = "", name[24];
    const size_t length = strlen(word);
    int32_t least = INT32_MAX;
    const char *nearest = NULL;
    for (size_t c = 0; c < length && c < sizeof given - 1; c++)
        given[c] = (char)tolower((unsigned char)word[c]);
    for (int32_t i = 0; i < UNITS; i++) {
        const char *unit_name = units[i].name;
        if (units[i].attached || !unit_name[1]) continue;
        for (size_t c = 0; c <= strlen(unit_name); c++)
            name[c] = (char)tolower((unsigned char)unit_name[c]);
        const bool begins = length > 2 && !strncmp(name, given, length); /* "sec" */
        const int32_t apart = begins ? 0 : hr_word_distance(given, name);
        const int32_t distance = 64 * apart + hr_word_distance(word, unit_name);
        if (distance >= least || apart > 2) continue;
        least = distance;
        nearest = unit_name;
    }
    return nearest;
}

static hr_status fail_unit(const char *text, const char *word, hr_error *err)
{
    if (find_unit(word, (int64_t)strlen(word), true))
        return hr_fail(err, HR_USAGE, "\"%.40s\": %.20s stands directly behind its number", text,
                       word);
    const char *nearest = nearest_unit(word);
    return hr_fail(err, HR_USAGE, "\"%.40s\": %.20s is no unit; %s%s", text, word,
                   nearest ? "the nearest is " : "there are MB, GB, MiB, GiB, hours, s and %",
                   nearest ? nearest : "");
}

hr_status hr_stated_parse(const char *text, hr_stated *out, hr_error *err)
{
    char word[24];
    const char *rest = text + strspn(text, " ");
    const int64_t taken = hr_stated_scan(rest, (int64_t)strlen(rest), out);
    if (taken < 0) {
        hr_stated number;
        const size_t start = strspn(rest, "~<>");
        const size_t digits = strspn(rest + start, "0123456789.,");
        if (digits && hr_stated_scan(rest, (int64_t)(start + digits), &number) > 0) {
            snprintf(word, sizeof word, "%.20s", rest + start + digits);
            return fail_unit(text, word, err);
        }
        return hr_fail(err, HR_USAGE, "\"%.40s\" is no number with a unit, such as 37.09 GB", text);
    }
    if (!hr_stated_in_range(out) || !(out->step > 0))
        return hr_fail(err, HR_USAGE, "\"%.40s\" is above 9e18 or below any number", text);
    rest += taken;
    /* "1024 B": bytes, since a billion stands directly behind its number. */
    if (!strcmp(rest, " B") && !*out->unit) {
        out->dimension = HR_AUDIT_BYTES;
        snprintf(out->unit, sizeof out->unit, "B");
        return HR_OK;
    }
    rest += strspn(rest, " ");
    for (int32_t i = 0; i < NOUNS; i++) {
        const size_t length = strlen(nouns[i]);
        if (!strncmp(rest, nouns[i], length) && !is_letter(rest[length])) {
            rest += length;
            break;
        }
    }
    rest += strspn(rest, " ");
    if (!*rest) return HR_OK;
    snprintf(word, sizeof word, "%.*s", (int)word_length(rest, 20), rest);
    return *word
               ? fail_unit(text, word, err)
               : hr_fail(err, HR_USAGE, "\"%.40s\": \"%.20s\" is not part of a number", text, rest);
}
