/* SPDX-License-Identifier: Apache-2.0 */
/* tokenize/encode_session.h - the state of an open tokenizer. */
#ifndef HR_TOKENIZE_ENCODE_SESSION_H
#define HR_TOKENIZE_ENCODE_SESSION_H

#include "dev/pool.h"
#include "headroom/tokenize.h"
#include "mem/memory.h"
#include "text/word_level.h"
#include "tokenizer/encoder.h"

enum {
    HR_ENCODE_SESSION_WINDOW_BYTES = 2 << 20, /* initial size of a window, and limit of a piece */
    /* Parts of a text on several threads are short, so that all threads finish at nearly the same
     * time. A part grows to the maximum if it has no split point. Normalization makes it three
     * times as long at most, so that its pieces always fit. */
    HR_ENCODE_SESSION_PART_BYTES = 128 << 10,
    HR_ENCODE_SESSION_PART_BYTES_MAX = 512 << 10,
    /* buffered until all earlier parts are output */
    HR_ENCODE_SESSION_PART_IDS = HR_ENCODE_SESSION_PART_BYTES,
    HR_ENCODE_SESSION_THREADS_MAX = 64
};

/* The state of a thread and its current part of the text. */
typedef struct {
    hr_tokenize *session;
    hr_encoder *encoder;
    uint8_t *window;                         /* [HR_ENCODE_SESSION_PART_BYTES_MAX] */
    uint32_t *ids;                           /* [HR_ENCODE_SESSION_PART_IDS] */
    struct hr_encode_session_shared *shared; /* null: the text is one part */
    bool holds;                              /* ids [id_count] are buffered until the part's turn */
    int64_t number, position, bytes, id_count;
    hr_status status;
    hr_error err;
} hr_encode_session_part;

struct hr_tokenize {
    hr_memory memory;
    hr_region tables, work;
    hr_tokenizer_source source;
    hr_tokenizer *tokenizer;
    bool plain;           /* a tokenizer of plain.c, encoded on one thread */
    hr_word_level *words; /* with `plain`: words; null: bytes */
    hr_tokenize_info info;
    hr_decoder decoder;
    hr_pool pool;
    int32_t threads;
    uint8_t *window; /* [window_bytes] */
    int64_t window_bytes;
    /* Regions for long lines and pieces: the current one and the previous one, which may still be
     * in use. */
    hr_region larger_window, rooms[HR_ENCODER_ROOMS][2];
    hr_encode_session_part parts[HR_ENCODE_SESSION_THREADS_MAX];
    /* Of the current text. */
    hr_tokenize_request request;
    hr_tokenize_result *result;
};

/* Provides an encoder with memory for a longer piece. */
hr_status hr_encode_session_room(void *context, hr_encoder_more what, int64_t bytes,
                                 hr_region *region, hr_error *err);

/* Opens the tokenizer `bytes`, or a WordLevel file that t->source describes. t->tokenizer then has
 * the texts of the ids, which is enough to decode. Errors as hr_word_level_open. */
HR_MUST_CHECK hr_status hr_encode_session_open_plain(hr_tokenize *t, hr_error *err);

/* Sets the fields of t->info that differ from those of other tokenizers. */
void hr_encode_session_describe_plain(hr_tokenize *t);

/* Encodes more text with such a tokenizer. `ends`: the text ends here; `name` and `offset` are for
 * error messages. Errors as hr_word_level_next, INTERRUPTED. */
HR_MUST_CHECK hr_status hr_encode_session_plain(hr_tokenize *t, const uint8_t *text, int64_t bytes,
                                                bool ends, const char *name, int64_t offset,
                                                hr_error *err);

/* Outputs ids. */
static inline void hr_encode_session_output(hr_tokenize *t, const uint32_t *ids, int64_t count)
{
    if (!count) return;
    t->result->ids += count;
    if (t->request.ids) t->request.ids(t->request.context, ids, count);
}

/* Receives the ids of a part. */
bool hr_encode_session_sink(void *context, const uint32_t *ids, int64_t count);

#endif
