/* SPDX-License-Identifier: Apache-2.0 */
/* report/style.h - escape codes for terminals; empty strings for other outputs. */
#ifndef HR_REPORT_STYLE_H
#define HR_REPORT_STYLE_H

#include <stdbool.h>

typedef struct {
    const char *title, *strong, *good, *bad, *plain;
} hr_style;

static inline hr_style hr_style_of(bool colour)
{
    if (!colour) return (hr_style){ "", "", "", "", "" };
    return (hr_style){ "\033[1;36m", "\033[1m", "\033[1;32m", "\033[1;31m", "\033[0m" };
}

#endif
