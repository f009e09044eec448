/* SPDX-License-Identifier: Apache-2.0 */
/* text/shard.h - a text as a file of token ids of 1, 2 or 4 bytes. Format: docs/shards.md. */
#ifndef HR_TEXT_SHARD_H
#define HR_TEXT_SHARD_H

#include "headroom/config.h"
#include "text/pass.h"

/* What a shard says of itself. */
typedef struct {
    int64_t tokens, covered; /* covered: tokens that are in the vocabulary */
    int64_t vocab_size;      /* every id is below */
    int64_t source_bytes;
    hr_text_hash source;    /* of the text */
    hr_text_hash tokenizer; /* of the vocabulary; bytes: zero */
    hr_tokenizer_kind kind;
} hr_shard_info;

/* ---- writing */

typedef struct hr_shard_writer hr_shard_writer;

int64_t hr_shard_writer_bytes(void);

/* Begins `name` in `directory`, in memory [hr_shard_writer_bytes()], aligned to 64.
 * Errors   as hr_file_begin. */
HR_MUST_CHECK hr_status hr_shard_begin(hr_shard_writer **writer, void *memory,
                                       const char *directory, const char *name, int64_t vocab_size,
                                       hr_error *err);

/* Adds ids [count], each below vocab_size. After an error nothing is left of the file. */
HR_MUST_CHECK hr_status hr_shard_append(hr_shard_writer *writer, const uint32_t *ids, int64_t count,
                                        hr_error *err);

/* The same for ids that are bytes, in a shard whose vocab_size is at most 256. */
HR_MUST_CHECK hr_status hr_shard_append_bytes(hr_shard_writer *writer, const uint8_t *ids,
                                              int64_t count, hr_error *err);

/* Makes the shard appear under its name. `info->tokens` and `vocab_size` are the writer's own. */
HR_MUST_CHECK hr_status hr_shard_commit(hr_shard_writer *writer, const hr_shard_info *info,
                                        hr_error *err);

/* Removes what was written and was not committed. Accepts null. */
void hr_shard_abort(hr_shard_writer *writer);

/* ---- reading */

typedef struct hr_shard hr_shard;

int64_t hr_shard_bytes(void);

/* Opens a shard in memory [hr_shard_bytes()], aligned to 64.
 * Errors   USAGE    missing or unreadable
 *          CORRUPT  damaged, cut short, or no shard of this version. */
HR_MUST_CHECK hr_status hr_shard_open(hr_shard **shard, void *memory, const char *path,
                                      hr_error *err);
void hr_shard_close(hr_shard **shard);

/* Valid until the close. */
const hr_shard_info *hr_shard_view(const hr_shard *shard);

/* Reads tokens [first, first + count) into ids [count]. They must be inside the shard.
 *
 * Errors   CORRUPT  a checksum is wrong, or an id is not below the vocabulary's size
 *          FAILURE  the system refused.
 * Cost     no allocation; reads the blocks of 4 KiB in which the tokens lie.
 * Threads  one thread per object. */
HR_MUST_CHECK hr_status hr_shard_read(hr_shard *shard, int64_t first, int64_t count, int32_t *ids,
                                      hr_error *err);

/* Reads the whole shard once, for its checksums and its ids.
 * Errors  as hr_shard_read, and INTERRUPTED. */
HR_MUST_CHECK hr_status hr_shard_check(hr_shard *shard, const hr_text_progress *progress,
                                       hr_error *err);

#endif
