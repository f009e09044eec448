/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/shard_import.h - reads token ids of other programs: llm.c shards and raw nanoGPT files.
 *
 * A header identifies an llm.c shard; a file without header is read as ids only if the recipe says
 * so. */
#ifndef HR_CORPUS_SHARD_IMPORT_H
#define HR_CORPUS_SHARD_IMPORT_H

#include "corpus/input_stream.h"

enum { HR_SHARD_IMPORT_AT_ONCE = 16384 };

/* A file of ids whose beginning was read. */
typedef struct {
    int32_t id_bytes; /* 2 or 4 */
    int64_t declared; /* number of ids by the header; -1: no header */
    int64_t read;     /* ids read so far */
    int64_t held;     /* bytes of ids in the caller's buffer that were read with the header */
} hr_shard_import;

/* Reads a header, or the first ids.
 *
 *   ids_bytes  from the recipe; 0: the file must have a header
 *   buffer     [HR_SHARD_IMPORT_AT_ONCE * 4], the same for every call
 *
 * Errors   USAGE    neither a header nor ids_bytes; or both
 *          CORRUPT  a header of another version
 *          and those of hr_input_stream_read. */
HR_MUST_CHECK hr_status hr_shard_import_begin(hr_shard_import *tokens,
                                              hr_input_stream *input_stream, int32_t ids_bytes,
                                              uint8_t *buffer, hr_error *err);

/* Reads the next ids, at most HR_SHARD_IMPORT_AT_ONCE; 0 at the end.
 *
 * Errors   CORRUPT  an id is not below `vocab_size`, with its position; the number of ids differs
 *                   from the header; a partial id at the end
 *          and those of hr_input_stream_read. */
HR_MUST_CHECK hr_status hr_shard_import_next(hr_shard_import *tokens, hr_input_stream *input_stream,
                                             int64_t vocab_size, uint8_t *buffer, uint32_t *ids,
                                             int64_t *count, hr_error *err);

#endif
