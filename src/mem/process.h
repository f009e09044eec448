/* SPDX-License-Identifier: Apache-2.0 */
/* mem/process.h - the memory of the process outside of the arena.
 *
 * Each line of the plan is a number of mapped bytes. All their pages are touched before the seal,
 * so that the resident set equals the plan and does not change. docs/memory.md explains each
 * line. */
#ifndef HR_MEM_PROCESS_H
#define HR_MEM_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"
#include "mem/sanitize.h"

enum {
    /* Stack of every thread; the main stack also holds the environment. ThreadSanitizer uses 900
     * KiB at the top of each. */
    HR_STACK_BYTES = HR_THREAD_SANITIZER ? 2 << 20 : 256 << 10,

    /* Heap of libc, libyaml and jansson; smaller than a huge page. */
    HR_HEAP_BYTES = 1 << 20
};

/* A range of memory. */
typedef struct {
    const void *base;
    int64_t bytes;
} hr_span;

/* Page size of this system. */
int64_t hr_page_bytes(void);

/* False in builds with a sanitizer, because no plan covers its allocator and shadow memory. The
 * lines are then computed, but nothing is touched or compared. */
bool hr_process_is_exact(void);

/* Bytes of the mappings of the program and its libraries: all readable mappings except heap, main
 * stack, kernel pages and `others` [count].
 * Errors  FAILURE  /proc cannot be read. */
HR_MUST_CHECK hr_status hr_process_image_bytes(const hr_span *others, int32_t count, int64_t *bytes,
                                               hr_error *err);

/* Makes every page of every mapping resident, except those of the main stack. Writable private
 * pages become own copies with the same content.
 * Errors  FAILURE  the system refuses
 *         NO_FIT   out of memory. */
HR_MUST_CHECK hr_status hr_process_populate(hr_error *err);

/* Sets malloc to one arena that never uses mmap and never shrinks, and grows the heap at once to
 * `bytes`: HR_HEAP_BYTES, or more where the program has more. Call it before threads start.
 * Errors  FAILURE  /proc cannot be read. */
HR_MUST_CHECK hr_status hr_process_heap_fix(int64_t *bytes, hr_error *err);

/* Mapped bytes of the heap; as hr_process_heap_fix set them, unless more was allocated.
 * Errors  FAILURE  /proc cannot be read. */
HR_MUST_CHECK hr_status hr_process_heap_bytes(int64_t *bytes, hr_error *err);

/* Bytes to plan for the main stack: a multiple of HR_STACK_BYTES that also holds the
 * environment. */
int64_t hr_process_stack_bytes(void);

/* Touches the main stack down to `bytes` below its top.
 * Errors  BROKEN  the stack is already larger
 *         NO_FIT  the stack limit is lower (hr_machine_check_stack). */
HR_MUST_CHECK hr_status hr_process_stack_touch(int64_t bytes, hr_error *err);

/* Processor that this thread currently runs on, for hr_process_unmap; -1: unknown. */
int32_t hr_process_processor(void);

/* Unmaps and empties a span while running on that processor, if the affinity mask allows it.
 * Restores the affinity mask. Accepts an empty span. One processor keeps the error of the RSS
 * counters small: see hr_process_counter_bytes. */
void hr_process_unmap(hr_span *span, int32_t processor);

/* Maximum error of the RSS counters of Linux, for a process that frees pages only with
 * hr_process_unmap on one processor. The derivation is at the definition. */
int64_t hr_process_counter_bytes(void);

/* hr_account_kernel (plan/account.h) with the pages of this system. */
int64_t hr_process_kernel_bytes(int64_t process_bytes, int32_t threads, bool has_file);

/* Peak resident set (VmHWM) and current one (VmRSS); -1 when /proc is unreadable. Reading
 * the current one takes a few microseconds. */
int64_t hr_process_peak_bytes(void);
int64_t hr_process_now_bytes(void);

#endif
