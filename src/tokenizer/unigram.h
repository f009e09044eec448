/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/unigram.h - Unigram: the segmentation with the highest sum of scores (Viterbi). A
 * character without a token counts as a token with the lowest score minus 10. */
#ifndef HR_TOKENIZER_UNIGRAM_H
#define HR_TOKENIZER_UNIGRAM_H

#include "tokenizer/bpe.h"

typedef struct {
    const hr_bpe *tree; /* HR_BPE_TREE; also defines the encoding of characters without a token */
    double *scores;     /* [ids] */
    double unknown_score;
    /* Sums are floats and restart when they exceed 100,000, as in SentencePiece. Otherwise they are
     * doubles, as in the package tokenizers. */
    bool single;
} hr_unigram;

typedef struct hr_unigram_workspace hr_unigram_workspace;

int64_t hr_unigram_workspace_bytes(const hr_unigram *unigram, int64_t piece_bytes);
HR_MUST_CHECK hr_status hr_unigram_workspace_place(hr_unigram_workspace **work, hr_region *region,
                                                   const hr_unigram *unigram, int64_t piece_bytes,
                                                   hr_error *err);

/* Begins a text: the sum is 0. */
void hr_unigram_begin(hr_unigram_workspace *work);

/* Copies the state of `before`, to continue its text with a larger workspace. */
void hr_unigram_continue(hr_unigram_workspace *work, const hr_unigram_workspace *before);

/* Encodes the next part of a text, [bytes] <= piece_bytes. No token may extend past its end.
 *
 *   ids  out; owned by the workspace, valid until the next part
 *
 * Returns the number of ids.
 * Repeat  sums continue from part to part, so the ids equal those of the whole text */
int64_t hr_unigram_encode(hr_unigram_workspace *work, const uint8_t *text, int64_t bytes,
                          const uint32_t **ids);

#endif
