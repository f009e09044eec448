/* SPDX-License-Identifier: Apache-2.0 */
/* base/checked.h - checked arithmetic for sizes from untrusted input. The checked functions return
 * false on overflow and leave *out unchanged. */
#ifndef HR_BASE_CHECKED_H
#define HR_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool hr_checked_add(int64_t a, int64_t b, int64_t *out)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

static inline bool hr_checked_mul(int64_t a, int64_t b, int64_t *out)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

/* Rounds `value` (>= 0) up to a multiple of `unit` (> 0). */
static inline int64_t hr_round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static inline int64_t hr_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t hr_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
