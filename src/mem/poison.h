/* SPDX-License-Identifier: Apache-2.0 */
/* mem/poison.h - marks arena bytes as inaccessible. AddressSanitizer reports accesses to them;
 * HR_POISONS is then defined. In other builds these functions do nothing. Both take multiples of 8
 * bytes. */
#ifndef HR_MEM_POISON_H
#define HR_MEM_POISON_H

#include <stdint.h>

#include "mem/sanitize.h"

#if HR_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>

#define HR_POISONS 1

static inline void hr_arena_poison(const void *pointer, int64_t bytes)
{
    ASAN_POISON_MEMORY_REGION(pointer, (size_t)bytes);
}

static inline void hr_arena_unpoison(const void *pointer, int64_t bytes)
{
    ASAN_UNPOISON_MEMORY_REGION(pointer, (size_t)bytes);
}
#else
static inline void hr_arena_poison(const void *pointer, int64_t bytes)
{
    (void)pointer, (void)bytes;
}

static inline void hr_arena_unpoison(const void *pointer, int64_t bytes)
{
    (void)pointer, (void)bytes;
}
#endif

#endif
