/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/pattern.h - detects which bytes of memory a run has written.
 *
 * Before the run, every word is set to a value that depends on its index. A word that still has
 * this value afterwards was not written. A run writes the same value by chance once in 2^64. */
#ifndef HR_TESTS_SUPPORT_PATTERN_H
#define HR_TESTS_SUPPORT_PATTERN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"

static inline uint64_t pattern_of(int64_t word)
{
    return hr_random_mix((uint64_t)word + UINT64_C(0x9e3779b97f4a7c15));
}

/* Fills `memory` [bytes], a multiple of 8. Align: 8. */
static inline void pattern_fill(void *memory, int64_t bytes)
{
    assert_true(bytes % 8 == 0);
    uint64_t *words = memory;
    for (int64_t i = 0; i < bytes / 8; i++) words[i] = pattern_of(i);
}

/* End of the last word of `memory` [bytes] that was written; 0 when none was. */
static inline int64_t pattern_end(const void *memory, int64_t bytes)
{
    assert_true(bytes % 8 == 0);
    const uint64_t *words = memory;
    int64_t end = bytes / 8;
    while (end > 0 && words[end - 1] == pattern_of(end - 1)) end--;
    return end * 8;
}

/* Bytes of unwritten words in [offset, offset + bytes); both multiples of 8. */
static inline int64_t pattern_untouched_bytes(const void *memory, int64_t offset, int64_t bytes)
{
    assert_true(offset % 8 == 0 && bytes % 8 == 0);
    const uint64_t *words = memory;
    int64_t untouched = 0;
    for (int64_t i = offset / 8; i < (offset + bytes) / 8; i++)
        untouched += words[i] == pattern_of(i);
    return untouched * 8;
}

#endif
