/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/pass.h - one pass over the files of a text: by file, by document, in pieces.
 *
 * The corpus has one pass object, which its texts share one at a time. Its whole state between two
 * calls is its position. */
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
    HR_STREAM_KEPT, /* documents that are not held out */
    HR_STREAM_HELD
} hr_stream_side;

/* A text: files [first, first + count) of the list. */
typedef struct {
    hr_pass *pass;
    int32_t first, count;
    hr_stream_side side;
    double share;     /* fraction that is held out */
    bool alone;       /* one complete plain file, identified by the hash of its bytes */
    bool split;       /* one plain file; the text is its bytes [from, to) */
    int64_t from, to; /* without a split: 0 and INT64_MAX */
} hr_stream;

enum {
    HR_PASS_QUEUE = 4,
    HR_HELD_BYTES = 64 * 1024 /* bytes of a document that decide its side */
};

/* State of a JSON Lines file. */
typedef struct {
    hr_line line;
    int64_t number;   /* of the current line, from 1 */
    int64_t at, fill; /* unread bytes of the buffer */
    int64_t offset;   /* of the buffer's first byte in the text of the file */
    bool ended;       /* the buffer holds the end of the file */
    bool is_long;     /* the line is longer than the buffer and is read in parts */
    bool blank;       /* a long line has had only white space so far */
    bool discarded;   /* skip the rest of the line */
    int32_t opened;   /* field of a long line in which its document began; -1: not begun */
} hr_pass_lines;

struct hr_pass {
    const hr_list *list;
    const hr_corpus_desc *desc;
    hr_input_stream input_stream;
    uint8_t *buffer; /* [buffer_bytes] */
    int64_t buffer_bytes;
    uint32_t *ids; /* [HR_SHARD_IMPORT_AT_ONCE]; null: no file has ids */

    const hr_stream *stream;
    int32_t file;   /* list index of the current or next file */
    bool open;      /* the file is open */
    bool begun;     /* the document of a text or ids has begun; ids continue in the next file */
    bool excluded;  /* the current document belongs to the other side */
    int64_t offset; /* position in the text of the file */
    int64_t bad_lines;
    hr_pass_lines lines;
    hr_shard_import tokens;
    int64_t id_at, id_count; /* ids that were not returned yet */
    hr_piece queue[HR_PASS_QUEUE];
    int32_t queued, returned;
};

/* The document interface of a text. The caller sets its name, kind and contents. */
hr_documents hr_pass_documents(hr_stream *stream);

/* Queues a piece, unless its document belongs to the other side. */
void hr_pass_put(hr_pass *pass, hr_piece piece);

/* Whether a document belongs to the other side, decided by the first HR_HELD_BYTES of each of its
 * texts. */
bool hr_pass_is_excluded(const hr_pass *pass, const hr_line_span *texts, int32_t count);

/* Begins a JSON Lines file that was opened, and queues its next pieces; `end` out: the file has
 * ended.
 * Errors   CORRUPT  a bad line, with its number; and as hr_input_stream_read. */
void hr_pass_lines_begin(hr_pass *pass);
HR_MUST_CHECK hr_status hr_pass_lines_next(hr_pass *pass, bool *end, hr_error *err);

#endif
