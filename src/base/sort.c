/* SPDX-License-Identifier: Apache-2.0 */
/* base/sort.c - heapsort. */
#include "base/sort.h"

static void sift(const void *table, hr_sort_before *before, int32_t *rows, int32_t at,
                 int32_t count)
{
    for (int32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(table, rows[child], rows[child + 1])) child++;
        if (!before(table, rows[at], rows[child])) return;
        const int32_t kept = rows[at];
        rows[at] = rows[child];
        rows[child] = kept;
    }
}

void hr_sort(const void *table, hr_sort_before *before, int32_t *rows, int32_t count)
{
    for (int32_t at = count / 2 - 1; at >= 0; at--) sift(table, before, rows, at, count);
    for (int32_t last = count - 1; last > 0; last--) {
        const int32_t greatest = rows[0];
        rows[0] = rows[last];
        rows[last] = greatest;
        sift(table, before, rows, 0, last);
    }
}
