/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/bpe.h - byte pair encoding: tokens, merges, and the tokens of a piece.
 *
 * The encoding of a piece is what merging the pair of lowest rank, leftmost first, ends in. It has
 * two properties that make it fast: a sequence of tokens is the encoding of its text if and only if
 * every two neighbours are that of theirs, and so the encoding of a text begins with that of each
 * of its beginnings that ends where a token does. Tokens are therefore found from left to right:
 * the longest that may follow, else a shorter one, else a step back; no position is looked at
 * twice. */
#ifndef HR_TOKENIZER_BPE_H
#define HR_TOKENIZER_BPE_H

#include <emmintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"
#include "headroom/status.h"

enum {
    HR_BPE_IDS_MAX = 1 << 21,   /* an id has 21 bits in a key, */
    HR_BPE_RANKS_MAX = 1 << 22, /* a rank 22 */
    HR_BPE_NONE = -1,
    HR_BPE_TOKEN_BYTES_MAX = 65535,
    HR_BPE_SCORED_BYTES_MAX = 8192 /* SentencePiece takes fewer than 8,000 */
};

/* How a token comes to be: the last merge of its own text. */
typedef struct {
    int32_t rank; /* HR_BPE_BYTE: a byte, of which nothing is merged; HR_BPE_NEVER: does not */
    uint32_t left, right;
} hr_bpe_origin;

enum { HR_BPE_BYTE = -1, HR_BPE_NEVER = INT32_MAX };

/* A place in the tree of tokens: a text that begins some, up to where they part. What a step looks
 * at is in half a line of the cache. */
typedef struct {
    uint32_t children; /* index of the first; they lie side by side, ordered by their first bytes */
    int32_t token;     /* whose text ends here; HR_BPE_NONE */
    uint32_t text;     /* an example of the text, in the table of texts */
    uint16_t depth;    /* bytes of it */
    uint16_t count;    /* of children */
    union {
        uint8_t labels[16]; /* the first bytes of up to 16 children; */
        uint32_t set;       /* of more: index of the set of them */
    };
} hr_bpe_node;

typedef struct {
    uint64_t bits[4];
} hr_bpe_set;

/* The longest token that begins another, and the bytes of that other. */
typedef struct {
    int32_t shorter; /* HR_BPE_NONE: it is a byte, or never comes to be */
    int32_t bytes;
} hr_bpe_token;

typedef struct {
    int64_t ids, pairs, text_bytes; /* most of them */
    bool whole_first;               /* what is a token as a whole is not merged: ignore_merges */
} hr_bpe_size;

/* What tokens are made of, and how. */
typedef enum {
    HR_BPE_BYTES,      /* of bytes, by merges */
    HR_BPE_RANKS,      /* of bytes; ids are ranks, and any two tokens that are one behind the other
                          merge */
    HR_BPE_CHARACTERS, /* of characters, by merges */
    HR_BPE_SCORES,     /* of characters, as SentencePiece has it: any two, by score */
    HR_BPE_TREE        /* not at all: there is only the tree of all tokens (Unigram) */
} hr_bpe_kind;

typedef struct {
    hr_bpe_size size;
    hr_bpe_kind kind;
    /* A character without a token: its bytes have, or `unknown` stands for it. */
    bool falls_back, whole_first;
    int32_t unknown, fallback[256];
    /* HR_BPE_SCORES, while tables are made: ids by falling score and their ranks; equal scores have
     * one rank, and then a merge is found by its text. */
    const int32_t *by_score, *score_ranks;
    int32_t scored;
    bool ties;
    bool orderly;          /* every token is made of such as come before it: what the walk needs */
    int32_t words_rank;    /* no merge before it makes a token of more than one word */
    bool by_words;         /* and there are many before it, and some behind */
    bool bytes_missing;    /* of some bytes there is no token: they are passed over */
    int32_t longest_bytes; /* of a token */
    int32_t byte_id[256];  /* HR_BPE_NONE: there is none */
    uint32_t *text_at;     /* [ids + 1] */
    uint8_t *text;
    uint8_t *present; /* [ids]: HR_BPE_... */
    hr_bpe_origin *origins;
    hr_bpe_token *tokens; /* [ids] */
    uint64_t *pairs;      /* [1 << pair_bits] left, right, rank; 0: free */
    uint64_t *maybe;      /* [1 << filter_bits] bits: no pair whose bit is 0 is merged */
    uint32_t *results;    /* [pairs] by rank: what a merge makes */
    int32_t *slots;       /* [1 << slot_bits] size.whole_first: ids by their texts */
    hr_bpe_node *nodes;
    hr_bpe_set *sets;
    int32_t *starts; /* [65536] by the first two bytes: where the tree goes on; 0: nowhere */
    int32_t pair_bits, filter_bits, slot_bits, node_count, set_count;
} hr_bpe;

