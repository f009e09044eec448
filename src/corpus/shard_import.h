/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/shard_import.h - ids that another program has written: llm.c's shards, and raw ones of
 * nanoGPT.
 *
 * A header says what it is; ids without one are read only where the recipe says that they are. */
#ifndef HR_CORPUS_SHARD_IMPORT_H
#define HR_CORPUS_SHARD_IMPORT_H

#include "corpus/input_stream.h"

enum { HR_SHARD_IMPORT_AT_ONCE = 16384 };

/* A file of ids, of which the beginning was read. */
typedef struct {
    int32_t id_bytes; /* 2 or 4 */
    int64_t said;     /* ids that the header says there are; -1: no header */
    int64_t read;     /* ids so far */
    int64_t held;     /* bytes of the beginning that are ids, in the caller's buffer */
} hr_shard_import;

/* Reads a header, or the first ids.
 *
 *   ids_bytes  as the recipe says; 0: there must be a header
 *   buffer     [HR_SHARD_IMPORT_AT_ONCE * 4], the same for every call
 *
 * Errors   USAGE    no header, and the recipe does not say what it is; or both
 *          CORRUPT  a header of another version
 *          and those of hr_input_stream_read. */
HR_MUST_CHECK hr_status hr_shard_import_begin(hr_shard_import *tokens,
                                              hr_input_stream *input_stream, int32_t ids_bytes,
                                              uint8_t *buffer, hr_error *err);

/* The next ids, HR_SHARD_IMPORT_AT_ONCE at most; 0 at the end.
 *
 * Errors   CORRUPT  an id that is not below `vocab_size`, with its place; more or fewer than the
 *                   header says; a part of one at the end
 *          and those of hr_input_stream_read. */
HR_MUST_CHECK hr_status hr_shard_import_next(hr_shard_import *tokens, hr_input_stream *input_stream,
                                             int64_t vocab_size, uint8_t *buffer, uint32_t *ids,
                                             int64_t *count, hr_error *err);

#endif
