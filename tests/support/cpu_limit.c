/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/cpu_limit.c - pretends that this machine has fewer instruction sets.
 *
 * Test programs are linked with --wrap=hr_cpu_detect, so this function takes the place of the real
 * one. HR_CPU names the highest rung of base/cpu.h that they see. A program whose machine has no
 * rung above it would repeat the test without HR_CPU: it ends as skipped. */
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"

enum { SKIPPED = 77 }; /* SKIP_RETURN_CODE of tests/CMakeLists.txt */

uint32_t __real_hr_cpu_detect(void); /* the linker makes these two names */
uint32_t __wrap_hr_cpu_detect(void);

static uint32_t limit(void)
{
    const char *rung = getenv("HR_CPU");
    return rung ? (uint32_t)hr_cpu_mask_of(rung) : UINT32_MAX;
}

uint32_t __wrap_hr_cpu_detect(void)
{
    return __real_hr_cpu_detect() & limit();
}

__attribute__((constructor)) static void skip_where_nothing_is_hidden(void)
{
    const char *rung = getenv("HR_CPU");
    if (!rung) return;
    if (hr_cpu_mask_of(rung) < 0) {
        fprintf(stderr, "HR_CPU=%s: there is no such rung\n", rung);
        exit(2);
    }
    if (__wrap_hr_cpu_detect() != __real_hr_cpu_detect()) return;
    printf("skip: this machine has nothing above %s\n", rung);
    exit(SKIPPED);
}
