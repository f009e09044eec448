/* SPDX-License-Identifier: Apache-2.0 */
/* text/documents.h - the interface between texts and tokenization: a stream of documents in pieces
 * that fit a fixed buffer.
 *
 * src/corpus produces the pieces from files. A tokenizer processes each piece on arrival and
 * carries pending bytes over to the next piece until the segment ends. */
#ifndef HR_TEXT_DOCUMENTS_H
#define HR_TEXT_DOCUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "text/pass.h"

/* A piece of a document: bytes of text, or token ids. */
typedef struct {
    const uint8_t *bytes;
    const uint32_t *ids; /* null: the piece is bytes */
    int64_t count;       /* number of bytes or ids; may be 0 at an end */
    bool begins;         /* first piece of its document */
    bool ends;           /* last piece of its document */
    /* last piece of its segment, which no token crosses; set at every document end */
    bool segment_ends;
    bool targets; /* its tokens are training targets */
    /* discard this document: a later part of its line was invalid; it ends here */
    bool discard;
    /* for error messages: the file, and the offset of the piece in its text */
    const char *path;
    int64_t offset;
} hr_piece;

typedef struct {
    const char *name; /* for error messages: its name in the recipe */
    void *context;
    bool is_ids;    /* pieces are ids, all below vocab_size */
    uint32_t holds; /* maps that its shard may need: HR_SHARD_DOCUMENTS, HR_SHARD_MASKS */

    /* Reads everything and computes the identity: a hash of the files' bytes and of the settings
     * for reading them.
     *   hash, bytes  out; bytes of the files
     * Errors as open and next. */
    hr_status (*identify)(void *context, const hr_text_progress *progress, hr_text_hash *hash,
                          int64_t *bytes, hr_error *err);

    /* Begins a pass at the first document; only one pass over a corpus at a time. `work` names the
     * pass for progress ("counting words"). Errors USAGE: a file cannot be read. */
    hr_status (*open)(void *context, const char *work, const hr_text_progress *progress,
                      hr_error *err);

    /* Returns the next piece, valid until the next call; `path` is null at the end of the text.
     * Errors   INTERRUPTED  the progress callback asked to stop
     *          CORRUPT      unusable content, with file and position
     *          FAILURE      a system call failed. */
    hr_status (*next)(void *context, hr_piece *piece, hr_error *err);

    /* After a complete pass: the identity of what it read, and the number of skipped lines. */
    hr_text_hash (*seen)(void *context, int64_t *bad_lines);

    void (*close)(void *context); /* accepts a pass that was never opened */
} hr_documents;

#endif
