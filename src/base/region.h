/* SPDX-License-Identifier: Apache-2.0 */
/* base/region.h - a bounded stretch of the caller's memory, handed out from the front.
 *
 * Set-up tables live here. Nothing is ever freed singly: a caller remembers `used` and puts it
 * back. */
#ifndef HR_BASE_REGION_H
#define HR_BASE_REGION_H

#include <stdint.h>

typedef struct {
    uint8_t *base;
    int64_t bytes; /* in all */
    int64_t used;
    int64_t used_most; /* the most that `used` has ever been */
} hr_region;

static inline hr_region hr_region_over(void *memory, int64_t bytes)
{
    return (hr_region){ (uint8_t *)memory, bytes, 0, 0 };
}

/* `count` objects of `size` bytes each, zeroed, aligned to 64; null when the region is too small or
 * the product overflows. After that the region counts as full, until `used` is put back: of several
 * takes in a row, all succeeded if the last did. */
void *hr_region_take(hr_region *region, int64_t count, int64_t size);

/* The same, not zeroed: for who writes all of it that is read. */
void *hr_region_take_raw(hr_region *region, int64_t count, int64_t size);

#endif
