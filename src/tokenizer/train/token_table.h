/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/token_table.h - the tokens of a training: leaves with a text, and pairs of
 * earlier tokens.
 *
 * A token's text is never stored: it is the text of its left part and that of its right part. Texts
 * are known again by a hash that joins as texts do, and then compared byte by byte, because a pair
 * that spells a special token gets its id. */
#ifndef HR_TOKENIZER_TRAIN_TOKEN_TABLE_H
#define HR_TOKENIZER_TRAIN_TOKEN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"

enum { HR_NO_TOKEN = UINT32_MAX, HR_SPELL_BYTES = 4 };

typedef struct {
    uint64_t hash, power; /* of the text, and of the base to its length: both mod 2^61 - 1 */
    uint32_t left, right; /* a pair; or HR_NO_TOKEN and where the leaf's text begins */
    int64_t bytes;        /* of the text */
    uint32_t characters;  /* what max_token_length counts; saturates */
    uint16_t words;       /* runs without a space; saturates */
    /* Of the text: spaces and colons at its ends, and a colon before a space anywhere. */
    bool starts_space, ends_space, ends_colon, has_colon_space;
    bool is_made; /* by a merge, of which there is one */
} hr_vocabulary_token;

/* One thread per object. */
typedef struct {
    hr_vocabulary_token *tokens; /* [tokens_max] */
    uint32_t *slots;             /* [1 << slot_bits]: id + 1 by hash; 0: free */
    uint32_t *stack;             /* [tokens_max + 1], for spelling */
    uint8_t *leaves;             /* [leaves_max]: texts of leaves */
    int64_t tokens_max, leaves_max, leaves_bytes;
    int32_t slot_bits;
    uint32_t count;
} hr_vocabulary;

/* Room for `tokens_max` tokens with `leaves_max` bytes of leaves. Pure. */
int64_t hr_merge_vocabulary_bytes(int64_t tokens_max, int64_t leaves_max);
void hr_vocabulary_place(hr_vocabulary *vocabulary, hr_region *region, int64_t tokens_max,
                         int64_t leaves_max);

/* The id of a leaf with this text [bytes]: a new one, or the one that it has. `byte` is what it
 * stands for in the corpus; -1: nothing. Needs room. */
uint32_t hr_vocabulary_leaf(hr_vocabulary *vocabulary, const char *text, int64_t bytes,
                            int32_t byte);

/* The id of a text [bytes]; HR_NO_TOKEN: it has none. */
uint32_t hr_vocabulary_find(const hr_vocabulary *vocabulary, const char *text, int64_t bytes);

/* The id of the text of `left` and `right` together: a new one, or the one that it has. Needs
 * room. */
uint32_t hr_vocabulary_join(hr_vocabulary *vocabulary, uint32_t left, uint32_t right);

/* Whether a second stage may not make this pair: four words at most, no colon before a space. */
bool hr_vocabulary_refuses(const hr_vocabulary *vocabulary, uint32_t left, uint32_t right);

/* Calls put(context, text, bytes) for each leaf of a token, from left to right. */
typedef void hr_vocabulary_put(void *context, const uint8_t *text, int64_t bytes);
void hr_vocabulary_spell(const hr_vocabulary *vocabulary, uint32_t id, hr_vocabulary_put *put,
                         void *context);

/* The character that stands for a byte in files of byte-level tokenizers, as UTF-8 in text
 * [HR_SPELL_BYTES]; returns its bytes. The other way: the byte of a code point, or -1. Pure. */
int32_t hr_byte_spell(uint8_t byte, char text[HR_SPELL_BYTES]);
uint32_t hr_byte_point(uint8_t byte);
int32_t hr_point_spell(uint32_t point, char text[HR_SPELL_BYTES]);

#endif
