/* SPDX-License-Identifier: Apache-2.0 */
/* admission/account.h - the memory of a process, and whether it is available. Training, generation,
 * evaluation and the training of tokenizers count with it.
 *
 * A process opens its regions in phases; the arena is mapped in the last one. The maximum of the
 * phases before it is the line `planning` of the plan, the last phase the line `tables`.
 * docs/memory.md has all lines. */
#ifndef HR_ADMISSION_ACCOUNT_H
#define HR_ADMISSION_ACCOUNT_H

#include "mem/memory.h"
#include "plan/plan.h"

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

/* Fills the lines of the process memory and their sum, in a plan with known arena_bytes.
 *
 *   regions  [count]
 *   threads  of the run
 *   rung     name of the instruction set, a constant */
void hr_account(const hr_memory *memory, const hr_account_region *regions, int32_t count,
                int32_t threads, const char *rung, hr_plan *plan);

/* Process bytes now, on one thread beside the open stacks, with `more` bytes in another region. */
int64_t hr_account_now(const hr_memory *memory, int64_t more);

/* Bytes that may be used: the budget; 0: what the machine and its cgroups leave. */
int64_t hr_account_available(int64_t budget);

/* Bytes that must be available for a process. A budget covers the process; without one (0) the
 * machine must also hold its page tables and cache. */
int64_t hr_account_needed(int64_t budget, int64_t process_bytes, int32_t threads);

/* The inverse: bytes of a process that needs at most `available`. */
int64_t hr_account_process(int64_t budget, int64_t available, int32_t threads);

#endif
