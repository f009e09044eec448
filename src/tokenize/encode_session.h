/* SPDX-License-Identifier: Apache-2.0 */
/* tokenize/encode_session.h - what an open tokenizer is. */
#ifndef HR_TOKENIZE_ENCODE_SESSION_H
#define HR_TOKENIZE_ENCODE_SESSION_H

#include "dev/pool.h"
#include "headroom/tokenize.h"
#include "mem/memory.h"
#include "tokenizer/encoder.h"

enum {
    HR_ENCODE_SESSION_WINDOW_BYTES = 2 << 20, /* and of a piece, to begin with */
    /* Of a text on several threads: short, so that all of them end at nearly the same time; up to
     * the most where it cannot be parted before. A part becomes three times as long at most when it
     * is normalized, so that there is room for its pieces. */
    HR_ENCODE_SESSION_PART_BYTES = 128 << 10,
    HR_ENCODE_SESSION_PART_BYTES_MAX = 512 << 10,
    HR_ENCODE_SESSION_PART_IDS = HR_ENCODE_SESSION_PART_BYTES, /* held until it is their turn */
    HR_ENCODE_SESSION_THREADS_MAX = 64
};

/* What a thread has, and the part of a text that it is at. */
typedef struct {
    hr_tokenize *session;
    hr_encoder *encoder;
    uint8_t *window;                       /* [HR_ENCODE_SESSION_PART_BYTES_MAX] */
    uint32_t *ids;                         /* [HR_ENCODE_SESSION_PART_IDS] */
    struct hr_encode_session_relay *relay; /* null: the text is one part */
    bool holds;                            /* ids [id_count], until it is the part's turn */
    int64_t number, position, bytes, id_count;
    hr_status status;
    hr_error err;
} hr_encode_session_part;

struct hr_tokenize {
    hr_memory memory;
    hr_region tables, work;
    hr_tokenizer_source source;
    hr_tokenizer *tokenizer;
    hr_tokenize_info info;
    hr_decoder decoder;
    hr_pool pool;
    int32_t threads;
    uint8_t *window; /* [window_bytes] */
    int64_t window_bytes;
    /* What a longer line or piece took: now, and the last time, which may still be in use. */
    hr_region larger_window, rooms[HR_ENCODER_ROOMS][2];
    hr_encode_session_part parts[HR_ENCODE_SESSION_THREADS_MAX];
    /* of the text at work */
    const hr_tokenize_request *request;
    hr_tokenize_result *result;
};

/* Gives an encoder room for a longer piece. */
hr_status hr_encode_session_room(void *context, hr_encoder_more what, int64_t bytes,
                                 hr_region *region, hr_error *err);

/* Takes the ids of a part. */
bool hr_encode_session_sink(void *context, const uint32_t *ids, int64_t count);

#endif
