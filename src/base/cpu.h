/* SPDX-License-Identifier: Apache-2.0 */
/* base/cpu.h - the instruction sets of the processor as a bit mask.
 *
 * The kernel rungs are, in order, ref, AVX2, AVX-512, AVX512-BF16, AMX. A rung is usable when its
 * bit and all lower bits are set, because the code around the AMX tiles rounds to bf16 with the
 * rung below. No other code tests for instruction sets. */
#ifndef HR_BASE_CPU_H
#define HR_BASE_CPU_H

#include <stdint.h>

#include "headroom/status.h"

enum {
    HR_CPU_AVX2 = 1,       /* AVX2, FMA and F16C, with OS support for their state */
    HR_CPU_AVX512 = 2,     /* AVX-512 F, BW, DQ, VL, with OS support for their state */
    HR_CPU_AVX512BF16 = 4, /* vdpbf16ps and conversions, and VBMI: all but Cooper Lake have both */
    HR_CPU_AMX = 8         /* AMX tiles with bf16 products, with permission from the OS */
};

/* Returns the mask of this machine. Requests permission to use AMX from the kernel; if it refuses,
 * the AMX bit is cleared. Threads: call once, before threads start. */
uint32_t hr_cpu_detect(void);

/* Returns the name of an instruction set that HR_CPU_AVX2 needs and this machine lacks; "": none
 * is missing. */
const char *hr_cpu_lacks(void);

/* Clears every rung of `mask` that has a missing rung below it. */
uint32_t hr_cpu_ladder(uint32_t mask);

/* Returns the name of the highest rung of a mask: "ref", "avx2", "avx512", "avx512bf16" or
 * "amx". */
const char *hr_cpu_rung_name(uint32_t mask);

/* Returns the mask of a rung and all rungs below it; -1 for an unknown name. */
int64_t hr_cpu_mask_of(const char *rung_name);

/* Selects the mask to use on a machine: its own for "auto" or null, else the one of the named rung.
 * `typed` is the option that gave the name, such as "--kernels", for the error.
 * Errors   USAGE  the name is unknown, or the machine lacks the rung. */
HR_MUST_CHECK hr_status hr_cpu_choose(const char *typed, const char *rung_name, uint32_t machine,
                                      uint32_t *mask, hr_error *err);

/* Sets flush-to-zero and denormals-are-zero for the calling thread: denormals made bf16 GELU 9x
 * slower. Returns the mode before, for hr_cpu_restore_denormals. */
unsigned hr_cpu_flush_denormals(void);
void hr_cpu_restore_denormals(unsigned before);

#endif
