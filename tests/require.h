/* SPDX-License-Identifier: Apache-2.0 */
/* require.h - for tests of what a machine may lack: they skip and say so.
 *
 * HR_REQUIRE="avx512,amx" in the environment names what must be there: such a skip is a failure. */
#ifndef HR_TESTS_REQUIRE_H
#define HR_TESTS_REQUIRE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/cpu.h"

/* Is `name` one of the comma-separated HR_REQUIRE? */
static inline bool hr_test_required(const char *name)
{
    const char *list = getenv("HR_REQUIRE");
    while (list && *list) {
        const size_t length = strcspn(list, ",");
        if (length == strlen(name) && !strncmp(list, name, length)) return true;
        list += length + (list[length] == ',');
    }
    return false;
}

/* Goes on when this machine has the named rung of base/cpu.h; else ends the test as skipped. */
static inline void hr_test_require(const char *rung_name)
{
    const uint32_t mask = (uint32_t)hr_cpu_mask_of(rung_name);
    if ((hr_cpu_detect() & mask) == mask) return;
    if (hr_test_required(rung_name)) fail_msg("%s is required and not here", rung_name);
    print_message("skip: this machine has no %s\n", rung_name);
    skip();
}

#endif
