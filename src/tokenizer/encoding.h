/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/encoding.h - the state of an encoder, for its own files. */
#ifndef HR_TOKENIZER_ENCODING_H
#define HR_TOKENIZER_ENCODING_H

#include <string.h>

#include "tokenizer/encoder.h"
#include "tokenizer/nfc.h"

enum { HR_ENCODER_IDS = 4096, HR_ENCODER_PIECES = 256, HR_ENCODER_BEHIND = 16 };

/* One level of added tokens. */
typedef struct {
    const hr_added *added;
    int64_t search; /* the search goes on so many bytes behind what is taken; may be below 0 */
} hr_encoder_splitter;

struct hr_encoder {
    const hr_tokenizer *tokenizer;
    hr_encoder_sink *sink;
    hr_encoder_room *room; /* null: there is no more */
    void *context;
    hr_bpe_walk *walk;        /* null: Unigram, */
    hr_unigram_walk *unigram; /* which has this */
    hr_normalizing *norm;     /* null: text is not normalized, or is brought into form C */
    hr_pretokenizer_cursor *cut;
    hr_nfc_scratch *form;
    uint8_t *normal; /* [normal_bytes] text in form C: before, taken, and not taken yet */
    int64_t normal_bytes, normal_at, normal_end;
    int64_t piece_bytes;
    uint8_t *lead; /* [lead_bytes] a space and the first piece behind it */
    int64_t lead_bytes;
    hr_encoder_splitter raw, normalized;
    bool in_segment;        /* the cutter is in the middle of one */
    int64_t segment_before; /* bytes of it that are done */
    bool starts;            /* nothing of the text was taken yet */
    bool leads;             /* the next unit gets a space in front */
    int64_t unit_search;    /* where a unit may end is looked for so far behind what is taken */
    bool after_unknown;     /* the last id stands for characters without a token */
    int64_t level_before;   /* bytes that are done of what lies between two raw added tokens */
    int64_t position;       /* of the text: bytes taken */
    bool around, stopped;
    int32_t id_count;
    uint32_t ids[HR_ENCODER_IDS];
    hr_piece pieces[HR_ENCODER_PIECES];
};

/* Gives what is held to the sink. */
void hr_encoder_flush(hr_encoder *encoder);

/* Room for pieces of so many bytes, and a buffer twice as long with the first `kept` bytes of the
 * last. Errors CORRUPT, NO_FIT. */
HR_MUST_CHECK hr_status hr_encoder_grow_pieces(hr_encoder *encoder, int64_t bytes, hr_error *err);
HR_MUST_CHECK hr_status hr_encoder_grow_buffer(hr_encoder *encoder, hr_encoder_more what,
                                               uint8_t **buffer, int64_t *bytes, int64_t kept,
                                               hr_error *err);

static inline void hr_encoder_put_ids(hr_encoder *e, const uint32_t *ids, int64_t count)
{
    if (e->id_count + count > HR_ENCODER_IDS) {
        hr_encoder_flush(e);
        if (count > HR_ENCODER_IDS) {
            if (!e->stopped) e->stopped = !e->sink(e->context, ids, count);
            return;
        }
    }
    for (int64_t i = 0; i < count; i++) e->ids[e->id_count + i] = ids[i];
    e->id_count += (int32_t)count;
}

/* Units, of text in which U+2581 takes the place of spaces: what is tokenized apart begins with
 * hr_encoder_begin_split, text [bytes] of it; `first`: the text does, too. Then units of text
 * [at, bytes) are taken, which ends there or, without `ends`, goes on. */
void hr_encoder_begin_split(hr_encoder *encoder, const uint8_t *text, int64_t bytes, bool first);
HR_MUST_CHECK hr_status hr_encoder_take_units(hr_encoder *encoder, const uint8_t *text, int64_t at,
                                              int64_t bytes, int64_t readable, bool ends,
                                              int64_t *taken, hr_error *err);

#endif
