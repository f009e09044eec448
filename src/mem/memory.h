/* SPDX-License-Identifier: Apache-2.0 */
/* mem/memory.h - all memory allocation of a run, and its end.
 *
 * OPEN: regions are opened and closed, the arena and the stacks are allocated. SEALED: every page
 * of the plan is resident, and no code of ours allocates until CLOSED. */
#ifndef HR_MEM_MEMORY_H
#define HR_MEM_MEMORY_H

#include <locale.h>
#include <signal.h>

#include "base/account.h"
#include "base/assert.h"
#include "base/region.h"
#include "mem/process.h"

enum { HR_MEMORY_REGIONS_MAX = 16 };

typedef enum { HR_MEMORY_CLOSED, HR_MEMORY_OPEN, HR_MEMORY_SEALED } hr_memory_state;

/* Read-only for callers. */
typedef struct {
    hr_memory_state state;
    int32_t processor; /* processor on which pages are freed, see hr_process_unmap */
    locale_t locale;   /* of the caller: until the close, numbers are written as in C */
    int64_t image_bytes, main_stack_bytes, heap_bytes;
    int64_t peak_bytes_before; /* VmHWM at hr_memory_open */
    hr_span regions[HR_MEMORY_REGIONS_MAX];
    int32_t region_count;
    int64_t regions_bytes, regions_bytes_most; /* bytes mapped now, and their maximum so far */
    hr_span stacks;
    uint8_t *arena;
    int64_t arena_bytes;      /* as planned; the mapping is rounded up to a page */
    int64_t arena_bytes_used; /* end of the highest range that a step used */
} hr_memory;

/* Fixes the heap size and measures the process. Call it first, on the main thread: everything
 * mapped at this time counts as the image.
 * Errors  FAILURE  /proc cannot be read. */
HR_MUST_CHECK hr_status hr_memory_open(hr_memory *memory, hr_error *err);

/* What an open memory measured of its process. */
hr_process_base hr_memory_process(const hr_memory *memory);

/* hr_account_lines (base/account.h) for this process. */
void hr_memory_account(const hr_memory *memory, int64_t planning_bytes, int64_t tables_bytes,
                       int64_t arena_bytes, hr_account *account);

/* Process bytes now, on one thread beside the open stacks, with `more` bytes in another region. */
int64_t hr_memory_bytes_with(const hr_memory *memory, int64_t more);

/* Opens an empty region of small pages for planning and preparation.
 *
 *   name   what the region is for, for the error
 *   bytes  >= 0; rounded up to a page
 *
 * Errors  NO_FIT  more than this machine, cgroup or ulimit has left. */
HR_MUST_CHECK hr_status hr_memory_region_open(hr_memory *memory, const char *name, int64_t bytes,
                                              hr_region *region, hr_error *err);

/* Unmaps the whole pages after region->used. */
void hr_memory_region_trim(hr_memory *memory, hr_region *region);

/* Lets the kernel back a region with huge pages, which makes its first use several times as fast.
 * Only where no run follows in this process: its resident bytes may then exceed what is used. */
void hr_memory_region_enlarge_pages(const hr_region *region);

/* Unmaps a region and empties it. Accepts an empty one. */
void hr_memory_region_close(hr_memory *memory, hr_region *region);

/* Allocates memory for the stacks of the pool; `stacks` out, null for 0 bytes. Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_memory_stacks_open(hr_memory *memory, int64_t bytes, void **stacks,
                                              hr_error *err);

/* Checks that the machine, its cgroups and limits have room for the whole run, before any page is
 * touched. Errors NO_FIT, with the bytes needed and available. */
HR_MUST_CHECK hr_status hr_memory_check_room(const hr_account *account, hr_error *err);

/* Checks that the whole run fits, before any page is touched. Then maps the arena and touches all
 * of it, in huge pages where available.
 *
 *   interrupts  stops and frees the arena when this is above 0; null: no interrupts
 *
 * Align   2 MiB
 * Errors  NO_FIT, with the bytes needed and available; INTERRUPTED. */
HR_MUST_CHECK hr_status hr_memory_arena_open(hr_memory *memory, const hr_account *account,
                                             int64_t arena_bytes,
                                             const volatile sig_atomic_t *interrupts,
                                             hr_error *err);

/* Makes every page resident and checks that no others exist. Open regions stay for the
 * run. From now on nothing is allocated.
 * Errors  BROKEN   the process has mapped, or had resident, more than accounted
 *         NO_FIT   the machine has run out of memory in the meantime. */
HR_MUST_CHECK hr_status hr_memory_seal(hr_memory *memory, const hr_account *account, hr_error *err);

/* Peak memory of the process, for comparison with the plan: VmHWM. If an earlier run in this
 * process had a higher peak, VmHWM says nothing about this run, and the current RSS is returned. -1
 * when /proc cannot be read. */
int64_t hr_memory_peak_bytes(const hr_memory *memory);

/* Unmaps everything. Close the pool first. Accepts a closed or zeroed memory. */
void hr_memory_close(hr_memory *memory);

/* Returns true while any memory of this process is sealed. Tests that trap allocations use it.
 * Threads any. */
bool hr_memory_is_sealed(void);

/* Records that a step used these bytes of the arena. */
static inline void hr_arena_note(hr_memory *memory, const void *pointer, int64_t bytes)
{
    const int64_t end = (const uint8_t *)pointer - memory->arena + bytes;
    HR_DEBUG_ASSERT(end - bytes >= 0 && end <= memory->arena_bytes);
    if (end > memory->arena_bytes_used) memory->arena_bytes_used = end;
}

#endif
