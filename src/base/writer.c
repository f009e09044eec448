/* SPDX-License-Identifier: Apache-2.0 */
/* base/writer.c - formats with vsnprintf and detects truncation. */
#include "base/writer.h"

#include <stdarg.h>
#include <stdio.h>

void hr_put(hr_writer *writer, const char *format, ...)
{
    const int64_t room = writer->bytes - writer->used;
    va_list list;
    if (writer->cut) return;
    va_start(list, format);
    const int count = vsnprintf(writer->text + writer->used, (size_t)room, format, list);
    va_end(list);
    writer->cut = count < 0 || count >= room;
    writer->used += writer->cut ? room - 1 : count;
}
