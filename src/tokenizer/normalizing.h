/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/normalizing.h - the state of a running normalizer, private to its source files. */
#ifndef HR_TOKENIZER_NORMALIZING_H
#define HR_TOKENIZER_NORMALIZING_H

#include "tokenizer/graphemes.h"
#include "tokenizer/nfc.h"
#include "tokenizer/normalizer.h"

enum { HR_NORMALIZE_QUEUE = 1024, HR_NORMALIZE_RUNS = 1 << 16, HR_NORMALIZE_COMPOSED = 1 << 16 };

typedef struct {
    uint32_t point, count;
} hr_normalize_run;

/* An operation and its input queue. */
typedef struct {
    uint32_t queue[HR_NORMALIZE_QUEUE];
    int32_t at, count;
    bool ended;              /* no input follows the queue */
    bool begun;              /* PREPEND, STRIP: some text was seen */
    const uint32_t *pending; /* [pending_count] pending output characters */
    int32_t pending_count;
    const uint8_t *text; /* [text_bytes] pending output as UTF-8 */
    int64_t text_bytes;
    int32_t matched;        /* REPLACE: characters of the pattern that matched */
    int64_t blanks;         /* SPACES: pending spaces */
    hr_normalize_run *runs; /* STRIP: [HR_NORMALIZE_RUNS] pending white space */
    int32_t run_at, run_count;
    /* CHARSMAP: a cluster that may continue, and characters to map one by one. */
    uint32_t cluster[8], todo[8];
    int32_t cluster_count, cluster_bytes, todo_at, todo_count;
    bool clustered;
    hr_grapheme grapheme;
} hr_normalize_stage;

typedef struct {
    uint8_t text[HR_NORMALIZE_COMPOSED], out[3 * HR_NORMALIZE_COMPOSED];
    int64_t bytes, out_at, out_bytes;
    hr_nfc_scratch form;
} hr_normalize_composing;

struct hr_normalizing {
    const hr_normalizer *normalizer;
    hr_normalize_composing *composing;
    const char *problem;
    /* plain and SentencePiece: some text was seen; the last character was a space; number of spaces
     * held back because the text may end after them. */
    bool begun, space_before;
    int64_t spaces;
    hr_normalize_stage stages[HR_NORMALIZER_OPS_MAX + 1];
};

/* Implements normalizer_spec (normalizer_spec.c). */
const char *hr_normalize_sentencepiece_text(hr_normalizing *work, const uint8_t *text,
                                            int64_t bytes, bool whole, uint8_t *out, int64_t room,
                                            hr_normalized *result);

#endif
