/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/unigram.h - Unigram: of all ways to make a text of tokens, the one with the highest sum
 * of scores (Viterbi). A character that is no token counts as one of the lowest score less 10. */
#ifndef HR_TOKENIZER_UNIGRAM_H
#define HR_TOKENIZER_UNIGRAM_H

#include "tokenizer/bpe.h"

typedef struct {
    const hr_bpe *tree; /* HR_BPE_TREE; says what stands for characters without a token */
    double *scores;     /* [ids] */
    double unknown_score;
    /* Sums are floats, and begin again where they exceed 100,000, as in SentencePiece; else
     * doubles, as in the package tokenizers. */
    bool single;
} hr_unigram;

typedef struct hr_unigram_walk hr_unigram_walk;

int64_t hr_unigram_walk_bytes(const hr_unigram *unigram, int64_t piece_bytes);
HR_MUST_CHECK hr_status hr_unigram_walk_place(hr_unigram_walk **walk, hr_region *region,
                                              const hr_unigram *unigram, int64_t piece_bytes,
                                              hr_error *err);

/* Begins a text: the sum is 0. */
void hr_unigram_begin(hr_unigram_walk *walk);

/* Goes on with the text that `before` was at. */
void hr_unigram_go_on(hr_unigram_walk *walk, const hr_unigram_walk *before);

/* The tokens of the next part of a text, [bytes] <= piece_bytes: no token may reach over its end.
 *
 *   ids  out; the walk's own, until the next part. Their number is returned.
 *
 * Repeat  sums go on from part to part, so that ids are those of the whole text */
int64_t hr_unigram_encode(hr_unigram_walk *walk, const uint8_t *text, int64_t bytes,
                          const uint32_t **ids);

#endif
