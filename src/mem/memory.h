/* SPDX-License-Identifier: Apache-2.0 */
/* mem/memory.h - the only place that asks the system for memory, and the moment it stops asking.
 *
 * OPEN: regions come and go, the arena and the stacks are taken. SEALED: everything that the plan
 * counts is resident, and no code of ours asks for more until CLOSED. */
#ifndef HR_MEM_MEMORY_H
#define HR_MEM_MEMORY_H

#include <signal.h>

#include "base/assert.h"
#include "base/region.h"
#include "mem/process.h"
#include "plan/plan.h"

enum { HR_MEMORY_REGIONS_MAX = 16 };

typedef enum { HR_MEMORY_CLOSED, HR_MEMORY_OPEN, HR_MEMORY_SEALED } hr_memory_state;

/* For reading; only the functions below write it. */
typedef struct {
    hr_memory_state state;
    int32_t processor; /* on which pages are given back */
    int64_t image_bytes, main_stack_bytes;
    int64_t peak_bytes_before; /* VmHWM when it was opened */
    hr_span regions[HR_MEMORY_REGIONS_MAX];
    int32_t region_count;
    int64_t regions_bytes, regions_bytes_most; /* mapped now, and at most at one time */
    hr_span stacks;
    uint8_t *arena;
    int64_t arena_bytes;      /* as planned; mapped up to a whole page */
    int64_t arena_bytes_used; /* one past the highest byte that a step was given */
} hr_memory;

/* Fixes the heap and looks at what the process is made of. Call first of all, on the main thread:
 * what is mapped at this moment is the image.
 * Errors  FAILURE  /proc cannot be read. */
HR_MUST_CHECK hr_status hr_memory_open(hr_memory *memory, hr_error *err);

/* Writes the lines of what the process uses, and their sum, into a plan whose threads and
 * arena_bytes are known.
 *
 *   planning_bytes  the most that regions take at one time, before the arena is taken
 *   tables_bytes    what regions take that stay for the run: each rounded up to a page */
void hr_memory_account(const hr_memory *memory, int64_t planning_bytes, int64_t tables_bytes,
                       hr_plan *plan);

/* A region of small pages for planning and preparation, empty.
 *
 *   name   of what it is for, in the sentence of a refusal
 *   bytes  >= 0; rounded up to a page
 *
 * Errors  NO_FIT  more than this machine, cgroup or ulimit has left. */
HR_MUST_CHECK hr_status hr_memory_region_open(hr_memory *memory, const char *name, int64_t bytes,
                                              hr_region *region, hr_error *err);

/* Gives back the whole pages past region->used. */
void hr_memory_region_trim(hr_memory *memory, hr_region *region);

/* Gives a region back and empties it; an empty one is accepted. */
void hr_memory_region_close(hr_memory *memory, hr_region *region);

/* Takes memory for the stacks of the pool; `stacks` out, null for 0 bytes. Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_memory_stacks_open(hr_memory *memory, int64_t bytes, void **stacks,
                                              hr_error *err);

/* Whether the machine, its cgroups and limits have room now for the whole run of an accounted plan.
 * Errors NO_FIT, with the bytes needed and available. */
HR_MUST_CHECK hr_status hr_memory_check_room(const hr_plan *plan, hr_error *err);

/* Admits the whole run of an accounted plan, or refuses it with the bytes needed and available
 * before any are touched; then takes the arena and touches all of it, in huge pages where it gets
 * them.
 *
 *   interrupts  once above 0, it ends and takes nothing; null: there are none
 *
 * Align   2 MiB
 * Errors  NO_FIT, INTERRUPTED. */
HR_MUST_CHECK hr_status hr_memory_arena_open(hr_memory *memory, const hr_plan *plan,
                                             const volatile sig_atomic_t *interrupts,
                                             hr_error *err);

/* Makes every page resident that the plan counts and checks that there are no others. Regions that
 * are open stay for the run. From here on nothing is asked for.
 * Errors  BROKEN   more is mapped, or was resident at one time, than the plan says
 *         NO_FIT   the machine has run out in the meantime. */
HR_MUST_CHECK hr_status hr_memory_seal(hr_memory *memory, const hr_plan *plan, hr_error *err);

/* The most that the process used, to be held against the plan: VmHWM. Where it had used even more
 * before this memory was opened, by an earlier run, VmHWM tells nothing and this is what it uses
 * now. -1 when /proc cannot be read. */
int64_t hr_memory_peak_bytes(const hr_memory *memory);

/* Gives everything back. The pool must be closed. A closed or zeroed memory is accepted. */
void hr_memory_close(hr_memory *memory);

/* True between seal and close, of any memory of this process: what a trap for allocations asks.
 * Threads any. */
bool hr_memory_is_sealed(void);

/* Notes that a step was given these bytes of the arena. */
static inline void hr_arena_note(hr_memory *memory, const void *pointer, int64_t bytes)
{
    const int64_t end = (const uint8_t *)pointer - memory->arena + bytes;
    HR_DEBUG_ASSERT(end - bytes >= 0 && end <= memory->arena_bytes);
    if (end > memory->arena_bytes_used) memory->arena_bytes_used = end;
}

#endif
