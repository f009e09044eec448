/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/charsmap.h - SentencePiece's precompiled_charsmap: a double-array trie (Darts) of
 * source texts, each with its replacement. */
#ifndef HR_TOKENIZER_CHARSMAP_H
#define HR_TOKENIZER_CHARSMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"

typedef struct {
    const uint32_t *units; /* [count] */
    int64_t count;
    const uint8_t *texts; /* [bytes] zero-terminated UTF-8 replacements */
    int64_t bytes;
} hr_charsmap;

/* Bytes that a map of `bytes` bytes needs in a region. Pure. */
int64_t hr_charsmap_bytes(int64_t bytes);

/* Copies a map from `blob` [bytes]. Returns null, or what is wrong with it. */
const char *hr_charsmap_place(hr_charsmap *map, hr_region *region, const uint8_t *blob,
                              int64_t bytes);

typedef struct {
    int64_t taken;       /* bytes of the key that matched; 0: none */
    const uint8_t *text; /* [bytes] its replacement */
    int64_t bytes;
} hr_charsmap_match;

enum { HR_CHARSMAP_KEY_MAX = 256 }; /* at most this many bytes of a text are matched */

/* Finds a prefix of text [bytes] in the map: the shortest, or the longest of the first 32 matches.
 * A zero byte ends the search for the shortest, as in the reference.
 *
 *   more  out: the text ended before the search did, so more text could change the result */
hr_charsmap_match hr_charsmap_shortest(const hr_charsmap *map, const uint8_t *text, int64_t bytes);
hr_charsmap_match hr_charsmap_longest(const hr_charsmap *map, const uint8_t *text, int64_t bytes,
                                      bool *more);

#endif
