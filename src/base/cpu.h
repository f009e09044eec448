/* SPDX-License-Identifier: Apache-2.0 */
/* base/cpu.h - what the processor can do, as one word of bits.
 *
 * The ladder of kernel rungs is ref, AVX2, AVX-512, AVX512-BF16, AMX. A rung may be used when its
 * bit and all bits below it are set: the kernels around the AMX tiles round to bf16 with the rung
 * below. Nothing else asks which instruction set it runs on. */
#ifndef HR_BASE_CPU_H
#define HR_BASE_CPU_H

#include <stdint.h>

#include "headroom/status.h"

enum {
    HR_CPU_AVX2 = 1,       /* AVX2 and FMA, state saved by the system */
    HR_CPU_AVX512 = 2,     /* AVX-512 F, BW, DQ, VL, state saved by the system */
    HR_CPU_AVX512BF16 = 4, /* vdpbf16ps and conversions */
    HR_CPU_AMX = 8         /* AMX tiles with bf16 products, permitted by the system */
};

/* Bits of this machine. Asks the kernel for permission to use AMX (once, before threads start);
 * a refusal clears that bit. Threads: call once at start. */
uint32_t hr_cpu_detect(void);

/* `mask` with every rung cleared that stands on a cleared one. */
uint32_t hr_cpu_ladder(uint32_t mask);

/* "ref", "avx2", "avx512", "avx512bf16" or "amx": the highest rung of a mask from the ladder. */
const char *hr_cpu_rung_name(uint32_t mask);

/* Mask for a rung's name (and all below it); -1 for an unknown name. */
int64_t hr_cpu_mask_of(const char *rung_name);

/* The mask to use: this machine's for "auto" or null, else a rung's that it has. `typed` is where
 * the name came from: "--kernels".
 * Errors   USAGE  it has not, or there is no such rung. */
HR_MUST_CHECK hr_status hr_cpu_choose(const char *typed, const char *rung_name, uint32_t *mask,
                                      hr_error *err);

/* Flush-to-zero and denormals-are-zero for the calling thread: denormals made bf16 GELU 9x
 * slower. */
void hr_cpu_flush_denormals(void);

#endif
