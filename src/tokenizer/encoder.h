/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/encoder.h - text to ids and back, as it comes.
 *
 * An encoder takes a text window by window and gives its ids to a sink; a decoder takes ids and
 * gives bytes. Where windows end changes nothing. */
#ifndef HR_TOKENIZER_ENCODER_H
#define HR_TOKENIZER_ENCODER_H

#include "tokenizer/tokenizer.h"

/* Takes ids in their order; false ends the encoding. */
typedef bool hr_encoder_sink(void *context, const uint32_t *ids, int64_t count);

/* What an encoder has to have more of, because a piece is longer than there is room for. */
typedef enum {
    HR_ENCODER_PIECE,
    HR_ENCODER_NORMAL,
    HR_ENCODER_LEAD,
    HR_ENCODER_ROOMS
} hr_encoder_more;

/* Gives a region of so many bytes in place of the last for `what`, which it may take back when it
 * is asked the next time for the same. Errors NO_FIT: told on. */
typedef hr_status hr_encoder_room(void *context, hr_encoder_more what, int64_t bytes,
                                  hr_region *region, hr_error *err);

typedef struct hr_encoder hr_encoder;

/* Bytes that an encoder needs for pieces of up to piece_bytes, which is also the window that always
 * is enough. Pure. */
int64_t hr_encoder_bytes(const hr_tokenizer *tokenizer, int64_t piece_bytes);

/* Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_encoder_place(hr_encoder **encoder, hr_region *region,
                                         const hr_tokenizer *tokenizer, int64_t piece_bytes,
                                         hr_encoder_sink *sink, void *context, hr_error *err);

/* Asks `room` for longer pieces from now on, with the sink's context; null: they are refused. */
void hr_encoder_may_grow(hr_encoder *encoder, hr_encoder_room *room);

/* Begins a text, or a part of one at byte `position`, which is for the sentences of errors.
 * `around`: the ids that the file puts around every text come too. */
void hr_encoder_begin(hr_encoder *encoder, int64_t position, bool around);

/* More of the text.
 *
 *   text   [bytes] a window of it; bytes <= HR_PRETOKENIZER_WINDOW_MAX
 *   at     where it goes on; the hr_encoder_before bytes in front of it are still there, where the
 *          text has so many
 *   whole  it ends with the window; then all of it is taken
 *   taken  out; up to where the window is done with. Without `whole` some is left; where nothing is
 *          taken, a longer window is needed
 *
 * Errors   CORRUPT      not UTF-8: says at which byte of the text; a piece that is too long; a
 *                       pattern gave up
 *          NO_FIT       there is no room for a longer piece
 *          INTERRUPTED  the sink said false
 * Threads  one thread per encoder. */
HR_MUST_CHECK hr_status hr_encoder_take(hr_encoder *encoder, const uint8_t *text, int64_t at,
                                        int64_t bytes, bool whole, int64_t *taken, hr_error *err);

int64_t hr_encoder_before(const hr_encoder *encoder);

/* Where a text may be parted so that the ids of its parts are those of the whole: the last such
 * place in (least, most], or -1. No token that is added, no piece and no character reaches over it.
 * Nowhere, where each part would get a space in front.
 *
 *   text  [most + 2] UTF-8; 0 <= least < most
 *
 * Threads  any. */
int64_t hr_tokenizer_parting(const hr_tokenizer *tokenizer, const uint8_t *text, int64_t least,
                             int64_t most);

/* ---- back */

/* Tokens of bytes (<0x41>) that follow each other are decoded together: each becomes U+FFFD where
 * they are not UTF-8. A run of more than this many is decoded in parts. */
enum { HR_DECODER_RUN = 4096 };

typedef struct {
    const hr_tokenizer *tokenizer;
    bool skips_special; /* leaves special tokens out */
    bool begun;
    uint8_t held[4]; /* the beginning of a character */
    int32_t held_bytes;
    /* of tokens of characters */
    bool not_first, written, past_space; /* a token was there; some text; the space in front */
    int32_t stripped;
    int32_t run_bytes;
    uint8_t run[HR_DECODER_RUN];
} hr_decoder;

/* Adds the text of ids [count], UTF-8: what is none becomes U+FFFD as the reference has it.
 *
 *   out   [room]; 3 bytes for each of the ids' tokens, 3 * HR_DECODER_RUN, and 64 are always enough
 *   used  out; ids taken: fewer than count where the next does not fit
 *
 * Returns bytes written. Ids without a token have no text. */
int64_t hr_decoder_add(hr_decoder *decoder, const uint32_t *ids, int64_t count, uint8_t *out,
                       int64_t room, int64_t *used);

/* The end: what was held back. out [3 * HR_DECODER_RUN + 16]. */
int64_t hr_decoder_end(hr_decoder *decoder, uint8_t *out);

#endif
