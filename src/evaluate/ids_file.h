/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/ids_file.h - the ids of a text in a file without a name, so that a text of any length
 * takes no memory. It is gone with the process. */
#ifndef HR_EVALUATE_IDS_FILE_H
#define HR_EVALUATE_IDS_FILE_H

#include <stdint.h>

#include "headroom/status.h"

enum { HR_IDS_FILE_HELD = 1024 };

typedef struct {
    int file; /* descriptor; -1: closed */
    int64_t count;
    int32_t held[HR_IDS_FILE_HELD];
    int32_t held_count;
} hr_ids_file;

/* In a directory, null: /tmp. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_ids_file_open(hr_ids_file *ids, const char *directory, hr_error *err);

/* Adds ids: an hr_tokens_sink. Errors FAILURE, a full disk among others. */
HR_MUST_CHECK hr_status hr_ids_file_add(void *ids, const uint32_t *more, int64_t count,
                                        hr_error *err);

/* Before anything is read. */
HR_MUST_CHECK hr_status hr_ids_file_flush(hr_ids_file *ids, hr_error *err);

/* Ids [first, first + count), which must be there. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_ids_file_read(const hr_ids_file *ids, int64_t first, int64_t count,
                                         int32_t *out, hr_error *err);

/* Accepts what is closed. */
void hr_ids_file_close(hr_ids_file *ids);

#endif
