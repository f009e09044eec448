/* SPDX-License-Identifier: Apache-2.0 */
/* base/sort.h - rows of a table in order, in place and without recursion. */
#ifndef HR_BASE_SORT_H
#define HR_BASE_SORT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether row a of the table comes before row b. */
typedef bool hr_sort_before(const void *table, int32_t a, int32_t b);

/* Orders rows [count], by heapsort: not stable. */
void hr_sort(const void *table, hr_sort_before *before, int32_t *rows, int32_t count);

#endif