/* Bytes that tables of such a size need, and bytes of scratch that building needs more. Pure. */
int64_t hr_bpe_bytes(hr_bpe_size size);
int64_t hr_bpe_scratch_bytes(hr_bpe_size size);

/* Empty tables. Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_bpe_place(hr_bpe *bpe, hr_region *region, hr_bpe_size size,
                                     hr_error *err);

/* The texts of ids have been put into text and text_at by the caller, and `present` says which of
 * them are made of bytes: HR_BPE_PLAIN. */
enum { HR_BPE_ABSENT, HR_BPE_PLAIN, HR_BPE_OTHER };

/* A merge; a later one of the same pair takes the place of the earlier. false: there is no room. */
bool hr_bpe_add_merge(hr_bpe *bpe, uint32_t left, uint32_t right, int32_t rank, uint32_t result);

/* Builds all that is derived. Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_bpe_finish(hr_bpe *bpe, hr_bpe_kind kind, hr_region scratch,
                                      hr_error *err);

/* Rank of a pair, HR_BPE_NONE: it is not merged. */
int32_t hr_bpe_rank(const hr_bpe *bpe, uint32_t left, uint32_t right);

/* Whether `right` behind `left` stay what they are, of merges before rank `limit`. Orderly tables
 * only. */
bool hr_bpe_stays(const hr_bpe *bpe, uint32_t left, uint32_t right, int32_t limit);

/* Whether two bytes are the end of a word and the beginning of another: a space behind a visible
 * character of ASCII. */
static inline bool hr_bpe_parts(uint8_t left, uint8_t right)
{
    return right == ' ' && left > ' ' && left < 0x7f;
}

/* The id whose text is this, HR_BPE_NONE: none. Needs whole_first. */
int32_t hr_bpe_find(const hr_bpe *bpe, const uint8_t *text, int64_t bytes);

static inline int64_t hr_bpe_token_bytes(const hr_bpe *bpe, uint32_t id)
{
    return (int64_t)bpe->text_at[id + 1] - bpe->text_at[id];
}

/* Which child of a node begins with a byte; 0: none. */
static inline int32_t hr_bpe_child(const hr_bpe *bpe, const hr_bpe_node *node, uint8_t label)
{
    if (node->count <= 16) {
        const __m128i labels = _mm_loadu_si128((const __m128i *)(const void *)node->labels);
        const __m128i equal = _mm_cmpeq_epi8(labels, _mm_set1_epi8((char)label));
        const uint32_t mask = (uint32_t)_mm_movemask_epi8(equal) & ((1u << node->count) - 1);
        return mask ? (int32_t)node->children + __builtin_ctz(mask) : 0;
    }
    const uint64_t *bits = bpe->sets[node->set].bits;
    const int32_t word = label >> 6;
    const uint64_t bit = UINT64_C(1) << (label & 63);
    if (!(bits[word] & bit)) return 0;
    int32_t before = __builtin_popcountll(bits[word] & (bit - 1));
    for (int32_t i = 0; i < word; i++) before += __builtin_popcountll(bits[i]);
    return (int32_t)node->children + before;
}

/* ---- encoding */

typedef struct hr_bpe_walk hr_bpe_walk;

/* What one thread needs for pieces of up to piece_bytes. */
int64_t hr_bpe_walk_bytes(const hr_bpe *bpe, int64_t piece_bytes);
HR_MUST_CHECK hr_status hr_bpe_walk_place(hr_bpe_walk **walk, hr_region *region, const hr_bpe *bpe,
                                          int64_t piece_bytes, hr_error *err);

/* The tokens of a piece.
 *
 *   text  piece [bytes]; 1 <= bytes <= what hr_bpe_piece_bytes says
 *   room  bytes that can be read, bytes or more: 16 are read at once where they are there
 *   ids   out; the walk's own, until the next piece. Their number is returned. */
int64_t hr_bpe_encode(hr_bpe_walk *walk, const uint8_t *text, int64_t bytes, int64_t room,
                      const uint32_t **ids);

/* The same by merging pairs as they are defined, for tables that are not orderly and for tests. */
int64_t hr_bpe_encode_ref(hr_bpe_walk *walk, const uint8_t *text, int64_t bytes,
                          const uint32_t **ids);

/* The longest piece that a walk for `piece_bytes` takes: fewer where tables are not orderly. */
int64_t hr_bpe_piece_bytes(const hr_bpe *bpe, int64_t piece_bytes);

#endif
