/* SPDX-License-Identifier: Apache-2.0 */
/* base/region.c - a bump allocator. */
#include "base/region.h"

#include <string.h>

#include "base/checked.h"

void *hr_region_take_raw(hr_region *region, int64_t count, int64_t size)
{
    int64_t bytes, end, first = hr_round_up(region->used, 64);
    if (count < 0 || size < 0 || !hr_checked_mul(count, size, &bytes) ||
        !hr_checked_add(first, bytes, &end) || end > region->bytes) {
        region->used = region->bytes; /* all later allocations must fail too */
        return 0;
    }
    region->used = end;
    region->used_most = hr_max(region->used_most, end);
    return region->base + first;
}

void *hr_region_take(hr_region *region, int64_t count, int64_t size)
{
    void *taken = hr_region_take_raw(region, count, size);
    return taken ? memset(taken, 0, (size_t)(count * size)) : 0;
}
