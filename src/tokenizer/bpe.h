/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/bpe.h - byte pair encoding: tokens, merges, and encoding of a piece.
 *
 * BPE merges the adjacent pair with the lowest rank, the leftmost first, until no pair can merge.
 * Two properties make encoding fast. A token sequence is the encoding of its text if and only if
 * every two adjacent tokens are the encoding of their text. Therefore the encoding of a text starts
 * with the encoding of each of its prefixes that ends at a token boundary. So tokens are found from
 * left to right: the longest that may follow, else a shorter one, else one step back. No position
 * is tried twice. */
#ifndef HR_TOKENIZER_BPE_H
#define HR_TOKENIZER_BPE_H

#include <emmintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"
#include "headroom/status.h"

enum {
    HR_BPE_IDS_MAX = 1 << 21,   /* a pair key stores ids in 21 bits */
    HR_BPE_RANKS_MAX = 1 << 22, /* and ranks in 22 bits */
    HR_BPE_NONE = -1,
    HR_BPE_TOKEN_BYTES_MAX = 65535,
    HR_BPE_SCORED_BYTES_MAX = 8192 /* SentencePiece allows fewer than 8,000 */
};

/* The last merge that makes a token from its own text. */
typedef struct {
    /* HR_BPE_BYTE: a single unit, made by no merge; HR_BPE_NEVER: no merge sequence makes it */
    int32_t rank;
    uint32_t left, right;
} hr_bpe_origin;

enum { HR_BPE_BYTE = -1, HR_BPE_NEVER = INT32_MAX };

/* A node of the radix tree of token texts: a common prefix of some tokens. The fields that a search
 * step reads fit in half a cache line. */
typedef struct {
    uint32_t children; /* index of the first child; children are contiguous, sorted by first byte */
    int32_t token;     /* token whose text ends here; HR_BPE_NONE: none */
    uint32_t text;     /* offset of an example of the text in hr_bpe.text */
    uint16_t depth;    /* length of the text in bytes */
    uint16_t count;    /* number of children */
    union {
        uint8_t labels[16]; /* count <= 16: the first bytes of the children */
        uint32_t set;       /* count > 16: index of their set in hr_bpe.sets */
    };
} hr_bpe_node;

typedef struct {
    uint64_t bits[4];
} hr_bpe_set;

/* The longest token that is a proper prefix of this one, and the bytes of this one. */
typedef struct {
    int32_t shorter; /* HR_BPE_NONE: no shorter token */
    int32_t bytes;
} hr_bpe_token;

typedef struct {
    int64_t ids, pairs, text_bytes; /* upper limits */
    bool whole_first;               /* ignore_merges: a piece that is a token is not merged */
} hr_bpe_size;

/* The units that tokens consist of, and the source of the merges. */
typedef enum {
    HR_BPE_BYTES, /* bytes; merges from a list */
    /* bytes; ids are ranks, and any two adjacent tokens whose text is a token merge */
    HR_BPE_RANKS,
    HR_BPE_CHARACTERS, /* characters; merges from a list */
    HR_BPE_SCORES,     /* characters; SentencePiece: any two adjacent pieces may merge, by score */
    HR_BPE_TREE        /* no merges: only the tree of all tokens (Unigram) */
} hr_bpe_kind;

typedef struct {
    hr_bpe_size size;
    hr_bpe_kind kind;
    /* falls_back: a character without a token becomes the tokens of its bytes; otherwise it becomes
     * `unknown`. */
    bool falls_back, whole_first;
    int32_t unknown, fallback[256];
    /* HR_BPE_SCORES, during construction: ids by descending score and their ranks. Equal scores
     * share one rank; then the result of a merge is looked up by its text. */
    const int32_t *by_score, *score_ranks;
    int32_t scored;
    bool ties;
    /* every token is made only of tokens with lower ranks; left-to-right encoding needs this */
    bool orderly;
    int32_t words_rank; /* no merge of a lower rank makes a token of more than one word */
    bool by_words; /* encode word by word first: many merges are below words_rank, some are above */
    bool bytes_missing;    /* some bytes have no token; encoding skips them */
    int32_t longest_bytes; /* of any token */
    int32_t byte_id[256];  /* HR_BPE_NONE: no token */
    uint32_t *text_at;     /* [ids + 1] offsets in text */
    uint8_t *text;
    uint8_t *present; /* [ids] HR_BPE_ABSENT, HR_BPE_PLAIN or HR_BPE_OTHER */
    hr_bpe_origin *origins;
    hr_bpe_token *tokens; /* [ids] */
    uint64_t *pairs;      /* [1 << pair_bits] hash table of left, right, rank; 0: free */
    uint64_t *maybe;      /* [1 << filter_bits] Bloom filter: a pair whose bit is 0 is not merged */
    uint32_t *results;    /* [pairs] by rank: the token that the merge makes */
    int32_t *slots;       /* [1 << slot_bits] size.whole_first: hash table of ids by text */
    hr_bpe_node *nodes;
    hr_bpe_set *sets;
    int32_t *starts; /* [65536] by the first two bytes: the node to continue at; 0: none */
    int32_t pair_bits, filter_bits, slot_bits, node_count, set_count;
} hr_bpe;

