/* SPDX-License-Identifier: Apache-2.0 */
/* base/number.c - strict parsers and exact printers of numbers and byte sizes. */
#define _GNU_SOURCE
#include "base/number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "headroom/config.h"

/* Numbers of recipes have points, whatever the locale of the program. glibc allocates nothing for
 * this locale. */
static locale_t c_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

const char *hr_real_print(double value, char text[HR_REAL_BYTES])
{
    const locale_t before = uselocale(c_locale());
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, HR_REAL_BYTES, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    uselocale(before);
    return text;
}

bool hr_real_parse(const char *text, double *value)
{
    /* strtod also accepts blanks, hexadecimal, "inf" and "nan", which recipes do not allow. */
    if (!*text || text[strspn(text, "0123456789+-.eE")]) return false;
    char *end;
    const double number = strtod_l(text, &end, c_locale());
    if (*end || !isfinite(number)) return false;
    *value = number;
    return true;
}

bool hr_integer_parse(const char *text, int64_t *value)
{
    if (!*text || text[strspn(text, "0123456789-")]) return false;
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (*end || end == text || errno) return false;
    *value = number;
    return true;
}

static const struct {
    const char *name;
    int64_t bytes;
} units[] = { { "", 1 },
              { "B", 1 },
              { "kB", 1000 },
              { "KB", 1000 },
              { "KiB", 1024 },
              { "MB", 1000000 },
              { "MiB", 1048576 },
              { "GB", 1000000000 },
              { "GiB", 1073741824 },
              { "TB", 1000000000000 },
              { "TiB", 1099511627776 } };

static int64_t unit_bytes(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(name, units[i].name)) return units[i].bytes;
    return 0;
}

/* Parses a whole number of at most `digits_max` digits at *text and moves *text past it. */
static bool parse_digits(const char **text, int32_t digits_max, int64_t *value, int64_t *scale)
{
    *value = 0;
    *scale = 1;
    int32_t digits = 0;
    for (; **text >= '0' && **text <= '9'; (*text)++, digits++) {
        if (digits == digits_max) return false;
        *value = *value * 10 + (**text - '0');
        *scale *= 10;
    }
    return digits > 0;
}

/* Six decimals of the largest unit stay below 2^60, and 18 digits of whole units below 2^63. */
enum { WHOLE_DIGITS_MAX = 18, DECIMALS_MAX = 6 };

hr_status hr_bytes_parse(const char *text, int64_t *bytes, hr_error *err)
{
    const char *at = text;
    int64_t whole = 0, decimals = 0, scale = 1, total = 0;
    bool good = parse_digits(&at, WHOLE_DIGITS_MAX, &whole, &scale);
    scale = 1;
    if (good && *at == '.') {
        at++;
        good = parse_digits(&at, DECIMALS_MAX, &decimals, &scale);
    }
    if (good && *at == ' ') at++;
    const int64_t unit = good ? unit_bytes(at) : 0;
    if (!unit || (unit == 1 && scale > 1))
        return hr_fail(err, HR_USAGE,
                       "\"%.40s\" is not a size: write 700MiB, 733MB, 1.5GiB or "
                       "plain bytes",
                       text);
    if (!hr_checked_mul(whole, unit, &total) ||
        !hr_checked_add(total, decimals * unit / scale, &total))
        return hr_fail(err, HR_USAGE, "\"%.40s\" is more than %lld bytes", text,
                       (long long)INT64_MAX);
    *bytes = total;
    return HR_OK;
}

const char *hr_count_print(int64_t count, char text[HR_COUNT_BYTES])
{
    char digits[24];
    const uint64_t size = count < 0 ? UINT64_C(0) - (uint64_t)count : (uint64_t)count;
    const int32_t length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)size);
    int32_t out = 0;
    if (count < 0) text[out++] = '-';
    for (int32_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) text[out++] = ',';
        text[out++] = digits[i];
    }
    text[out] = 0;
    return text;
}

const char *hr_size_print(int64_t bytes, char text[HR_COUNT_BYTES])
{
    static const struct {
        const char *name;
        int64_t bytes, least; /* least: smallest size in this unit */
    } sizes[] = { { "GiB", 1 << 30, INT64_C(10) << 30 },
                  { "MiB", 1 << 20, 1 << 20 },
                  { "KiB", 1 << 10, 0 } };
    char whole[HR_COUNT_BYTES];
    int32_t u = 0;
    while (u < 2 && bytes < sizes[u].least && bytes > -sizes[u].least) u++;
    const double size = fabs((double)bytes / (double)sizes[u].bytes);
    const int64_t tenths = (int64_t)(10 * size + 0.5);
    if (bytes && tenths == 0) snprintf(text, HR_COUNT_BYTES, "<0.1 %s", sizes[u].name);
    else
        snprintf(text, HR_COUNT_BYTES, "%s%s.%d %s", bytes < 0 ? "-" : "",
                 hr_count_print(tenths / 10, whole), (int)(tenths % 10), sizes[u].name);
    return text;
}

const char *hr_bytes_print(int64_t bytes, char text[64])
{
    char count[HR_COUNT_BYTES], size[HR_COUNT_BYTES];
    hr_count_print(bytes, count);
    if (bytes > -1024 && bytes < 1024)
        snprintf(text, 64, "%s byte%s", count, bytes == 1 || bytes == -1 ? "" : "s");
    else snprintf(text, 64, "%s bytes (%s)", count, hr_size_print(bytes, size));
    return text;
}

const char *hr_duration_print(double seconds, char text[HR_COUNT_BYTES])
{
    const double longest = 1e15;
    char count[HR_COUNT_BYTES];
    if (!(seconds >= 0 && seconds < longest)) {
        snprintf(text, HR_COUNT_BYTES, "?");
        return text;
    }
    const long long whole = llround(seconds), minutes = llround(seconds / 60),
                    hours = llround(seconds / 3600);
    if (seconds > 0 && seconds < 1) snprintf(text, HR_COUNT_BYTES, "%.4g ms", 1e3 * seconds);
    else if (whole < 120) snprintf(text, HR_COUNT_BYTES, "%.4g s", seconds);
    else if (whole < 3600)
        snprintf(text, HR_COUNT_BYTES, "%lld min %lld s", whole / 60, whole % 60);
    else if (minutes < 2 * 24 * 60)
        snprintf(text, HR_COUNT_BYTES, "%lld h %lld min", minutes / 60, minutes % 60);
    else
        snprintf(text, HR_COUNT_BYTES, "%s days %lld h", hr_count_print(hours / 24, count),
                 hours % 24);
    return text;
}
