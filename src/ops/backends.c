/* SPDX-License-Identifier: Apache-2.0 */
/* ops/backends.c - the table of back ends. */
#include "ops/backends.h"

#include <string.h>

#include "ops/cpu.h"

static const hr_backend *const backends[] = { &hr_cpu_backend };

const hr_backend *hr_backend_find(const char *name)
{
    const int32_t count = sizeof backends / sizeof *backends;
    int32_t i = 0;
    while (i < count && strcmp(backends[i]->name, name) != 0) i++;
    return i < count ? backends[i] : NULL;
}
