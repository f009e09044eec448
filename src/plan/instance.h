/* SPDX-License-Identifier: Apache-2.0 */
/* plan/instance.h - a packing problem in the format of the public CSV files.
 *
 * A header line names the columns id, lower, upper, size and optionally offset, in any order. Each
 * further line is one row, live from `lower` to before `upper`. An id is any text without a
 * comma. */
#ifndef HR_PLAN_INSTANCE_H
#define HR_PLAN_INSTANCE_H

#include <stdint.h>

#include "headroom/status.h"

enum { HR_INSTANCE_BYTES_MAX = 1 << 28 };

typedef struct {
    int64_t lower, upper; /* lower < upper */
    int64_t bytes;        /* >= 0; all rows together below 2^63 */
    int64_t offset;       /* 0 after reading: a column of that name is ignored */
    int32_t id, id_bytes; /* position and length in the text */
    int32_t line;
} hr_instance_row;

typedef struct {
    char *text;            /* the file, from the heap */
    hr_instance_row *rows; /* from the heap */
    int32_t count;
} hr_instance;

/* Reads a file. Close the instance afterwards, whatever the status.
 *
 * Errors   CORRUPT  an unusable header or row, or a duplicate id: one sentence with the line. Also
 *                   more than HR_PACK_ROWS_MAX rows or HR_INSTANCE_BYTES_MAX bytes.
 *          USAGE    missing or unreadable. FAILURE  out of memory.
 * Cost     linear in the file size. */
HR_MUST_CHECK hr_status hr_instance_read(const char *path, hr_instance *instance, hr_error *err);

/* Checks that an instance can be written to `path`: the path is free or holds an instance.
 *
 * Errors   USAGE  no such directory, or another kind of file. FAILURE  as hr_instance_write. */
HR_MUST_CHECK hr_status hr_instance_check(const char *path, hr_error *err);

/* Writes all rows with their offsets, in file order. Writes the complete file or none.
 *
 * Errors   USAGE  no such directory. FAILURE  the system refused. */
HR_MUST_CHECK hr_status hr_instance_write(const char *path, const hr_instance *instance,
                                          hr_error *err);

/* Frees the instance. Accepts a closed one. */
void hr_instance_close(hr_instance *instance);

#endif
