/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack/sort.h - a stable sort that allocates no memory, unlike qsort of the C library. */
#ifndef HR_PLAN_PACK_SORT_H
#define HR_PLAN_PACK_SORT_H

#include <stdint.h>

/* Ascending by the first word, then the second, then the third. */
typedef struct {
    int64_t word[3];
    int32_t index; /* moves with its key */
} hr_pack_key;

/* Sorts keys [count]; equal keys keep their order. `spare` [count] is scratch. */
void hr_pack_sort_keys(hr_pack_key *keys, hr_pack_key *spare, int32_t count);

#endif
