/* SPDX-License-Identifier: Apache-2.0 */
/* base/assert.c - reports a failed assertion and aborts. Allocates nothing. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

_Noreturn void hr_assert_failed(const char *file, int line, const char *claim)
{
    char text[512];
    int bytes = snprintf(text, sizeof text, "headroom: %s:%d: this should hold: %s\n", file, line,
                         claim);
    if (bytes > 0 && write(2, text, (size_t)bytes < sizeof text ? (size_t)bytes : sizeof text) < 0)
        abort();
    abort();
}
