/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/borders.c - one counter per eight tokens of the text. Most borders are rare. A
 * rare border that shares the counter of a frequent one is kept needlessly, which only costs
 * memory. */
#include "tokenizer/train/borders.h"

#include "base/assert.h"
#include "base/checked.h"

enum { TOKENS_A_COUNT = 8, BITS_LEAST = 12, BITS_MOST = 34 };

static int32_t bits_for(int64_t tokens)
{
    int32_t bits = BITS_LEAST;
    while (bits < BITS_MOST && INT64_C(1) << bits < tokens / TOKENS_A_COUNT) bits++;
    return bits;
}

int64_t hr_borders_bytes(int64_t tokens)
{
    return (INT64_C(4) << bits_for(tokens)) + 64;
}

void hr_borders_place(hr_borders *borders, hr_region *region, int64_t tokens)
{
    borders->bits = bits_for(tokens);
    borders->counts = hr_region_take(region, INT64_C(1) << borders->bits, 4);
    HR_ASSERT(borders->counts);
}

static int64_t count_from(const hr_borders *borders, int64_t least)
{
    int64_t count = 0;
    for (int64_t i = 0; i < INT64_C(1) << borders->bits; i++)
        count += atomic_load_explicit(&borders->counts[i], memory_order_relaxed) >= least;
    return count;
}

int64_t hr_borders_level(const hr_borders *borders, int64_t wanted)
{
    int64_t low = 1, high = INT32_MAX;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (count_from(borders, middle) >= wanted) low = middle;
        else high = middle - 1;
    }
    return low;
}

int64_t hr_borders_largest(const hr_borders *borders)
{
    int64_t most = 0;
    for (int64_t i = 0; i < INT64_C(1) << borders->bits; i++)
        most = hr_max(most, atomic_load_explicit(&borders->counts[i], memory_order_relaxed));
    return most;
}
