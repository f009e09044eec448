/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/ids_file.h - token ids of a text in an unnamed file, so that long texts need no memory.
 * The file disappears with the process. */
#ifndef HR_EVALUATE_IDS_FILE_H
#define HR_EVALUATE_IDS_FILE_H

#include <stdint.h>

#include "headroom/status.h"

enum { HR_IDS_FILE_HELD = 1024 };

typedef struct {
    int file;              /* descriptor; -1: closed */
    const char *directory; /* of the file, for error messages */
    int64_t count;
    int32_t held[HR_IDS_FILE_HELD];
    int32_t held_count;
} hr_ids_file;

/* Creates the file in a directory, which is borrowed; null: /tmp. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_ids_file_open(hr_ids_file *ids, const char *directory, hr_error *err);

/* Appends ids; an hr_tokens_sink. Errors FAILURE, which includes a full disk. */
HR_MUST_CHECK hr_status hr_ids_file_add(void *ids, const uint32_t *more, int64_t count,
                                        hr_error *err);

/* Flushes the buffer; call it before reading. */
HR_MUST_CHECK hr_status hr_ids_file_flush(hr_ids_file *ids, hr_error *err);

/* Removes all but the first `count` ids. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_ids_file_cut(hr_ids_file *ids, int64_t count, hr_error *err);

/* Reads ids [first, first + count), which must exist. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_ids_file_read(const hr_ids_file *ids, int64_t first, int64_t count,
                                         int32_t *out, hr_error *err);

/* Accepts a closed file. */
void hr_ids_file_close(hr_ids_file *ids);

#endif
