/* SPDX-License-Identifier: Apache-2.0 */
/* text/source.h - a text file, read from front to back through one fixed buffer.
 *
 * Every pass over a text is one of these, so every pass knows the hash of what it read, can be
 * stopped, and takes the same memory whatever the text's length. */
#ifndef HR_TEXT_SOURCE_H
#define HR_TEXT_SOURCE_H

#define XXH_STATIC_LINKING_ONLY /* the state as a plain struct: no allocation */
#include <xxhash.h>

#include "text/pass.h"

enum {
    HR_SOURCE_BYTES = 256 * 1024, /* a piece: stays in the second-level cache */
    HR_SOURCE_MARGIN = 64         /* before each piece: room to put what the last one left over */
};

typedef struct {
    XXH3_state_t hash;
    const char *path, *work; /* what is done to it: "counting words" */
    const hr_text_progress *progress;
    uint8_t *piece;        /* [HR_SOURCE_BYTES], after the margin */
    int64_t bytes, offset; /* of the file; of the first byte not yet handed out */
    int file;
} hr_source;

/* Opens `path`. `buffer` [HR_SOURCE_MARGIN + HR_SOURCE_BYTES] is borrowed until the close.
 * Errors   USAGE  missing, unreadable, no regular file. */
HR_MUST_CHECK hr_status hr_source_open(hr_source *source, const char *path, const char *work,
                                       uint8_t *buffer, const hr_text_progress *progress,
                                       hr_error *err);
void hr_source_close(hr_source *source);

/* Reads the next piece into source->piece.
 *
 *   count  out; 0 at the end of the text
 *
 * Errors   INTERRUPTED  the progress function said so
 *          CORRUPT      the file has become shorter
 *          FAILURE      the system refused. */
HR_MUST_CHECK hr_status hr_source_next(hr_source *source, int64_t *count, hr_error *err);

/* The hash of all that was handed out. */
hr_text_hash hr_source_hash(const hr_source *source);

#endif
