/* SPDX-License-Identifier: Apache-2.0 */
/* base/sort.h - sorts row indices of a table, in place and without recursion. */
#ifndef HR_BASE_SORT_H
#define HR_BASE_SORT_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true when row a of the table comes before row b. */
typedef bool hr_sort_before(const void *table, int32_t a, int32_t b);

/* Sorts rows [count] with heapsort: not stable. */
void hr_sort(const void *table, hr_sort_before *before, int32_t *rows, int32_t count);

#endif
