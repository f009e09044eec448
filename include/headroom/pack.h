/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/pack.h - packs storages, given as a file of sizes and lifetimes, into an arena.
 *
 * The instance format is CSV: `id,lower,upper,size`, alive from `lower` (inclusive) to `upper`
 * (exclusive). docs/packing.md describes the search and its guarantees. */
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
    size_t size;            /* of this struct */
    const char *file;       /* the instance */
    const char *out;        /* path for the instance with offsets; null: none */
    int64_t capacity_bytes; /* stop at the first placement within it; negative: minimise */
    double seconds;         /* time limit of the search */
} hr_pack_request;

typedef struct {
    int32_t rows;
    int64_t arena_bytes; /* one past the last byte of any row, as placed */
    int64_t floor_bytes; /* the largest sum of live bytes: no arena is smaller */
    int64_t bound_bytes; /* proven lower limit of the arena */
    int64_t peak_time;   /* first time at which floor_bytes are alive */
    int64_t nodes;       /* placements that the exact search tried */
    double seconds;      /* reading, packing and writing */
    const char *proof;   /* "at the floor", "proven lowest", "open" */
} hr_pack_report;

/* Packs the rows of request->file.
 *
 *   report  out; filled when the status is OK, NO_FIT or UNDECIDED, else untouched
 *
 * Errors   NO_FIT     proven: no placement within the capacity exists.
 *          UNDECIDED  the time ran out before a placement within the capacity was found or, without
 *                     a capacity, before the arena was proven minimal. The best placement is still
 *                     written, unless it exceeds the capacity.
 *          CORRUPT    not an instance; the sentence names the line.
 *          USAGE      missing or unreadable file.
 *          FAILURE    out of memory; `out` cannot be written.
 * Cost     at most HR_PACK_ROWS_MAX rows in at most 256 MiB. Memory: the file and about 400 bytes a
 *          row, freed on return. Reading, sorting and writing take time beyond `seconds`.
 * Threads  any. */
HR_MUST_CHECK hr_status hr_pack_file(const hr_pack_request *request, hr_pack_report *report,
                                     hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
