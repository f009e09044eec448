/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/alphabet.h - the first ids of a vocabulary: special tokens, then single
 * characters by code point. */
#ifndef HR_TOKENIZER_TRAIN_ALPHABET_H
#define HR_TOKENIZER_TRAIN_ALPHABET_H

#include "base/region.h"
#include "headroom/status.h"
#include "tokenizer/train/token_table.h"

typedef struct {
    int64_t count; /* occurrences; INT64_MAX: included regardless of the text */
    uint32_t point;
    int32_t byte; /* the byte that it stands for; -1: none */
} hr_alphabet_character;

typedef struct {
    hr_alphabet_character *characters; /* [characters_max], sorted by code point when complete */
    int64_t count, characters_max;
} hr_alphabet;

/* Bytes for all byte characters and an initial alphabet, which may be null. */
int64_t hr_alphabet_bytes(const char *initial);

/* Collects the characters of bytes with counts [256] and of `initial` ("bytes": all 256). `limit` >
 * 0: keeps the most frequent ones; ties keep the smaller code points.
 * Errors  USAGE  the initial alphabet is not UTF-8. */
HR_MUST_CHECK hr_status hr_alphabet_place(hr_alphabet *alphabet, hr_region *region,
                                          const int64_t counts[256], const char *initial,
                                          int64_t limit, hr_error *err);

/* Adds special tokens and the alphabet to a vocabulary. ids [256]: out, the ids of the bytes;
 * HR_NO_TOKEN for bytes that are not in the alphabet. */
void hr_alphabet_put(const hr_alphabet *alphabet, const char *const *special, int32_t special_count,
                     hr_vocabulary *vocabulary, uint32_t ids[256]);

/* Largest number of bytes of leaf texts that hr_alphabet_put adds. */
int64_t hr_alphabet_leaves(const hr_alphabet *alphabet, const char *const *special,
                           int32_t special_count);

#endif
