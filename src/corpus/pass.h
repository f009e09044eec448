/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/pass.h - one pass over the files of a text: file by file, document by document, in pieces.
 *
 * The corpus has one, and its texts take turns; between two calls it knows only where it is. */
#ifndef HR_CORPUS_PASS_H
#define HR_CORPUS_PASS_H

#include "corpus/corpus.h"
#include "corpus/input_stream.h"
#include "corpus/lines.h"
#include "corpus/list.h"
#include "corpus/shard_import.h"

typedef struct hr_pass hr_pass;

/* Which documents of its files a text has. */
typedef enum {
    HR_STREAM_ALL,
    HR_STREAM_KEPT, /* those that are not held out */
    HR_STREAM_HELD
} hr_stream_side;

/* A text: files [first, first + count) of the list. */
typedef struct {
    hr_pass *pass;
    int32_t first, count;
    hr_stream_side side;
    double share;     /* that is held out */
    bool alone;       /* one plain file, whole: its identity is its bytes' */
    bool split;       /* one plain file, of which the text is bytes [from, to) */
    int64_t from, to; /* else all: 0 and INT64_MAX */
} hr_stream;

enum { HR_PASS_QUEUE = 4, HR_HELD_BYTES = 64 * 1024 /* of a document that say where it goes */ };

/* The documents of the line or lines at hand. */
typedef struct {
    hr_line line;
    int64_t number;   /* of the line, from 1 */
    int64_t at, fill; /* of the buffer: what was not read yet */
    int64_t offset;   /* in the text of the file, of the buffer's first byte */
    bool ended;       /* nothing comes behind what the buffer holds */
    bool is_long;     /* the line is longer than the buffer: it is read in parts */
    bool discarded;   /* up to its end: it was bad */
    int32_t opened;   /* of a long line: its document has begun, with this field; -1: it has not */
} hr_pass_lines;

struct hr_pass {
    const hr_list *list;
    const hr_corpus_desc *desc;
    hr_input_stream input_stream;
    uint8_t *buffer; /* [buffer_bytes] */
    int64_t buffer_bytes;
    uint32_t *ids; /* [HR_SHARD_IMPORT_AT_ONCE]; null: no file has any */

    const hr_stream *stream;
    int32_t file;   /* index in the list of the file at hand, or the next */
    bool open;      /* the file is */
    bool begun;     /* its document, of a text, or of ids: it goes on in the next file */
    bool passed;    /* the document at hand belongs to the other side */
    int64_t offset; /* in the text of the file */
    int64_t bad_lines;
    hr_pass_lines lines;
    hr_shard_import tokens;
    int64_t id_at, id_count; /* of ids: what was not handed out */
    hr_piece queue[HR_PASS_QUEUE];
    int32_t queued, given;
};

/* The interface of a text; its name, kind and what it holds are the caller's to fill in. */
hr_documents hr_pass_documents(hr_stream *stream);

/* Adds a piece to those that come next; of documents of the other side nothing is added. */
void hr_pass_put(hr_pass *pass, hr_piece piece);

/* Whether a document that begins so belongs to the other side, by the first HR_HELD_BYTES of each
 * of its texts. */
bool hr_pass_is_other(const hr_pass *pass, const hr_line_span *texts, int32_t count);

/* Begins the lines of the file that was opened; and queues what comes next, or nothing at its end.
 * Errors   CORRUPT  a bad line, with its number; and as hr_input_stream_read. */
void hr_pass_lines_begin(hr_pass *pass);
HR_MUST_CHECK hr_status hr_pass_lines_next(hr_pass *pass, bool *end, hr_error *err);

#endif
