/* SPDX-License-Identifier: Apache-2.0 */
/* mem/pattern.c - the pattern of a word is a hash of its index. */
#include "mem/pattern.h"

#include "base/assert.h"
#include "base/random.h"

static uint64_t pattern(int64_t word)
{
    return hr_random_mix((uint64_t)word + UINT64_C(0x9e3779b97f4a7c15));
}

void hr_pattern_fill(void *memory, int64_t bytes)
{
    HR_ASSERT(bytes % 8 == 0);
    uint64_t *words = memory;
    for (int64_t i = 0; i < bytes / 8; i++) words[i] = pattern(i);
}

int64_t hr_pattern_end(const void *memory, int64_t bytes)
{
    HR_ASSERT(bytes % 8 == 0);
    const uint64_t *words = memory;
    int64_t end = bytes / 8;
    while (end > 0 && words[end - 1] == pattern(end - 1)) end--;
    return end * 8;
}

int64_t hr_pattern_untouched_bytes(const void *memory, int64_t offset, int64_t bytes)
{
    HR_ASSERT(offset % 8 == 0 && bytes % 8 == 0);
    const uint64_t *words = memory;
    int64_t untouched = 0;
    for (int64_t i = offset / 8; i < (offset + bytes) / 8; i++) untouched += words[i] == pattern(i);
    return untouched * 8;
}
