/* SPDX-License-Identifier: Apache-2.0 */
/* mem/process.h - what the process uses beside its arena, and how that is made true.
 *
 * A line of the plan is a number of bytes that are mapped; every page of them is touched before the
 * seal, so that the resident set is the plan and stays it. docs/memory.md explains each line. */
#ifndef HR_MEM_PROCESS_H
#define HR_MEM_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"
#include "mem/sanitize.h"

enum {
    /* Of every thread; of the main one with the environment above it. ThreadSanitizer keeps 900
     * KiB of its own at the top of each. */
    HR_STACK_BYTES = HR_THREAD_SANITIZER ? 2 << 20 : 256 << 10,

    /* libc's, libyaml's and jansson's; below the size of a huge page. */
    HR_HEAP_BYTES = 1 << 20
};

/* A stretch of memory, to be left out of a sum. */
typedef struct {
    const void *base;
    int64_t bytes;
} hr_span;

/* Bytes of a page of this system. */
int64_t hr_page_bytes(void);

/* False in builds with a sanitizer, whose allocator and shadow memory no plan covers: there the
 * lines are computed and nothing is touched or compared. */
bool hr_process_is_exact(void);

/* Bytes of the mappings of the program and its libraries: whatever can be read and is not heap,
 * main stack, kernel clock page or one of `others` [count].
 * Errors  FAILURE  /proc cannot be read. */
HR_MUST_CHECK hr_status hr_process_image_bytes(const hr_span *others, int32_t count, int64_t *bytes,
                                               hr_error *err);

/* Makes every page of every mapping resident, but those of the main stack: private ones that can be
 * written get pages of their own, contents unchanged.
 * Errors  FAILURE  the system refuses, NO_FIT  for want of memory. */
HR_MUST_CHECK hr_status hr_process_populate(hr_error *err);

/* Sets libc's allocator to one arena that never maps and never shrinks, and lets the heap grow to
 * HR_HEAP_BYTES at once, for later use. Call before threads start.
 * Errors  FAILURE  /proc cannot be read. */
HR_MUST_CHECK hr_status hr_process_heap_fix(hr_error *err);

/* Bytes of the heap as mapped; at most HR_HEAP_BYTES if nobody asked for more.
 * Errors  FAILURE  /proc cannot be read. */
HR_MUST_CHECK hr_status hr_process_heap_bytes(int64_t *bytes, hr_error *err);

/* Bytes to plan for the main stack: HR_STACK_BYTES, or as many of them as a large environment
 * needs. */
int64_t hr_process_stack_bytes(void);

/* Touches the main stack down to `bytes` below its top.
 * Errors  BROKEN  it has already grown further than that
 *         NO_FIT  its limit is lower (hr_machine_check_stack). */
HR_MUST_CHECK hr_status hr_process_stack_touch(int64_t bytes, hr_error *err);

/* The processor that this thread runs on now, for hr_process_give_back; -1: unknown. */
int32_t hr_process_processor(void);

/* Unmaps a span on that processor, where the thread's affinity allows, and empties it. The affinity
 * is as before afterwards. Accepts an empty span. */
void hr_process_give_back(hr_span *span, int32_t processor);

/* The allowance for the kernel's own counting, of a process that gives back pages by
 * hr_process_give_back on one processor: see the definition. */
int64_t hr_process_counter_bytes(void);

/* What a cgroup is charged beside the process: page tables, kernel stacks of the threads, and the
 * page cache that reading and writing files cannot do without. */
int64_t hr_process_kernel_bytes(int64_t process_bytes, int32_t threads);

/* The most that was ever resident (VmHWM) and what is now (VmRSS); -1 when /proc is unreadable. */
int64_t hr_process_peak_bytes(void);
int64_t hr_process_now_bytes(void);

#endif
