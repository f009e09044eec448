/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/token_table.h - the tokens of a training: leaves with a text, and pairs of
 * earlier tokens.
 *
 * The text of a pair is not stored; it is the concatenation of its parts. Equal texts are found by
 * a hash that can be concatenated, then compared byte by byte, because a pair that spells a special
 * token gets its id. */
#ifndef HR_TOKENIZER_TRAIN_TOKEN_TABLE_H
#define HR_TOKENIZER_TRAIN_TOKEN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"

enum { HR_NO_TOKEN = UINT32_MAX, HR_SPELL_BYTES = 4 };

typedef struct {
    uint64_t hash,
        power; /* hash of the text, and the hash base to the power of its length, mod 2^61 - 1 */
    uint32_t left, right; /* a pair; for a leaf HR_NO_TOKEN and the offset of its text */
    int64_t bytes;        /* of the text */
    uint32_t characters;  /* length that max_token_length limits; saturates */
    uint16_t words;       /* maximal runs without a space; saturates */
    /* Of the text: spaces and colons at its ends, and whether a colon is followed by a space. */
    bool starts_space, ends_space, ends_colon, has_colon_space;
    bool is_made; /* some merge makes it */
} hr_vocabulary_token;

/* One thread per object. */
typedef struct {
    hr_vocabulary_token *tokens; /* [tokens_max] */
    uint32_t *slots;             /* [1 << slot_bits] hash table of id + 1; 0: free */
    uint32_t *stack;             /* [tokens_max + 1], to spell texts */
    uint8_t *leaves;             /* [leaves_max] texts of leaves */
    int64_t tokens_max, leaves_max, leaves_bytes;
    int32_t slot_bits;
    uint32_t count;
} hr_vocabulary;

/* Bytes for `tokens_max` tokens with `leaves_max` bytes of leaves. Pure. */
int64_t hr_merge_vocabulary_bytes(int64_t tokens_max, int64_t leaves_max);
void hr_vocabulary_place(hr_vocabulary *vocabulary, hr_region *region, int64_t tokens_max,
                         int64_t leaves_max);

/* The id of a leaf with this text [bytes], an existing one or a new one. `byte`: the byte that it
 * stands for in the corpus; -1: none. There must be room. */
uint32_t hr_vocabulary_leaf(hr_vocabulary *vocabulary, const char *text, int64_t bytes,
                            int32_t byte);

/* The id of a text [bytes]; HR_NO_TOKEN: none. */
uint32_t hr_vocabulary_find(const hr_vocabulary *vocabulary, const char *text, int64_t bytes);

/* The id of the concatenation of `left` and `right`, an existing one or a new one. There must be
 * room. */
uint32_t hr_vocabulary_join(hr_vocabulary *vocabulary, uint32_t left, uint32_t right);

/* Whether the filters of stage 2 forbid this pair: more than four words, or a colon before a
 * space. */
bool hr_vocabulary_refuses(const hr_vocabulary *vocabulary, uint32_t left, uint32_t right);

/* Calls put(context, text, bytes) for each leaf of a token, from left to right. */
typedef void hr_vocabulary_put(void *context, const uint8_t *text, int64_t bytes);
void hr_vocabulary_spell(const hr_vocabulary *vocabulary, uint32_t id, hr_vocabulary_put *put,
                         void *context);

/* Writes the character that stands for a byte in byte-level files to text [HR_SPELL_BYTES], as
 * UTF-8, and returns its length. The second function returns the byte of a code point, or -1.
 * Pure. */
int32_t hr_byte_spell(uint8_t byte, char text[HR_SPELL_BYTES]);
uint32_t hr_byte_point(uint8_t byte);
int32_t hr_point_spell(uint32_t point, char text[HR_SPELL_BYTES]);

#endif
