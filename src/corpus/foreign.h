/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/foreign.h - ids that another program has written: llm.c's shards, and raw ones of nanoGPT.
 *
 * A header says what it is; ids without one are read only where the recipe says that they are. */
#ifndef HR_CORPUS_FOREIGN_H
#define HR_CORPUS_FOREIGN_H

#include "corpus/inflow.h"

enum { HR_FOREIGN_AT_ONCE = 16384 };

/* A file of ids, of which the beginning was read. */
typedef struct {
    int32_t id_bytes; /* 2 or 4 */
    int64_t said;     /* ids that the header says there are; -1: no header */
    int64_t read;     /* ids so far */
    int64_t held;     /* bytes of the beginning that are ids, in the caller's buffer */
} hr_foreign;

/* Reads a header, or the first ids.
 *
 *   ids_bytes  as the recipe says; 0: there must be a header
 *   buffer     [HR_FOREIGN_AT_ONCE * 4], the same for every call
 *
 * Errors   USAGE    no header, and the recipe does not say what it is; or both
 *          CORRUPT  a header of another version
 *          and those of hr_inflow_read. */
HR_MUST_CHECK hr_status hr_foreign_begin(hr_foreign *tokens, hr_inflow *inflow, int32_t ids_bytes,
                                         uint8_t *buffer, hr_error *err);

/* The next ids, HR_FOREIGN_AT_ONCE at most; 0 at the end.
 *
 * Errors   CORRUPT  an id that is not below `vocab_size`, with its place; more or fewer than the
 *                   header says; a part of one at the end
 *          and those of hr_inflow_read. */
HR_MUST_CHECK hr_status hr_foreign_next(hr_foreign *tokens, hr_inflow *inflow, int64_t vocab_size,
                                        uint8_t *buffer, uint32_t *ids, int64_t *count,
                                        hr_error *err);

#endif
