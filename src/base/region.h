/* SPDX-License-Identifier: Apache-2.0 */
/* base/region.h - a bump allocator over a fixed block of the caller's memory.
 *
 * It holds tables that are built once. Blocks are not freed one by one: to free, the caller saves
 * `used` and restores it. */
#ifndef HR_BASE_REGION_H
#define HR_BASE_REGION_H

#include <stdint.h>

typedef struct {
    uint8_t *base;
    int64_t bytes; /* total size */
    int64_t used;
    int64_t used_most; /* largest value of `used` so far */
} hr_region;

static inline hr_region hr_region_over(void *memory, int64_t bytes)
{
    return (hr_region){ (uint8_t *)memory, bytes, 0, 0 };
}

/* Allocates `count` objects of `size` bytes each, zeroed, aligned to 64. Returns null when the
 * region is too small or the product overflows; from then on the region counts as full until `used`
 * is restored. So after several calls in a row only the last result needs a check. */
void *hr_region_take(hr_region *region, int64_t count, int64_t size);

/* Same, but not zeroed: for callers that write before they read. */
void *hr_region_take_raw(hr_region *region, int64_t count, int64_t size);

#endif
