/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/normalizer.h - what is done to text before it is split: the normalizers of
 * tokenizer.json one behind the other, or the normalizer_spec of a SentencePiece model.
 *
 * Text streams through: where the windows of input and output end changes nothing. */
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
    HR_NORMALIZER_TEXT_MAX = 64, /* characters of a pattern or of what replaces it */
    HR_METASPACE = 0x2581
};

typedef enum {
    HR_NORMALIZE_PREPEND,    /* content before a text that is not empty */
    HR_NORMALIZE_REPLACE,    /* every pattern by content */
    HR_NORMALIZE_SPACES,     /* two or more spaces by content */
    HR_NORMALIZE_STRIP,      /* white space at the left, at the right */
    HR_NORMALIZE_CHARSMAP,   /* the charsmap as the package tokenizers applies it: by cluster */
    HR_NORMALIZE_COMPATIBLE, /* compatibility decompositions; NFC behind it makes NFKC */
    HR_NORMALIZE_NFC
} hr_normalize_kind;

typedef struct {
    hr_normalize_kind kind;
    uint32_t pattern[HR_NORMALIZER_TEXT_MAX], content[HR_NORMALIZER_TEXT_MAX];
    int32_t pattern_count, content_count;
    uint8_t fallback[HR_NORMALIZER_TEXT_MAX]; /* of REPLACE: Knuth, Morris and Pratt's */
    bool left, right;
    const hr_charsmap *map;
} hr_normalize_op;

/* A SentencePiece normalizer_spec. */
typedef struct {
    hr_charsmap map; /* count 0: there is none */
    bool dummy_prefix, remove_extra;
    const hr_added *user_defined; /* symbols that are left as they are */
} hr_normalize_sentencepiece;

typedef struct {
    hr_normalize_op ops[HR_NORMALIZER_OPS_MAX];
    int32_t count;
    /* Text leaves with a space for each U+2581: the last operation has replaced all spaces. */
    bool spaces_back;
    bool plain; /* a prefix at most, and spaces become U+2581 and come back */
    bool composes;
    int32_t strips;     /* operations that strip */
    bool sentencepiece; /* and no ops */
    hr_normalize_sentencepiece spec;
} hr_normalizer;

/* Completes ops[0, count): fallbacks, and what can be done at once. */
void hr_normalizer_finish(hr_normalizer *normalizer);

/* Whether every space becomes U+2581. */
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
    bool done; /* nothing is held back for want of room */
} hr_normalized;

enum { HR_NORMALIZING_ROOM = 1024 }; /* bytes of room that always let it go on */

/* Normalizes text [bytes], UTF-8 of whole characters.
 *
 *   whole  the text ends there; `done` then means that all of it is written
 *   out    [room]
 *
 * Returns null, or why it cannot go on. */
const char *hr_normalize(hr_normalizing *work, const uint8_t *text, int64_t bytes, bool whole,
                         uint8_t *out, int64_t room, hr_normalized *result);

/* The whole of a short text. Returns its bytes, -1: it does not fit. */
int64_t hr_normalize_short(hr_normalizing *work, const uint8_t *text, int64_t bytes, uint8_t *out,
                           int64_t room);

static inline bool hr_is_metaspace(const uint8_t *text)
{
    return text[0] == 0xe2 && text[1] == 0x96 && text[2] == 0x81;
}

#endif
