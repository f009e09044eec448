/* SPDX-License-Identifier: Apache-2.0 */
/* base/cpu.c - reads CPUID feature bits, never the model number, which virtual machines may
 * hide. */
#define _GNU_SOURCE
#include "base/cpu.h"

#include <cpuid.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

enum { ARCH_REQ_XCOMP_PERM_CODE = 0x1023, XFEATURE_TILEDATA = 18 };

static uint64_t enabled_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

const char *hr_cpu_lacks(void)
{
    uint32_t a, b, c, d;
    const uint32_t os_xsave = 1u << 27, fma = 1u << 12, f16c = 1u << 29, avx2 = 1u << 5;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return "AVX2";
    const uint32_t leaf1_c = c;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & avx2)) return "AVX2";
    if (!(leaf1_c & os_xsave) || (enabled_state() & 0x6) != 0x6)
        return "AVX2 that its operating system enables";
    return !(leaf1_c & fma) ? "FMA" : !(leaf1_c & f16c) ? "F16C" : "";
}

uint32_t hr_cpu_detect(void)
{
    uint32_t a, b, c, d, mask = HR_CPU_AVX2;
    if (*hr_cpu_lacks() || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    const uint64_t state = enabled_state();
    const uint32_t leaf7_d = d, vbmi = c & 1u << 1;
    const uint32_t avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* F, DQ, BW, VL */
    if ((b & avx512) == avx512 && (state & 0xe6) == 0xe6) mask |= HR_CPU_AVX512;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 5) && vbmi) mask |= HR_CPU_AVX512BF16;
    const uint32_t amx = 1u << 22 | 1u << 24; /* bf16 products, tiles */
    if ((leaf7_d & amx) == amx && (state & 0x60000) == 0x60000 &&
        syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM_CODE, XFEATURE_TILEDATA) == 0)
        mask |= HR_CPU_AMX;
    return hr_cpu_ladder(mask);
}

uint32_t hr_cpu_ladder(uint32_t mask)
{
    if (!(mask & HR_CPU_AVX2)) return 0;
    if (!(mask & HR_CPU_AVX512)) return HR_CPU_AVX2;
    if (!(mask & HR_CPU_AVX512BF16)) return HR_CPU_AVX2 | HR_CPU_AVX512;
    return mask;
}

const char *hr_cpu_rung_name(uint32_t mask)
{
    if (mask & HR_CPU_AMX) return "amx";
    if (mask & HR_CPU_AVX512BF16) return "avx512bf16";
    if (mask & HR_CPU_AVX512) return "avx512";
    if (mask & HR_CPU_AVX2) return "avx2";
    return "ref";
}

int64_t hr_cpu_mask_of(const char *rung_name)
{
    static const struct {
        const char *name;
        int64_t mask;
    } rungs[] = { { "ref", 0 },
                  { "avx2", HR_CPU_AVX2 },
                  { "avx512", HR_CPU_AVX2 | HR_CPU_AVX512 },
                  { "avx512bf16", HR_CPU_AVX2 | HR_CPU_AVX512 | HR_CPU_AVX512BF16 },
                  { "amx", HR_CPU_AVX2 | HR_CPU_AVX512 | HR_CPU_AVX512BF16 | HR_CPU_AMX } };
    for (size_t i = 0; i < sizeof rungs / sizeof *rungs; i++)
        if (!strcmp(rungs[i].name, rung_name)) return rungs[i].mask;
    return -1;
}

hr_status hr_cpu_choose(const char *typed, const char *rung_name, uint32_t machine, uint32_t *mask,
                        hr_error *err)
{
    const bool any = !rung_name || !strcmp(rung_name, "auto");
    const int64_t wanted = any ? machine : hr_cpu_mask_of(rung_name);
    if (wanted < 0 || ((uint32_t)wanted & ~machine))
        return hr_fail(err, HR_USAGE,
                       "%s: this CPU has no %.40s; the best available is %s (or use auto)", typed,
                       rung_name, hr_cpu_rung_name(machine));
    *mask = (uint32_t)wanted;
    return HR_OK;
}

unsigned hr_cpu_flush_denormals(void)
{
    const unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x0040, before = _mm_getcsr();
    _mm_setcsr(before | flush_to_zero | denormals_are_zero);
    return before;
}

void hr_cpu_restore_denormals(unsigned before)
{
    _mm_setcsr(before);
}
