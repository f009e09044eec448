/* SPDX-License-Identifier: Apache-2.0 */
/* base/writer.h - text that grows in a buffer of fixed size. What does not fit is cut, and that is
 * remembered: a report may end early, a file may not. */
#ifndef HR_BASE_WRITER_H
#define HR_BASE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

typedef struct {
    char *text;          /* [bytes], the caller's; ends in a null from the first hr_put on */
    int64_t bytes, used; /* used: without the null, below bytes */
    bool cut;            /* something did not fit; nothing is added any more */
} hr_writer;

/* Appends to the text. Takes no memory from the system. Start from { text, bytes }; bytes > 0. */
void hr_put(hr_writer *writer, const char *format, ...) HR_PRINTF(2, 3);

#endif
