/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/engine.h - repeatedly merges the most frequent pair, in memory of a fixed size.
 *
 * The corpus is one array of slots, one per initial token; the first slot of a word is marked. A
 * token of several slots stores its length in its second and last slot, so both neighbors are found
 * in constant time and nothing moves. Pairs above a frequency floor have a count and a list of
 * positions. When the lists run out of room the floor rises. When the counts fall to the floor, all
 * pairs are recounted. */
#ifndef HR_TOKENIZER_TRAIN_ENGINE_H
#define HR_TOKENIZER_TRAIN_ENGINE_H

#include "headroom/status.h"
#include "tokenizer/train/token_table.h"

#define HR_SLOT_DEAD UINT32_C(0x80000000)  /* inner slot of a token, with its length */
#define HR_SLOT_FIRST UINT32_C(0x40000000) /* first slot of a word; the low bits are the token id */
#define HR_SLOT_END (HR_SLOT_DEAD - 1)     /* after the last word */
#define HR_SLOTS_MAX (INT64_C(0xfffffff0))

typedef struct {
    int64_t slots;     /* tokens plus one end mark */
    int64_t positions; /* of all lists */
    int64_t pairs;     /* that are counted at the same time */
    int64_t tokens;    /* maximum number of ids */
    int64_t leaves;    /* bytes of leaf texts */
    int64_t merges;    /* maximum number of merges */
    int64_t words;     /* distinct words with counts; 0: each word occurs once */
} hr_engine_sizes;

typedef struct {
    uint32_t left, right;
} hr_engine_merge;

/* A pair and its positions. Positions that no longer match are not removed. */
typedef struct {
    uint64_t key; /* left id << 32 | right id */
    int64_t count;
    uint32_t first, places; /* in positions; places 0: merged or refused */
} hr_engine_pair;

typedef struct {
    int64_t count; /* of the pair when this entry was last updated */
    uint32_t pair;
} hr_engine_top;

/* Changes of the pairs of one neighbor of the token being merged. */
typedef struct {
    int64_t lost, gained;
    uint32_t events, at;
} hr_engine_side;

/* Pairs grouped by count (exact below HR_LEVELS_EXACT, then logarithmic), and their occurrences. */
enum { HR_LEVELS_EXACT = 1024, HR_LEVELS = HR_LEVELS_EXACT + 53 * 64 };

typedef struct {
    int64_t pairs, occurrences;
} hr_engine_level;

typedef struct {
    int64_t vocabulary_max; /* stop at this many ids */
    int64_t least;          /* minimum count of a merge */
    int64_t characters_max; /* tokens have fewer characters; INT64_MAX: no limit */
    bool filters;           /* apply the filters of stage 2 */
} hr_engine_rules;

/* The complete state of a training. One thread per object. */
typedef struct {
    hr_engine_sizes sizes;
    hr_vocabulary vocabulary;
    uint32_t *slots;  /* [sizes.slots] */
    uint32_t *owners; /* [sizes.slots] word index of a slot; null: each word counts once */
    int64_t *counts;  /* [sizes.words] */
    uint32_t *
        /* [sizes.positions] lists, each after two words: its pair, its length; from the end
         * down: events of the current merge */
        positions;
    hr_engine_pair *pairs;
    hr_engine_top *heap;
    uint32_t *index; /* [1 << index_bits] hash table of pair + 1 by key; 0: free */
    hr_engine_side *sides[2];
    uint32_t *touched[2];
    hr_engine_merge *merges;
    hr_engine_level *levels; /* [HR_LEVELS] */
    int32_t index_bits;

    /* From here on: saved in the state file besides the arrays. */
    hr_engine_rules rules;
    int64_t slot_count, pair_count, heap_count, merge_count, position_count;
    uint32_t touched_count[2];
    int64_t floor_count; /* pairs with a lower count are not tracked, */
    uint64_t floor_key;  /* nor pairs with this count and a larger key */
    int64_t recounts;
} hr_engine;

/* Bytes of the corpus, and of everything else. Pure. */
int64_t hr_engine_corpus_bytes(const hr_engine_sizes *sizes);
int64_t hr_engine_bytes(const hr_engine_sizes *sizes);

/* Places the corpus in the region: slots, and owners and counts if words have counts. Call
 * first. */
void hr_engine_place_corpus(hr_engine *engine, hr_region *region, const hr_engine_sizes *sizes);

/* Places the other arrays in the region, empty. */
void hr_engine_place(hr_engine *engine, hr_region *region);

/* Counts all pairs of the corpus, which the caller wrote to slots [slot_count] (and owners,
 * counts), and fills heap and lists. `floor`: minimum count to track; 1: all that fit. */
HR_MUST_CHECK hr_status hr_engine_count(hr_engine *engine, int64_t floor, hr_error *err);

/* Records a merge that is already applied in the corpus. */
void hr_engine_inherit(hr_engine *engine, uint32_t left, uint32_t right);

/* Applies the best merge; *made false: no merge is left.
 * Errors  NO_FIT  too many pairs with equal counts
 *         BROKEN  two pairs made the same token, which is impossible: see the definition. */
HR_MUST_CHECK hr_status hr_engine_step(hr_engine *engine, bool *made, hr_error *err);

#endif
