/* SPDX-License-Identifier: Apache-2.0 */
/* require.h - the one place where a test is skipped. What it lacks has a name, the skip a reason.
 *
 * HR_REQUIRE in the environment turns skips into failures. It is a list of names, or `all`; `-name`
 * takes one out again: HR_REQUIRE=avx512,mount or HR_REQUIRE=all,-amx. The names are those of
 * CONTRIBUTING.md. */
#ifndef HR_TESTS_REQUIRE_H
#define HR_TESTS_REQUIRE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "mem/sanitize.h"

/* In place of a small budget, where a sanitizer has memory of its own; else empty. */
#define SANITIZED_BUDGET (HR_ADDRESS_SANITIZER || HR_THREAD_SANITIZER ? " --budget 4GiB" : "")

/* Must what has this name be there? The last entry of HR_REQUIRE about it decides. */
static inline bool hr_test_required(const char *name)
{
    const char *list = getenv("HR_REQUIRE");
    bool required = false;
    while (list && *list) {
        const bool removed = *list == '-';
        list += removed;
        const size_t length = strcspn(list, ",");
        if ((length == strlen(name) && !strncmp(list, name, length)) ||
            (length == 3 && !strncmp(list, "all", 3)))
            required = !removed;
        list += length + (list[length] == ',');
    }
    return required;
}

/* Says that `name` is missing and why; fails the test where HR_REQUIRE has the name. */
static inline __attribute__((format(printf, 2, 3))) void hr_test_lacks(const char *name,
                                                                       const char *format, ...)
{
    char reason[256];
    va_list list;
    va_start(list, format);
    vsnprintf(reason, sizeof reason, format, list);
    va_end(list);
    if (hr_test_required(name)) fail_msg("HR_REQUIRE has %s, but %s", name, reason);
    print_message("skip %s: %s\n", name, reason);
}

/* Ends the test as skipped, or as failed where HR_REQUIRE has the name. */
#define hr_test_skip(...) (hr_test_lacks(__VA_ARGS__), skip())

/* Does this machine have the named rung of base/cpu.h? For tests that loop over the rungs. Where
 * the two highest are emulated in plain C, the code around them needs AVX-512. */
static inline bool hr_test_has(const char *rung_name)
{
    uint32_t mask = (uint32_t)hr_cpu_mask_of(rung_name);
#ifdef HR_EMULATE
    mask &= HR_CPU_AVX2 | HR_CPU_AVX512;
#endif
    const bool has = (hr_cpu_detect() & mask) == mask;
    if (!has) hr_test_lacks(rung_name, "this machine has no %s", rung_name);
    return has;
}

/* Continues where this machine has the rung; else the test is skipped. */
static inline void hr_test_require(const char *rung_name)
{
    if (!hr_test_has(rung_name)) skip();
}

/* The library of tests/mem/trap.c; without it the test is skipped. */
static inline const char *hr_test_require_trap(void)
{
    const char *trap = getenv("HR_TRAP");
    if (!trap) hr_test_skip("trap", "HR_TRAP names no library: a build with a sanitizer has none");
    return trap;
}

#endif
