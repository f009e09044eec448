/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/doctor.h - hardware and limits of this machine and process. */
#ifndef HEADROOM_DOCTOR_H
#define HEADROOM_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes are in bytes; -1: no limit, or unknown. */
typedef struct {
    char processor[96];                  /* CPU model name; often masked on virtual machines */
    char kernel[96];                     /* release of the operating system kernel */
    int32_t cores_online, cores_allowed; /* of the machine; in the CPU affinity mask */
    int64_t cpu_thousandths;             /* cgroup CPU quota in thousandths of a core */
    int32_t threads_default;             /* value of train.threads=auto */
    bool avx2, avx512, avx512bf16, amx;  /* supported by the CPU and enabled by the system */
    /* highest usable instruction set: ref, avx2, avx512, avx512bf16, amx */
    char rung[16];
    int64_t memory_bytes, memory_available_bytes, swap_bytes;
    /* transparent huge pages: always, madvise, never, unknown */
    char huge_pages[16];
    /* smallest memory.max of the cgroup and its parents */
    int64_t cgroup_memory_bytes;
    int64_t limit_address_bytes, limit_locked_bytes, limit_stack_bytes; /* ulimit -v -l -s */
    int64_t page_bytes;
} hr_machine;

/* Fills `machine`. Unknown values are -1 or "unknown". It requests AMX permission from the kernel:
 * call it once, before threads start. */
void hr_machine_read(hr_machine *machine);

/* Returns the name of an instruction set without which this machine has only the reference kernels,
 * such as "AVX2", which take many times as long; "": it has all. Any thread. */
const char *hr_machine_lacks(void);

/* Checks that the stack limit of the main thread is large enough for this library. A smaller limit
 * ends in SIGSEGV otherwise: call it first in a program.
 * Errors  NO_FIT  the limit (ulimit -s) is too low. */
HR_MUST_CHECK hr_status hr_machine_check_stack(hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
