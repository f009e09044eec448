/* SPDX-License-Identifier: Apache-2.0 */
/* plan/instance.h - a packing problem as the public CSV files have it.
 *
 * A header line names the columns id, lower, upper, size and perhaps offset, in any order; then a
 * row a line, alive from lower up to, not including, upper. Ids are any text without a comma. */
#ifndef HR_PLAN_INSTANCE_H
#define HR_PLAN_INSTANCE_H

#include <stdint.h>

#include "headroom/status.h"

enum { HR_INSTANCE_BYTES_MAX = 1 << 28 };

typedef struct {
    int64_t lower, upper; /* lower < upper */
    int64_t bytes;        /* >= 0; all rows together below 2^63 */
    int64_t offset;       /* 0 as read: a column of that name is not looked at */
    int32_t id, id_bytes; /* where in the text */
    int32_t line;
} hr_instance_row;

typedef struct {
    char *text;            /* the file, from the heap */
    hr_instance_row *rows; /* from the heap */
    int32_t count;
} hr_instance;

/* Reads a file. Close it afterwards, whatever the status.
 *
 * Errors   CORRUPT  a header or row that cannot be used, or an id that was there before: one
 *                   sentence with the line. More than HR_PACK_ROWS_MAX rows or
 *                   HR_INSTANCE_BYTES_MAX bytes.
 *          USAGE    missing or unreadable. FAILURE  out of memory.
 * Cost     linear in the file. */
HR_MUST_CHECK hr_status hr_instance_read(const char *path, hr_instance *instance, hr_error *err);

/* That rows with their offsets could be put at `path`: nothing is there, or such rows.
 * Errors   USAGE  no such directory, or something else has the name. FAILURE  as it is written. */
HR_MUST_CHECK hr_status hr_instance_check(const char *path, hr_error *err);

/* Writes all rows with their offsets, in their order: the whole file or none.
 * Errors   USAGE  no such directory. FAILURE  the system refused. */
HR_MUST_CHECK hr_status hr_instance_write(const char *path, const hr_instance *instance,
                                          hr_error *err);

/* Gives everything back. Accepts what is closed. */
void hr_instance_close(hr_instance *instance);

#endif
