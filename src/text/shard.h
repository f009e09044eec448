/* SPDX-License-Identifier: Apache-2.0 */
/* text/shard.h - a text as a file of token ids of 1, 2 or 4 bytes, and where it holds several
 * documents or tokens that are not to be learned, which those are. Format: docs/shards.md. */
#ifndef HR_TEXT_SHARD_H
#define HR_TEXT_SHARD_H

#include "headroom/config.h"
#include "text/pass.h"

/* What a shard may hold beside the ids, a bit a token each. */
enum {
    HR_SHARD_DOCUMENTS = 1, /* where documents begin */
    HR_SHARD_MASKS = 2      /* which tokens are no targets */
};

/* The kind of a shard whose ids were ids before, made elsewhere. */
enum { HR_SHARD_IDS = 255 };

/* What a shard says of itself. */
typedef struct {
    int64_t tokens, covered; /* covered: tokens that are in the vocabulary; a writer adds those
                              * that stand between documents */
    int64_t vocab_size;      /* every id is below */
    int64_t source_bytes;
    hr_text_hash source;    /* of the text */
    hr_text_hash tokenizer; /* of the vocabulary; bytes: zero */
    int32_t kind;           /* hr_tokenizer_kind, or HR_SHARD_IDS */
    uint32_t holds;         /* HR_SHARD_DOCUMENTS, HR_SHARD_MASKS */
    int64_t documents;      /* with a token at least */
    int64_t longest;        /* tokens of the longest of them, without what stands between */
    int64_t masked;         /* tokens that are no targets */
    int64_t bad_lines;      /* of the text, left out */
} hr_shard_info;

/* ---- writing */

typedef struct hr_shard_writer hr_shard_writer;

int64_t hr_shard_writer_bytes(void);

typedef struct {
    const char *directory, *name;
    int64_t vocab_size;
    uint32_t holds;       /* HR_SHARD_DOCUMENTS, HR_SHARD_MASKS; without documents all is one */
    int64_t document_end; /* id that is put between two documents; -1: none */
} hr_shard_desc;

/* Begins a shard, in memory [hr_shard_writer_bytes()], aligned to 64. The first document begins
 * with the first token. Errors   as hr_file_begin. */
HR_MUST_CHECK hr_status hr_shard_begin(hr_shard_writer **writer, void *memory,
                                       const hr_shard_desc *desc, hr_error *err);

/* From the next token on it is another document; one without tokens leaves no trace. */
void hr_shard_document(hr_shard_writer *writer);

/* Whether the tokens that come are targets; those of a new shard are. The shard holds masks. */
void hr_shard_mask(hr_shard_writer *writer, bool targets);

/* Forgets the document at hand, however long it is. After an error nothing is left of the file. */
HR_MUST_CHECK hr_status hr_shard_forget(hr_shard_writer *writer, hr_error *err);

/* Adds ids [count], each below vocab_size. After an error nothing is left of the file. */
HR_MUST_CHECK hr_status hr_shard_append(hr_shard_writer *writer, const uint32_t *ids, int64_t count,
                                        hr_error *err);

/* The same for ids that are bytes, in a shard whose vocab_size is at most 256. */
HR_MUST_CHECK hr_status hr_shard_append_bytes(hr_shard_writer *writer, const uint8_t *ids,
                                              int64_t count, hr_error *err);

/* Makes the shard appear under its name. Of `info`, all that the writer counted is the writer's. */
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

/* What a token is beside its id. */
enum { HR_TOKEN_BEGINS = 1, HR_TOKEN_MASKED = 2 };

/* Reads that of tokens [first, first + count) into marks [count]: the first token of the shard
 * begins a document. Errors, cost and threads as hr_shard_read. */
HR_MUST_CHECK hr_status hr_shard_marks(hr_shard *shard, int64_t first, int64_t count,
                                       uint8_t *marks, hr_error *err);

/* Reads the whole shard once, for its checksums, its ids and its documents.
 * Errors  as hr_shard_read, and INTERRUPTED. */
HR_MUST_CHECK hr_status hr_shard_check(hr_shard *shard, const hr_text_progress *progress,
                                       hr_error *err);

#endif
