/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/synthetic.h - a source of token ids for people without a text: data.train=synthetic.
 *
 * The next id is S(previous) with probability 3/4, and otherwise drawn anew, independently of the
 * previous one. S(x) = (a x + c) mod V permutes the ids; a, which has no factor in common with V,
 * and c depend on the seed. A drawn id has an octave e, uniform in [0, K) with
 * K = floor(log2 V) + 1, and is uniform in [2^e - 1, 2^(e+1) - 2], mod V: about proportional to
 * 1 / (id + 1), as words are. A model that learns S reaches about a third of the loss of one that
 * knows the frequencies only.
 *
 * Id i of a stream depends on the seed, the stream, i, and the id before it: two streams of a seed
 * have the same S and different draws. */
#ifndef HR_CORPUS_SYNTHETIC_H
#define HR_CORPUS_SYNTHETIC_H

#include "corpus/spec.h"
#include "text/documents.h"

enum {
    HR_SYNTHETIC_TRAIN_TOKENS = 1 << 22, /* without tokens=N */
    HR_SYNTHETIC_VALID_TOKENS = 1 << 18,
    HR_SYNTHETIC_AT_ONCE = 16384 /* ids of a piece */
};

/* One stream of ids. */
typedef struct {
    int64_t V, tokens;
    uint64_t seed;
    uint32_t lane;    /* 0: training, 1: validation */
    int64_t a, c;     /* of S */
    int64_t at, last; /* next position, and the id before it */
    uint32_t *ids;    /* [HR_SYNTHETIC_AT_ONCE], of the caller */
    const hr_text_progress *progress;
    const char *work;
} hr_synthetic;

/* Begins at the first id. `ids` is borrowed. 1 <= V <= 2^30. */
void hr_synthetic_begin(hr_synthetic *s, int64_t V, int64_t tokens, uint64_t seed, uint32_t lane,
                        uint32_t *ids);

/* Writes the next ids, at most HR_SYNTHETIC_AT_ONCE, to s->ids; returns how many, 0 at the end. */
int64_t hr_synthetic_next(hr_synthetic *s);

/* The document interface: one document. The caller sets its name. */
hr_documents hr_synthetic_documents(hr_synthetic *s);

#endif
