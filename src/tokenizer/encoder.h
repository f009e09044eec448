/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/encoder.h - streaming encoder (text to ids) and decoder (ids to text).
 *
 * An encoder takes a text window by window and passes its ids to a sink. A decoder takes ids and
 * writes bytes. Window boundaries do not change the result. */
#ifndef HR_TOKENIZER_ENCODER_H
#define HR_TOKENIZER_ENCODER_H

#include "tokenizer/tokenizer.h"

/* Receives ids in order. Returns false to stop the encoding. */
typedef bool hr_encoder_sink(void *context, const uint32_t *ids, int64_t count);

/* The buffer that is too small for a long piece. */
typedef enum {
    HR_ENCODER_PIECE,
    HR_ENCODER_NORMAL,
    HR_ENCODER_LEAD,
    HR_ENCODER_ROOMS
} hr_encoder_more;

/* Provides a larger region of `bytes` for buffer `what`. It may reuse the previous region of that
 * buffer at the next call. Errors NO_FIT: passed on to the caller. */
typedef hr_status hr_encoder_room(void *context, hr_encoder_more what, int64_t bytes,
                                  hr_region *region, hr_error *err);

typedef struct hr_encoder hr_encoder;

/* Bytes that an encoder needs for pieces of up to piece_bytes. A window of that size is always
 * large enough for such pieces. Pure. */
int64_t hr_encoder_bytes(const hr_tokenizer *tokenizer, int64_t piece_bytes);

/* Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_encoder_place(hr_encoder **encoder, hr_region *region,
                                         const hr_tokenizer *tokenizer, int64_t piece_bytes,
                                         hr_encoder_sink *sink, void *context, hr_error *err);

/* From now on the encoder calls `room` with the sink's context for longer pieces. Null: longer
 * pieces are an error. */
void hr_encoder_may_grow(hr_encoder *encoder, hr_encoder_room *room);

/* Begins a text, or a part of one at byte offset `position`, which error messages add to theirs.
 * `special`: also output the ids that the tokenizer adds before a text, or at both ends of it. */
typedef enum { HR_SPECIAL_NONE, HR_SPECIAL_BEFORE, HR_SPECIAL_AROUND } hr_encoder_special;
void hr_encoder_begin(hr_encoder *encoder, int64_t position, hr_encoder_special special);

/* Encodes the next window of the text.
 *
 *   text   [bytes] window; bytes <= HR_PRETOKENIZER_WINDOW_MAX
 *   at     offset in the window to continue at; the hr_encoder_before bytes before it must still be
 *          present, or all bytes of the text if it has fewer
 *   whole  the text ends with this window; all of it is consumed
 *   taken  out; the window is consumed up to here. Without `whole` a rest remains. If it equals at,
 *          a longer window is needed
 *
 * Errors   CORRUPT      not UTF-8 (names the byte offset), a piece that is too long, or a pattern
 *                       that exceeds its limits
 *          NO_FIT       no memory for a longer piece
 *          INTERRUPTED  the sink returned false
 * Threads  one thread per encoder. */
HR_MUST_CHECK hr_status hr_encoder_take(hr_encoder *encoder, const uint8_t *text, int64_t at,
                                        int64_t bytes, bool whole, int64_t *taken, hr_error *err);

int64_t hr_encoder_before(const hr_encoder *encoder);

/* Finds a position where the text can be split so that the ids of the two parts are the ids of the
 * whole: the last such position in (least, most], or -1. No added token, piece or character extends
 * across it. Always -1 if the tokenizer adds a space before each text.
 *
 *   text  [most + 2] UTF-8; 0 <= least < most
 *
 * Threads  any. */
int64_t hr_tokenizer_split_point(const hr_tokenizer *tokenizer, const uint8_t *text, int64_t least,
                                 int64_t most);

/* ---- decoding */

/* Consecutive byte tokens (<0x41>) are decoded together. If they are not UTF-8, each becomes
 * U+FFFD. A run of more than this many is decoded in parts. */
enum { HR_DECODER_RUN = 4096 };

typedef struct {
    const hr_tokenizer *tokenizer;
    bool skips_special; /* omit special tokens */
    bool begun;
    uint8_t held[4]; /* incomplete UTF-8 character */
    int32_t held_bytes;
    /* for tokens of characters */
    bool not_first, written,
        past_space; /* a token was decoded; text was written; the leading space is handled */
    int32_t stripped;
    int32_t run_bytes;
    uint8_t run[HR_DECODER_RUN];
} hr_decoder;

/* Decodes ids [count] to UTF-8. Invalid sequences become U+FFFD, as in the reference.
 *
 *   out   [room]; 3 bytes per byte of the tokens, plus 3 * HR_DECODER_RUN + 64, is always enough
 *   used  out; ids consumed: fewer than count if the next one does not fit
 *
 * Returns bytes written. Ids without a token have no text. */
int64_t hr_decoder_add(hr_decoder *decoder, const uint32_t *ids, int64_t count, uint8_t *out,
                       int64_t room, int64_t *used);

/* Ends the text: writes the bytes that were held back. out [3 * HR_DECODER_RUN + 16]. */
int64_t hr_decoder_end(hr_decoder *decoder, uint8_t *out);

#endif
