/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/encoding.h - the state of an encoder, private to its source files. */
#ifndef HR_TOKENIZER_ENCODING_H
#define HR_TOKENIZER_ENCODING_H

#include <string.h>

#include "tokenizer/encoder.h"
#include "tokenizer/nfc.h"

enum { HR_ENCODER_IDS = 4096, HR_ENCODER_PIECES = 256, HR_ENCODER_BEHIND = 16 };

/* Matching state for one table of added tokens. */
typedef struct {
    const hr_added *added;
    int64_t search; /* resume the search this many bytes after the consumed text; may be negative */
} hr_encoder_splitter;

struct hr_encoder {
    const hr_tokenizer *tokenizer;
    hr_encoder_sink *sink;
    hr_encoder_room *room; /* null: buffers cannot grow */
    void *context;
    hr_bpe_workspace *bpe;         /* BPE; null for Unigram */
    hr_unigram_workspace *unigram; /* Unigram; null for BPE */
    hr_normalizing *norm;          /* null: no normalizer, or only NFC */
    hr_pretokenizer_cursor *cut;
    hr_nfc_scratch *form;
    uint8_t *normal; /* [normal_bytes] normalized text: context, consumed, not yet consumed */
    int64_t normal_bytes, normal_at, normal_end;
    int64_t piece_bytes;
    uint8_t *lead; /* [lead_bytes] an added space and the first piece */
    int64_t lead_bytes;
    hr_encoder_splitter raw, normalized;
    bool in_segment;        /* the pre-tokenizer is inside a segment */
    int64_t segment_before; /* bytes of the segment that are done */
    bool starts;            /* nothing of the text is consumed yet */
    bool leads;             /* the next unit gets a leading space */
    /* resume the search for the end of a unit this many bytes after the consumed text */
    int64_t unit_search;
    bool after_unknown;   /* the last id is the unknown token */
    int64_t level_before; /* bytes done since the last raw added token */
    int64_t position;     /* bytes of the text that are consumed */
    hr_encoder_special special;
    bool stopped;
    int32_t id_count;
    uint32_t ids[HR_ENCODER_IDS];
    hr_piece pieces[HR_ENCODER_PIECES];
};

/* Passes buffered ids to the sink. */
void hr_encoder_flush(hr_encoder *encoder);

/* Grows the workspace for pieces of `bytes`; doubles a buffer and keeps its first `kept` bytes.
 * Errors CORRUPT, NO_FIT. */
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

/* Units of text in which U+2581 replaces spaces. hr_encoder_begin_split begins an independent split
 * with its text [bytes]; `first`: it is at the start of the text. hr_encoder_take_units then
 * encodes the units of text [at, bytes); `ends`: the split ends there. */
void hr_encoder_begin_split(hr_encoder *encoder, const uint8_t *text, int64_t bytes, bool first);
HR_MUST_CHECK hr_status hr_encoder_take_units(hr_encoder *encoder, const uint8_t *text, int64_t at,
                                              int64_t bytes, int64_t readable, bool ends,
                                              int64_t *taken, hr_error *err);

#endif
