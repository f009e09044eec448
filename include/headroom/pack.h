/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/pack.h - packs a file of storages, each with its life, into an arena.
 *
 * The public instance format: `id,lower,upper,size`, alive from lower up to, not including, upper.
 * docs/packing.md says how the placement is found and what is known about it. */
#ifndef HEADROOM_PACK_H
#define HEADROOM_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_PACK_ROWS_MAX = 1 << 20, HR_PACK_SECONDS_MAX = 86400 };

typedef struct {
    const char *file;       /* the instance */
    const char *out;        /* where to write it with its offsets; null: nowhere */
    int64_t capacity_bytes; /* any placement within it will do; negative: as low as can be */
    double seconds;         /* that the packing may take */
} hr_pack_request;

typedef struct {
    int32_t rows;
    int64_t arena_bytes; /* one past the last byte of any row, as placed */
    int64_t floor_bytes; /* the most bytes alive at one time: no arena is smaller */
    int64_t bound_bytes; /* what no arena is smaller than, as far as that is proven */
    int64_t peak_time;   /* the first at which floor_bytes are alive */
    int64_t nodes;       /* placements that the exact search tried */
    double seconds;      /* that reading, packing and writing took */
    const char *proof;   /* "at the floor", "proven lowest", "open" */
} hr_pack_report;

/* Packs the rows of request->file.
 *
 *   report  out; filled when the status is OK, NO_FIT or UNDECIDED, else untouched
 *
 * Errors   NO_FIT     no placement in the capacity exists, and that is proven.
 *          UNDECIDED  the time ran out before a placement in the capacity was found, or, without
 *                     one, before the arena was proven lowest. The best one found is then written
 *                     all the same, but none that is above a capacity.
 *          CORRUPT    not an instance; the sentence has the line.
 *          USAGE      missing or unreadable file. FAILURE  out of memory; `out` cannot be written.
 * Cost     at most HR_PACK_ROWS_MAX rows in at most 256 MiB; memory: the file and about 400 bytes a
 *          row, given back. The time above `seconds` is that of reading, sorting and writing.
 * Threads  any. */
HR_MUST_CHECK hr_status hr_pack_file(const hr_pack_request *request, hr_pack_report *report,
                                     hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
