/* SPDX-License-Identifier: Apache-2.0 */
/* generate/stream.c - decides which of the received bytes are final. */
#include "generate/stream.h"

#include <string.h>

/* Returns the position of the first complete stop text in the held bytes. If there is none, returns
 * the first position where a stop text may have begun, or the end of the held bytes. */
static int32_t stop_at(const hr_stream *s, bool *whole)
{
    int32_t begun = s->held_bytes;
    for (int32_t at = 0; at < s->held_bytes; at++) {
        const int32_t rest = s->held_bytes - at;
        for (int32_t k = 0; k < s->stop_count; k++) {
            const int32_t length = (int32_t)strlen(s->stops[k]);
            const int32_t compared = rest < length ? rest : length;
            if (memcmp(s->held + at, s->stops[k], (size_t)compared) != 0) continue;
            *whole = compared == length;
            if (*whole) return at;
            if (at < begun) begun = at;
        }
    }
    *whole = false;
    return begun;
}

/* Bytes of the UTF-8 character that starts with this byte; 1 for an invalid start. */
static int32_t character_bytes(unsigned char first)
{
    if (first >= 0xc2 && first < 0xe0) return 2;
    if (first >= 0xe0 && first < 0xf0) return 3;
    return first >= 0xf0 && first < 0xf5 ? 4 : 1;
}

/* Returns the longest prefix of the held bytes that does not cut a character. Invalid UTF-8 is
 * passed on as soon as it is known to be invalid. */
static int32_t whole_characters(const hr_stream *s, int32_t bytes)
{
    for (int32_t back = 1; back <= 3 && back <= bytes; back++) {
        const unsigned char byte = (unsigned char)s->held[bytes - back];
        if ((byte & 0xc0) == 0x80) continue;
        return character_bytes(byte) > back ? bytes - back : bytes;
    }
    return bytes;
}

int32_t hr_stream_add(hr_stream *s, char byte, bool *stopped)
{
    s->held[s->held_bytes++] = byte;
    const int32_t before_stop = stop_at(s, stopped);
    return *stopped ? before_stop : whole_characters(s, before_stop);
}

void hr_stream_drop(hr_stream *s, int32_t bytes)
{
    s->held_bytes -= bytes;
    memmove(s->held, s->held + bytes, (size_t)s->held_bytes);
}

void hr_stream_end(hr_stream *s)
{
    static const char replacement[] = { '\xef', '\xbf', '\xbd' };
    const int32_t whole = whole_characters(s, s->held_bytes);
    if (whole == s->held_bytes) return;
    memcpy(s->held + whole, replacement, sizeof replacement);
    s->held_bytes = whole + (int32_t)sizeof replacement;
}
