/* SPDX-License-Identifier: Apache-2.0 */
/* text/documents.h - what a text is to whoever turns it into token ids: documents, one after the
 * other, in pieces that fit a fixed buffer.
 *
 * src/corpus makes them out of files. A tokenizer takes the pieces as they come: what it holds back
 * at the end of one it carries over to the next, up to the end of the segment. */
#ifndef HR_TEXT_DOCUMENTS_H
#define HR_TEXT_DOCUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "text/pass.h"

/* A piece of a document: bytes of text, or ids that are there already. */
typedef struct {
    const uint8_t *bytes;
    const uint32_t *ids; /* null: it is bytes */
    int64_t count;       /* of bytes or ids; 0 is possible at an end */
    bool begins;         /* the first piece of its document */
    bool ends;           /* no more of the document comes */
    bool segment_ends;   /* nor of the segment: no token reaches across. So at every end */
    bool targets;        /* its tokens are to be learned */
    bool forget;         /* what came of this document is void: the line was bad; it ends here */
    const char *path;    /* for sentences: the file, and where in its text the piece begins */
    int64_t offset;
} hr_piece;

typedef struct {
    const char *name; /* for sentences: what the recipe calls it */
    void *context;
    bool is_ids;    /* pieces are ids, all below vocab_size */
    uint32_t holds; /* what a shard of it may need: HR_SHARD_DOCUMENTS, HR_SHARD_MASKS */

    /* Reads everything for its identity: the files' bytes, and how they are to be read.
     *   hash, bytes  out; bytes of the files
     * Errors as open and next. */
    hr_status (*identify)(void *context, const hr_text_progress *progress, hr_text_hash *hash,
                          int64_t *bytes, hr_error *err);

    /* Begins a pass, from the first document on; one at a time over all documents of a corpus.
     * `work` says what is done ("counting words"). Errors USAGE, a file that cannot be read. */
    hr_status (*open)(void *context, const char *work, const hr_text_progress *progress,
                      hr_error *err);

    /* The next piece, valid until the next call; `*piece` with null `path` at the end of all.
     * Errors   INTERRUPTED  the progress function said so
     *          CORRUPT      content that cannot be used: names file and place
     *          FAILURE      the system refused. */
    hr_status (*next)(void *context, hr_piece *piece, hr_error *err);

    /* Of a pass that came to its end: the identity of what it read, and lines that it left out. */
    hr_text_hash (*seen)(void *context, int64_t *bad_lines);

    void (*close)(void *context); /* accepts a pass that was never opened */
} hr_documents;

#endif
