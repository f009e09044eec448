/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/normalizer.h - normalization of text before pre-tokenization: a sequence of
 * tokenizer.json normalizers, or the normalizer_spec of a SentencePiece model.
 *
 * Text is streamed: boundaries of the input and output windows do not change the result. */
#ifndef HR_TOKENIZER_NORMALIZER_H
#define HR_TOKENIZER_NORMALIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"
#include "headroom/status.h"
#include "tokenizer/added.h"
#include "tokenizer/charsmap.h"

enum {
    HR_NORMALIZER_OPS_MAX = 12,
    HR_NORMALIZER_STRIPS_MAX = 2,
    HR_NORMALIZER_TEXT_MAX = 64, /* characters of a pattern or its replacement */
    HR_METASPACE = 0x2581
};

typedef enum {
    HR_NORMALIZE_PREPEND,    /* insert content before a text that is not empty */
    HR_NORMALIZE_REPLACE,    /* replace every pattern with content */
    HR_NORMALIZE_SPACES,     /* replace two or more spaces with content */
    HR_NORMALIZE_STRIP,      /* remove white space at the left end, the right end */
    HR_NORMALIZE_CHARSMAP,   /* the charsmap by grapheme cluster, as in the package tokenizers */
    HR_NORMALIZE_COMPATIBLE, /* compatibility decomposition; NFKC is this followed by NFC */
    HR_NORMALIZE_NFC
} hr_normalize_kind;

typedef struct {
    hr_normalize_kind kind;
    uint32_t pattern[HR_NORMALIZER_TEXT_MAX], content[HR_NORMALIZER_TEXT_MAX];
    int32_t pattern_count, content_count;
    uint8_t fallback[HR_NORMALIZER_TEXT_MAX]; /* REPLACE: failure function of Knuth-Morris-Pratt */
    bool left, right;
    const hr_charsmap *map;
} hr_normalize_op;

/* A SentencePiece normalizer_spec. */
typedef struct {
    hr_charsmap map; /* count 0: none */
    bool dummy_prefix, remove_extra;
    const hr_added *user_defined; /* symbols that are not normalized */
} hr_normalize_sentencepiece;

typedef struct {
    hr_normalize_op ops[HR_NORMALIZER_OPS_MAX];
    int32_t count;
    /* The output has a space for each U+2581: the last operation has replaced all spaces. */
    bool spaces_back;
    bool plain; /* only an optional prefix and the replacement of spaces by U+2581 and back */
    bool composes;
    int32_t strips;     /* number of STRIP operations */
    bool sentencepiece; /* use spec; there are no ops */
    hr_normalize_sentencepiece spec;
} hr_normalizer;

/* Completes ops[0, count): computes the failure functions and the flags. */
void hr_normalizer_finish(hr_normalizer *normalizer);

/* Whether the operation replaces every space with U+2581. */
bool hr_normalizer_replaces_spaces(const hr_normalize_op *op);

bool hr_normalizer_acts(const hr_normalizer *normalizer);

typedef struct hr_normalizing hr_normalizing;

int64_t hr_normalizing_bytes(const hr_normalizer *normalizer);

/* Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_normalizing_place(hr_normalizing **work, hr_region *region,
                                             const hr_normalizer *normalizer, hr_error *err);

/* Begins a text. */
void hr_normalizing_begin(hr_normalizing *work);

typedef struct {
    int64_t taken, written;
    bool done; /* all input is consumed and no output is waiting for room */
} hr_normalized;

/* Normalizes text [bytes], UTF-8 of whole characters.
 *
 *   whole  the text ends there; `done` then means that all output is written
 *   out    [room]
 *
 * Returns null, or why the text cannot be normalized. */
const char *hr_normalize(hr_normalizing *work, const uint8_t *text, int64_t bytes, bool whole,
                         uint8_t *out, int64_t room, hr_normalized *result);

/* Normalizes a complete short text. Returns its bytes; -1: it does not fit. */
int64_t hr_normalize_short(hr_normalizing *work, const uint8_t *text, int64_t bytes, uint8_t *out,
                           int64_t room);

static inline bool hr_is_metaspace(const uint8_t *text)
{
    return text[0] == 0xe2 && text[1] == 0x96 && text[2] == 0x81;
}

#endif
