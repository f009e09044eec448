/* SPDX-License-Identifier: Apache-2.0 */
/* text/shard.h - a text as a file of token ids of 1, 2 or 4 bytes, with optional bit maps of
 * document beginnings and masked tokens. docs/shards.md specifies the format. */
#ifndef HR_TEXT_SHARD_H
#define HR_TEXT_SHARD_H

#include "headroom/config.h"
#include "text/pass.h"

/* Optional maps of a shard, one bit per token each. */
enum {
    HR_SHARD_DOCUMENTS = 1, /* beginnings of documents */
    HR_SHARD_MASKS = 2      /* tokens that are not targets */
};

/* The kind of a shard whose ids come from another program. */
enum { HR_SHARD_IDS = 255 };

/* Header information of a shard. */
typedef struct {
    /* covered: tokens that are in the vocabulary; the writer adds the document separators */
    int64_t tokens, covered;
    int64_t vocab_size; /* every id is below */
    int64_t source_bytes;
    hr_text_hash source;    /* of the text */
    hr_text_hash tokenizer; /* of the vocabulary; bytes: zero */
    int32_t kind;           /* hr_tokenizer_kind, or HR_SHARD_IDS */
    uint32_t holds;         /* HR_SHARD_DOCUMENTS, HR_SHARD_MASKS */
    int64_t documents;      /* with at least one token */
    int64_t longest;        /* tokens of the longest document, without separators */
    int64_t masked;         /* tokens that are not targets */
    int64_t bad_lines;      /* skipped lines of the text */
} hr_shard_info;

/* ---- writing */

typedef struct hr_shard_writer hr_shard_writer;

int64_t hr_shard_writer_bytes(void);

typedef struct {
    const char *directory, *name;
    int64_t vocab_size;
    /* HR_SHARD_DOCUMENTS, HR_SHARD_MASKS; without HR_SHARD_DOCUMENTS the shard is one document */
    uint32_t holds;
    int64_t document_end; /* separator id between two documents; -1: none */
} hr_shard_desc;

/* Begins a shard, in memory [hr_shard_writer_bytes()], aligned to 64. The first document begins
 * with the first token. Errors as hr_file_begin. */
HR_MUST_CHECK hr_status hr_shard_begin(hr_shard_writer **writer, void *memory,
                                       const hr_shard_desc *desc, hr_error *err);

/* Begins a new document at the next token. A document without tokens is not recorded. */
void hr_shard_document(hr_shard_writer *writer);

/* Sets whether the following tokens are targets; initially they are. The shard must hold masks. */
void hr_shard_mask(hr_shard_writer *writer, bool targets);

/* Discards the current document, whatever its length. On an error the file is removed. */
HR_MUST_CHECK hr_status hr_shard_discard(hr_shard_writer *writer, hr_error *err);

/* Appends ids [count], each below vocab_size. On an error the file is removed. */
HR_MUST_CHECK hr_status hr_shard_append(hr_shard_writer *writer, const uint32_t *ids, int64_t count,
                                        hr_error *err);

/* As hr_shard_append, for ids of one byte; the shard's vocab_size is at most 256. */
HR_MUST_CHECK hr_status hr_shard_append_bytes(hr_shard_writer *writer, const uint8_t *ids,
                                              int64_t count, hr_error *err);

/* Publishes the shard under its name. The writer's own counts replace those in `info`. */
HR_MUST_CHECK hr_status hr_shard_commit(hr_shard_writer *writer, const hr_shard_info *info,
                                        hr_error *err);

/* Discards a shard that was not committed. Accepts null. */
void hr_shard_abort(hr_shard_writer *writer);

/* ---- reading */

typedef struct hr_shard hr_shard;

int64_t hr_shard_bytes(void);

/* Opens a shard in memory [hr_shard_bytes()], aligned to 64.
 * Errors   USAGE    missing or unreadable
 *          CORRUPT  damaged, truncated, or not a shard of this version. */
HR_MUST_CHECK hr_status hr_shard_open(hr_shard **shard, void *memory, const char *path,
                                      hr_error *err);
void hr_shard_close(hr_shard **shard);

/* Valid until the close. */
const hr_shard_info *hr_shard_view(const hr_shard *shard);

/* Reads tokens [first, first + count) into ids [count]. They must be inside the shard.
 *
 * Errors   CORRUPT  a checksum is wrong, or an id is not below the vocabulary's size
 *          FAILURE  a system call failed.
 * Cost     no allocation; reads the blocks of 4 KiB that contain the tokens.
 * Threads  one thread per object. */
HR_MUST_CHECK hr_status hr_shard_read(hr_shard *shard, int64_t first, int64_t count, int32_t *ids,
                                      hr_error *err);

/* Marks of a token. */
enum { HR_TOKEN_BEGINS = 1, HR_TOKEN_MASKED = 2 };

/* Reads the marks of tokens [first, first + count) into marks [count]. The first token of the shard
 * begins a document. Errors, cost and threads as hr_shard_read. */
HR_MUST_CHECK hr_status hr_shard_marks(hr_shard *shard, int64_t first, int64_t count,
                                       uint8_t *marks, hr_error *err);

/* Reads the whole shard and verifies its checksums, ids and document counts.
 * Errors  as hr_shard_read, and INTERRUPTED. */
HR_MUST_CHECK hr_status hr_shard_check(hr_shard *shard, const hr_text_progress *progress,
                                       hr_error *err);

#endif
