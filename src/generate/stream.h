/* SPDX-License-Identifier: Apache-2.0 */
/* generate/stream.h - converts incoming bytes to text that can be shown: complete characters only,
 * and no text that may turn out to be the beginning of a stop text. */
#ifndef HR_GENERATE_STREAM_H
#define HR_GENERATE_STREAM_H

#include <stdbool.h>

#include "headroom/generate.h"

typedef struct {
    const char *const *stops; /* [stop_count], each 1 to HR_STOP_BYTES - 1 long */
    int32_t stop_count;
    char held[2 * HR_STOP_BYTES]; /* not passed on yet */
    int32_t held_bytes;
} hr_stream;

/* Adds a byte. Returns the number of bytes at the start of `held` that are final: the caller
 * outputs them and calls hr_stream_drop. *stopped: a stop text follows them. */
int32_t hr_stream_add(hr_stream *stream, char byte, bool *stopped);
void hr_stream_drop(hr_stream *stream, int32_t bytes);

/* Ends the input: all held bytes become final. An incomplete character becomes U+FFFD. */
void hr_stream_end(hr_stream *stream);

#endif
