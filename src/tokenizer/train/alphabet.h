/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/alphabet.h - the first ids: special tokens, then single characters by code point.
 */
#ifndef HR_TOKENIZER_TRAIN_ALPHABET_H
#define HR_TOKENIZER_TRAIN_ALPHABET_H

#include "base/region.h"
#include "headroom/status.h"
#include "tokenizer/train/token_table.h"

typedef struct {
    int64_t count; /* times that it is there; INT64_MAX: wanted whatever the text */
    uint32_t point;
    int32_t byte; /* that it stands for; -1: none */
} hr_alphabet_character;

typedef struct {
    hr_alphabet_character *characters; /* [characters_max], by code point once it is settled */
    int64_t count, characters_max;
} hr_alphabet;

/* Room for all bytes and an initial alphabet, which may be null. */
int64_t hr_alphabet_bytes(const char *initial);

/* The characters of bytes with counts [256], and of `initial` ("bytes": all 256); `limit` > 0: the
 * most frequent so many, of equals those with smaller code points.
 * Errors  USAGE  the initial alphabet is not UTF-8. */
HR_MUST_CHECK hr_status hr_alphabet_place(hr_alphabet *alphabet, hr_region *region,
                                          const int64_t counts[256], const char *initial,
                                          int64_t limit, hr_error *err);

/* Puts special tokens and the alphabet into a vocabulary; ids [256] out, HR_NO_TOKEN for bytes that
 * are not in it. */
void hr_alphabet_put(const hr_alphabet *alphabet, const char *const *special, int32_t special_count,
                     hr_vocabulary *vocabulary, uint32_t ids[256]);

/* Bytes of leaves that this takes at most. */
int64_t hr_alphabet_leaves(const hr_alphabet *alphabet, const char *const *special,
                           int32_t special_count);

#endif
