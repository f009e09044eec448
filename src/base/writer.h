/* SPDX-License-Identifier: Apache-2.0 */
/* base/writer.h - text that is appended to a buffer of fixed size. Text that does not fit is
 * truncated, and `cut` records it: a report may be truncated, a file may not. */
#ifndef HR_BASE_WRITER_H
#define HR_BASE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

typedef struct {
    char *text;          /* [bytes], owned by the caller; null-terminated after the first hr_put */
    int64_t bytes, used; /* used: length without the null byte, below bytes */
    bool cut;            /* the text was truncated; later calls append nothing */
} hr_writer;

/* Appends formatted text. Allocates nothing. Initialize with { text, bytes }; bytes > 0. */
void hr_put(hr_writer *writer, const char *format, ...) HR_PRINTF(2, 3);

#endif
