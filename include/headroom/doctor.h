/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/doctor.h - what this machine has, and what this process may use of it. */
#ifndef HEADROOM_DOCTOR_H
#define HEADROOM_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes in bytes; -1: no bound, or not known. */
typedef struct {
    char processor[96]; /* the name it gives itself; often masked on shared machines */
    char kernel[96];    /* release of the operating system's kernel */
    int32_t cores_online, cores_allowed; /* of the machine; by the affinity mask */
    int64_t cpu_thousandths;             /* quota of the control group in thousandths of a core */
    int32_t threads_default;             /* what train.threads auto means here */
    bool avx2, avx512, avx512bf16, amx;  /* usable: the processor has it and the system allows it */
    char rung[16]; /* highest rung of kernels: ref, avx2, avx512, avx512bf16, amx */
    int64_t memory_bytes, memory_available_bytes, swap_bytes;
    char huge_pages[16];         /* transparent huge pages: always, madvise, never, unknown */
    int64_t cgroup_memory_bytes; /* memory.max of the control group and those above */
    int64_t limit_address_bytes, limit_locked_bytes, limit_stack_bytes; /* ulimit -v -l -s */
    int64_t page_bytes;
} hr_machine;

/* Fills `machine`. What the system does not tell is -1 or "unknown". Asks the kernel for AMX: call
 * it once, before threads start. */
void hr_machine_read(hr_machine *machine);

/* Checks that the stack of the main thread may grow as far as calls of this library need. Without
 * this, a smaller limit is met as SIGSEGV: call it first in a program.
 * Errors  NO_FIT  the limit (ulimit -s) is lower. */
HR_MUST_CHECK hr_status hr_machine_check_stack(hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
