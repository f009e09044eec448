/* SPDX-License-Identifier: Apache-2.0 */
/* generate/stream.h - bytes as they come into text that can be shown: whole characters, and nothing
 * that may yet turn out to be a text which ends the answer. */
#ifndef HR_GENERATE_STREAM_H
#define HR_GENERATE_STREAM_H

#include <stdbool.h>

#include "headroom/generate.h"

typedef struct {
    const char *const *stops; /* [stop_count], each 1 to HR_STOP_BYTES - 1 long */
    int32_t stop_count;
    char held[2 * HR_STOP_BYTES]; /* not told yet */
    int32_t held_bytes;
} hr_stream;

/* Adds a byte. Returns how many bytes at the front of `held` are certain now: the caller tells them
 * and calls hr_stream_drop. *stopped: what follows them is a stop. */
int32_t hr_stream_add(hr_stream *stream, char byte, bool *stopped);
void hr_stream_drop(hr_stream *stream, int32_t bytes);

/* Nothing more comes: all that is held is certain. A character that has only begun becomes
 * U+FFFD. */
void hr_stream_end(hr_stream *stream);

#endif
