/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack/sort.c - bottom-up merge sort. */
#include "plan/pack/sort.h"

#include <stdbool.h>
#include <string.h>

#include "base/checked.h"

static bool comes_after(const hr_pack_key *a, const hr_pack_key *b)
{
    for (int32_t i = 0; i < 2; i++)
        if (a->word[i] != b->word[i]) return a->word[i] > b->word[i];
    return a->word[2] > b->word[2];
}

static void merge(const hr_pack_key *from, hr_pack_key *to, int64_t low, int64_t middle,
                  int64_t high)
{
    int64_t left = low, right = middle;
    if (middle == high || !comes_after(&from[middle - 1], &from[middle])) {
        memcpy(to + low, from + low, (size_t)(high - low) * sizeof *to); /* in order already */
        return;
    }
    for (int64_t i = low; i < high; i++) {
        const bool take_left = left < middle &&
                               (right == high || !comes_after(&from[left], &from[right]));
        to[i] = take_left ? from[left++] : from[right++];
    }
}

void hr_pack_sort_keys(hr_pack_key *keys, hr_pack_key *spare, int32_t count)
{
    hr_pack_key *from = keys, *to = spare;
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t low = 0; low < count; low += 2 * width)
            merge(from, to, low, hr_min(low + width, count), hr_min(low + 2 * width, count));
        hr_pack_key *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) memcpy(keys, from, (size_t)count * sizeof *keys);
}
