/* SPDX-License-Identifier: Apache-2.0 */
/* tokenize/session.h - what an open tokenizer is. */
#ifndef HR_TOKENIZE_SESSION_H
#define HR_TOKENIZE_SESSION_H

#include "dev/pool.h"
#include "headroom/tokenize.h"
#include "mem/memory.h"
#include "tokenizer/encoder.h"

enum {
    HR_SESSION_WINDOW_BYTES = 2 << 20, /* and of a piece, to begin with */
    HR_SESSION_THREADS_MAX = 64
};

/* A thread's part of a window. */
typedef struct {
    hr_tokenize *session;
    hr_encoder *encoder;
    int64_t begin, end, position; /* of the window; of the text */
    uint32_t *ids;                /* null: given on at once */
    int64_t id_count;
    hr_status status;
    hr_error err;
} hr_session_part;

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
    uint32_t *ids; /* [HR_SESSION_WINDOW_BYTES] */
    hr_session_part parts[HR_SESSION_THREADS_MAX];
    /* of the text at work */
    const hr_tokenize_request *request;
    hr_tokenize_result *result;
};

/* Gives an encoder room for a longer piece. */
hr_status hr_session_room(void *context, hr_encoder_more what, int64_t bytes, hr_region *region,
                          hr_error *err);

/* Takes the ids of a part. */
bool hr_session_sink(void *context, const uint32_t *ids, int64_t count);

#endif
