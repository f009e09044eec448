/* SPDX-License-Identifier: Apache-2.0 */
/* base/status.c - formats error messages: each is one line, whatever names it holds. */
#include "headroom/status.h"

#include <stdarg.h>
#include <stdio.h>

hr_status hr_fail(hr_error *err, hr_status status, const char *format, ...)
{
    if (err) {
        va_list list;
        va_start(list, format);
        vsnprintf(err->message, sizeof err->message, format, list);
        va_end(list);
        for (char *at = err->message; *at; at++)
            if ((unsigned char)*at < ' ') *at = '?';
        err->status = status;
    }
    return status;
}

const char *hr_status_name(hr_status status)
{
    switch (status) {
    case HR_OK: return "done";
    case HR_FAILURE: return "failure";
    case HR_USAGE: return "invalid usage";
    case HR_NO_FIT: return "does not fit";
    case HR_BROKEN: return "plan violated";
    case HR_CORRUPT: return "invalid or damaged file";
    case HR_DIVERGED: return "diverged";
    case HR_UNDECIDED: return "unknown";
    case HR_INTERRUPTED: return "interrupted, checkpoint saved";
    }
    return "unknown status";
}
