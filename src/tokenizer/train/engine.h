/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/engine.h - merges the most frequent pair, again and again, in memory whose size
 * is fixed.
 *
 * The corpus is one array of slots, one a token, and the first of a word is marked. A token over
 * several slots has its length in the second and the last, so that both neighbours are found at
 * once and nothing ever moves. Pairs above a floor have a count and lists of where they are; when
 * those run out of room the floor rises, and when the counts have come down to the floor, all are
 * counted anew. */
#ifndef HR_TOKENIZER_TRAIN_ENGINE_H
#define HR_TOKENIZER_TRAIN_ENGINE_H

#include "headroom/status.h"
#include "tokenizer/train/token_table.h"

#define HR_SLOT_DEAD UINT32_C(0x80000000)  /* of a span, which has its length here */
#define HR_SLOT_FIRST UINT32_C(0x40000000) /* of a word, with the token's id */
#define HR_SLOT_END (HR_SLOT_DEAD - 1)     /* behind the last word */
#define HR_SLOTS_MAX (INT64_C(0xfffffff0))

typedef struct {
    int64_t slots;     /* tokens, and one more behind the last */
    int64_t positions; /* of lists */
    int64_t pairs;     /* that are counted at one time */
    int64_t tokens;    /* ids, at most */
    int64_t leaves;    /* bytes of the texts of leaves */
    int64_t merges;    /* merges, at most */
    int64_t words;     /* distinct words with counts; 0: every word is there once */
} hr_engine_sizes;

typedef struct {
    uint32_t left, right;
} hr_engine_merge;

/* A pair, and where it is: or was, what has gone since is not taken out. */
typedef struct {
    uint64_t key; /* left id << 32 | right id */
    int64_t count;
    uint32_t first, places; /* in positions; places 0: merged, or refused */
} hr_engine_pair;

typedef struct {
    int64_t count; /* of the pair when it was last looked at */
    uint32_t pair;
} hr_engine_top;

/* One neighbour of what is being merged: the pairs that it is in lose and gain. */
typedef struct {
    int64_t lost, gained;
    uint32_t events, at;
} hr_engine_side;

/* Pairs of like counts, and how often they are there. */
enum { HR_LEVELS_EXACT = 1024, HR_LEVELS = HR_LEVELS_EXACT + 53 * 64 };

typedef struct {
    int64_t pairs, occurrences;
} hr_engine_level;

typedef struct {
    int64_t vocabulary_max; /* ids to stop at */
    int64_t least;          /* count that a merge must have */
    int64_t characters_max; /* a token has fewer; INT64_MAX: no limit */
    bool filters;           /* those of a second stage */
} hr_engine_rules;

/* Everything that a training is at one moment. One thread per object. */
typedef struct {
    hr_engine_sizes sizes;
    hr_vocabulary vocabulary;
    uint32_t *slots;     /* [sizes.slots] */
    uint32_t *owners;    /* [sizes.slots] word of a slot; null: every word counts once */
    int64_t *counts;     /* [sizes.words] */
    uint32_t *positions; /* [sizes.positions] lists, each behind two words: who has it, its length;
                            from the end down: events of the merge at work */
    hr_engine_pair *pairs;
    hr_engine_top *heap;
    uint32_t *index; /* [1 << index_bits] pair + 1 by key; 0: free */
    hr_engine_side *sides[2];
    uint32_t *touched[2];
    hr_engine_merge *merges;
    hr_engine_level *levels; /* [HR_LEVELS] */
    int32_t index_bits;

    /* From here on: what a state file has beside the arrays. */
    hr_engine_rules rules;
    int64_t slot_count, pair_count, heap_count, merge_count, position_count;
    uint32_t touched_count[2];
    int64_t floor_count; /* pairs below are not known ... */
    uint64_t floor_key;  /* ... nor those of that count with a larger key */
    int64_t recounts;
} hr_engine;

/* Of the corpus, and of everything else. Pure. */
int64_t hr_engine_corpus_bytes(const hr_engine_sizes *sizes);
int64_t hr_engine_bytes(const hr_engine_sizes *sizes);

/* The corpus in the region: slots, and owners and counts where words have them. Comes first. */
void hr_engine_place_corpus(hr_engine *engine, hr_region *region, const hr_engine_sizes *sizes);

/* The other arrays in the region; nothing in them. */
void hr_engine_place(hr_engine *engine, hr_region *region);

/* Counts all pairs of the corpus, which the caller wrote into slots [slot_count] (and owners,
 * counts), and fills heap and lists; `floor`: at least so many, 1 for all that fit. */
HR_MUST_CHECK hr_status hr_engine_count(hr_engine *engine, int64_t floor, hr_error *err);

/* Notes a merge that was made when the corpus was written. */
void hr_engine_inherit(hr_engine *engine, uint32_t left, uint32_t right);

/* Makes one merge, the best; *made false: there is no more to be made.
 * Errors  NO_FIT  pairs of equal counts are more than there is room for
 *         BROKEN  two pairs made the same token, which cannot be: see the definition. */
HR_MUST_CHECK hr_status hr_engine_step(hr_engine *engine, bool *made, hr_error *err);

#endif
