/* SPDX-License-Identifier: Apache-2.0 */
/* audit/quantity.c - arithmetic with dimensions. Whole numbers stay exact as long as they are. */
#include "audit/quantity.h"

#include <math.h>
#include <stdio.h>

#include "base/checked.h"

hr_quantity hr_quantity_of(int64_t whole, hr_audit_dimension dimension)
{
    return (hr_quantity){ (double)whole, whole, true, dimension };
}

hr_quantity hr_quantity_of_real(double value, hr_audit_dimension dimension)
{
    const bool is_whole = fabs(value) < 9e15 && value == floor(value);
    return (hr_quantity){ value, is_whole ? (int64_t)value : 0, is_whole, dimension };
}

static const char *word_of(hr_audit_dimension dimension)
{
    return dimension == HR_AUDIT_BYTES     ? "bytes"
           : dimension == HR_AUDIT_SECONDS ? "seconds"
                                           : "a plain number";
}

/* The dimension of a result; -1: there is none. */
static int32_t dimension_of(char operation, hr_audit_dimension a, hr_audit_dimension b)
{
    if (operation == '+' || operation == '-') return a == b ? (int32_t)a : -1;
    if (operation == '*')
        return a == HR_AUDIT_PLAIN ? (int32_t)b : b == HR_AUDIT_PLAIN ? (int32_t)a : -1;
    return b == HR_AUDIT_PLAIN ? (int32_t)a : a == b ? HR_AUDIT_PLAIN : -1;
}

static bool exactly(char operation, int64_t a, int64_t b, int64_t *out)
{
    switch (operation) {
    case '+': return hr_checked_add(a, b, out);
    case '-': return !__builtin_sub_overflow(a, b, out);
    case '*': return hr_checked_mul(a, b, out);
    default:
        if (a == INT64_MIN || a % b) return false;
        *out = a / b;
        return true;
    }
}

hr_status hr_quantity_apply(char operation, hr_quantity a, hr_quantity b, hr_quantity *out,
                            hr_error *err)
{
    const int32_t dimension = dimension_of(operation, a.dimension, b.dimension);
    if (dimension < 0)
        return hr_fail(err, HR_USAGE, "%s %c %s has no meaning", word_of(a.dimension), operation,
                       word_of(b.dimension));
    if (operation == '/' && b.value == 0) return hr_fail(err, HR_USAGE, "a division by zero");
    const double value = operation == '+'   ? a.value + b.value
                         : operation == '-' ? a.value - b.value
                         : operation == '*' ? a.value * b.value
                                            : a.value / b.value;
    hr_quantity result = { value, 0, false, (hr_audit_dimension)dimension };
    result.is_whole = a.is_whole && b.is_whole &&
                      exactly(operation, a.whole, b.whole, &result.whole);
    if (!result.is_whole && (!isfinite(value) || fabs(value) > HR_QUANTITY_MOST))
        return hr_fail(err, HR_USAGE, "a result above 9e18");
    if (!result.is_whole) result = hr_quantity_of_real(value, result.dimension);
    *out = result;
    return HR_OK;
}

/* Three or four significant digits: "37.09", "344.0", "1.049". */
static const char *print_short(double value, char text[24])
{
    const double size = fabs(value);
    const int digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
    snprintf(text, 24, "%.*f", digits, value);
    return text;
}

static const char *print_bytes(hr_quantity q, char text[HR_AUDIT_VALUE_BYTES])
{
    static const char *const decimal[] = { "", "kB", "MB", "GB", "TB", "PB" };
    static const char *const binary[] = { "", "KiB", "MiB", "GiB", "TiB", "PiB" };
    char count[HR_COUNT_BYTES], first[24], second[24];
    int32_t power = 0;
    double ten = fabs(q.value), two = ten;
    while (power < 5 && ten >= 1000) {
        ten /= 1000, two /= 1024;
        power++;
    }
    if (!q.is_whole && !power) snprintf(text, HR_AUDIT_VALUE_BYTES, "%.3g bytes", q.value);
    else if (!power)
        snprintf(text, HR_AUDIT_VALUE_BYTES, "%s bytes", hr_count_print(q.whole, count));
    else if (!q.is_whole)
        snprintf(text, HR_AUDIT_VALUE_BYTES, "%s %s, %s %s", print_short(ten, first),
                 decimal[power], print_short(two, second), binary[power]);
    else
        snprintf(text, HR_AUDIT_VALUE_BYTES, "%s %s, %s %s (%s bytes)", print_short(ten, first),
                 decimal[power], print_short(two, second), binary[power],
                 hr_count_print(q.whole, count));
    return text;
}

const char *hr_quantity_print(hr_quantity quantity, char text[HR_AUDIT_VALUE_BYTES])
{
    char number[HR_COUNT_BYTES], digits[24];
    if (quantity.dimension == HR_AUDIT_BYTES) return print_bytes(quantity, text);
    if (quantity.dimension == HR_AUDIT_SECONDS && quantity.value >= 3600)
        snprintf(text, HR_AUDIT_VALUE_BYTES, "%s hours",
                 print_short(quantity.value / 3600, digits));
    else if (quantity.dimension == HR_AUDIT_SECONDS)
        snprintf(text, HR_AUDIT_VALUE_BYTES, "%s seconds", print_short(quantity.value, digits));
    else if (quantity.is_whole)
        snprintf(text, HR_AUDIT_VALUE_BYTES, "%s", hr_count_print(quantity.whole, number));
    else snprintf(text, HR_AUDIT_VALUE_BYTES, "%.4g", quantity.value);
    return text;
}
