/* SPDX-License-Identifier: Apache-2.0 */
/* base/account.h - the memory of a process, and whether it is available. Training, generation,
 * evaluation and the training of tokenizers count with it.
 *
 * A process opens its regions in phases; the arena is mapped in the last one. The maximum of the
 * phases before it is the line `planning` of the plan, the last phase the line `tables`.
 * docs/memory.md has all lines. */
#ifndef HR_BASE_ACCOUNT_H
#define HR_BASE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* The memory of a process beside its regions, its arena and the stacks of further threads.
 * hr_memory_process (mem/memory.h) measures it. */
typedef struct {
    int64_t page_bytes;
    int64_t image_bytes, main_stack_bytes, heap_bytes;
    int64_t stack_bytes;   /* of each further thread */
    int64_t counter_bytes; /* error of the kernel's counters */
} hr_process_base;

enum { HR_ACCOUNT_LINES = 8 };

typedef struct {
    const char *name;
    int64_t bytes;
} hr_account_line;

/* The memory of a process with an arena. The caller sets has_file; the functions below the rest. */
typedef struct {
    int32_t threads;
    bool has_file; /* it has values in a file, which threads of its own read and write */
    int64_t page_bytes;
    const char *rung; /* name of the instruction set, a constant */
    hr_account_line lines[HR_ACCOUNT_LINES];
    int32_t line_count;
    int64_t bytes; /* sum of the lines */
} hr_account;

typedef enum {
    HR_PHASE_PLAN,    /* planning, or reading the input of the plan */
    HR_PHASE_PREPARE, /* tokenizing, or writing what the run reads */
    HR_PHASE_READ,    /* finding weights in files */
    HR_PHASE_RUN,     /* beside the arena */
    HR_PHASES
} hr_phase;

/* A region that is open from one phase to another. */
typedef struct {
    int64_t bytes; /* counted in whole pages */
    hr_phase first, last;
} hr_account_region;

/* Computes the lines and their sum.
 *
 *   regions  [count]
 *   threads  of the run
 *   rung     name of the instruction set, a constant */
void hr_account_regions(const hr_process_base *base, const hr_account_region *regions,
                        int32_t count, int32_t threads, const char *rung, int64_t arena_bytes,
                        hr_account *account);

/* The memory of a card: the arena alone, in whole pages. The rest of the process is on its host. */
void hr_account_card(const hr_process_base *base, int64_t arena_bytes, hr_account *account);

/* Computes the lines from the two sums over regions, for account->threads.
 *
 *   planning_bytes  maximum of the regions before the arena is mapped
 *   tables_bytes    regions that stay open for the run, each rounded up to a page */
void hr_account_lines(const hr_process_base *base, int64_t planning_bytes, int64_t tables_bytes,
                      int64_t arena_bytes, hr_account *account);

/* Kernel memory that a cgroup charges beside a process: page tables, kernel stacks of the threads,
 * and the page cache that file I/O needs.
 *
 *   threads   of the plan
 *   has_file  the plan has values in a file, which threads of its own read and write */
int64_t hr_account_kernel(int64_t page_bytes, int64_t process_bytes, int32_t threads,
                          bool has_file);

/* Bytes that must be available for a process. A budget covers the process; without one (0) the
 * machine must also hold its page tables and cache. */
int64_t hr_account_needed(int64_t budget, int64_t page_bytes, int64_t process_bytes,
                          int32_t threads, bool has_file);

/* The inverse: bytes of a process that needs at most `available`. */
int64_t hr_account_process(int64_t budget, int64_t page_bytes, int64_t available, int32_t threads,
                           bool has_file);

#endif
