/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - memory that ends exactly where a page begins that faults: a read or write of one byte
 * past the end ends the test. */
#ifndef HR_TESTS_GUARD_H
#define HR_TESTS_GUARD_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
    void *map;
    size_t map_bytes;
} hr_guard;

/* The last `bytes` (>= 0) before the page that faults; zeroed; aligned as far as `bytes` is a
 * multiple of the alignment. Give back with hr_guard_close. */
static inline void *hr_guard_open(hr_guard *guard, int64_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t usable = ((size_t)bytes + page - 1) / page * page;
    guard->map_bytes = usable + page;
    guard->map = mmap(NULL, guard->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
    if (guard->map == MAP_FAILED) abort();
    char *const end = (char *)guard->map + usable;
    if (mprotect(end, page, PROT_NONE) != 0) abort();
    return end - bytes;
}

static inline void hr_guard_close(hr_guard *guard)
{
    munmap(guard->map, guard->map_bytes);
    guard->map = NULL;
}

#endif