/* Bytes of the tables for a size, and bytes of scratch that construction needs in addition.
 * Pure. */
int64_t hr_bpe_bytes(hr_bpe_size size);
int64_t hr_bpe_scratch_bytes(hr_bpe_size size);

/* Places empty tables. Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_bpe_place(hr_bpe *bpe, hr_region *region, hr_bpe_size size,
                                     hr_error *err);

/* The caller writes the texts of all ids to text and text_at, and marks in `present` the ids that
 * merges can make: HR_BPE_PLAIN. */
enum { HR_BPE_ABSENT, HR_BPE_PLAIN, HR_BPE_OTHER };

/* Adds a merge. A later merge of the same pair replaces the earlier one. Returns false when the
 * table is full. */
bool hr_bpe_add_merge(hr_bpe *bpe, uint32_t left, uint32_t right, int32_t rank, uint32_t result);

/* Builds all derived tables. Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_bpe_finish(hr_bpe *bpe, hr_bpe_kind kind, hr_region scratch,
                                      hr_error *err);

/* Rank of a pair; HR_BPE_NONE: not merged. */
int32_t hr_bpe_rank(const hr_bpe *bpe, uint32_t left, uint32_t right);

/* Whether tokens `left` and `right` stay separate when their joined text is encoded with the merges
 * of rank below `limit`. Needs orderly tables. */
bool hr_bpe_is_stable(const hr_bpe *bpe, uint32_t left, uint32_t right, int32_t limit);

/* Whether a word ends between these two bytes: a space after a visible ASCII character. */
static inline bool hr_bpe_ends_word(uint8_t left, uint8_t right)
{
    return right == ' ' && left > ' ' && left < 0x7f;
}

/* The id with this text; HR_BPE_NONE: none. Needs whole_first. */
int32_t hr_bpe_find(const hr_bpe *bpe, const uint8_t *text, int64_t bytes);

static inline int64_t hr_bpe_token_bytes(const hr_bpe *bpe, uint32_t id)
{
    return (int64_t)bpe->text_at[id + 1] - bpe->text_at[id];
}

/* The child of a node that starts with `label`; 0: none. */
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

typedef struct hr_bpe_workspace hr_bpe_workspace;

/* Bytes of workspace for one thread and pieces of up to piece_bytes. */
int64_t hr_bpe_workspace_bytes(const hr_bpe *bpe, int64_t piece_bytes);
HR_MUST_CHECK hr_status hr_bpe_workspace_place(hr_bpe_workspace **work, hr_region *region,
                                               const hr_bpe *bpe, int64_t piece_bytes,
                                               hr_error *err);

/* Encodes a piece.
 *
 *   text  [bytes]; 1 <= bytes <= hr_bpe_piece_bytes
 *   room  readable bytes at text, at least `bytes`; 16 are loaded at once where possible
 *   ids   out; owned by the workspace, valid until the next piece
 *
 * Returns the number of ids. */
int64_t hr_bpe_encode(hr_bpe_workspace *work, const uint8_t *text, int64_t bytes, int64_t room,
                      const uint32_t **ids);

/* Encodes by merging pairs as BPE defines it. For tables that are not orderly, and for tests. */
int64_t hr_bpe_encode_ref(hr_bpe_workspace *work, const uint8_t *text, int64_t bytes,
                          const uint32_t **ids);

/* The longest piece that a workspace for `piece_bytes` accepts: shorter if tables are not
 * orderly. */
int64_t hr_bpe_piece_bytes(const hr_bpe *bpe, int64_t piece_bytes);

#endif
