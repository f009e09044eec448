/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/stage.h - one stage of a training: from its text to an engine that can merge.
 *
 * Memory: the regions for settings, reading and counting grow while the text is counted, never past
 * the budget. Then the plan is known. The corpus is written, the regions for reading and counting
 * are freed, and the engine gets its arena. */
#ifndef HR_TOKENIZER_TRAIN_STAGE_H
#define HR_TOKENIZER_TRAIN_STAGE_H

#include "dev/pool.h"
#include "headroom/tokenize_train.h"
#include "mem/memory.h"
#include "tokenizer/train/alphabet.h"
#include "tokenizer/train/borders.h"
#include "tokenizer/train/engine.h"
#include "tokenizer/train/feed.h"
#include "tokenizer/train/inherit.h"
#include "tokenizer/train/pipeline.h"
#include "tokenizer/train/word_counts.h"

/* A direct-mapped cache from atoms of up to 15 bytes to their tokens; it avoids a lookup in the
 * table of atoms. */
enum { HR_ATOM_PLACE_BITS = 14 };

typedef struct {
    uint64_t key[2]; /* bytes of the atom, and their number in the last byte; 0: free */
    uint64_t start;
    uint32_t tokens;
} hr_atom_place;

/* The state of a thread for its part of the text. */
typedef struct {
    struct hr_stage *stage;
    hr_feed feed;
    hr_word_counts counts;     /* of words; in stage 2 of atoms */
    int64_t words;             /* stage 2: words so far */
    int64_t atom_at;           /* stage 2: bytes of the current word that are counted */
    hr_atom_place *places;     /* stage 2: [1 << HR_ATOM_PLACE_BITS] */
    int64_t slot_at, slot_end; /* stage 2: index of its next slot, and end of its part */
    bool full;                 /* the table of counts is full */
    bool changed;              /* the text differs from what was counted */
    hr_status status;
    hr_error err;
} hr_stage_worker;

typedef struct hr_stage {
    const hr_tokenize_train_request *request;
    hr_tokenize_train_result *result;
    int32_t number; /* 1 or 2 */
    int32_t threads;
    const char *merges_path; /* stage 2: merges.txt with the inherited merges */
    uint64_t merges_hash;    /* of its bytes */

    hr_memory memory;
    hr_pool pool;
    hr_account account;
    hr_region settings;
    hr_region cutting, reading, counting, merged, atoms,
        bordering; /* freed once the corpus is written */
    hr_pipeline pipeline;
    hr_pretokenizer *pretokenizer;
    hr_feed_source *source;
    hr_stage_worker *workers; /* [threads] */
    char *output;             /* [HR_OUTPUT_BYTES] */
    hr_word_counts words;     /* of all threads */
    hr_alphabet alphabet;
    hr_inherited inherited;
    uint8_t *there;        /* [inherited] whether the pair of a merge occurred */
    uint64_t *atom_starts; /* [words + 1] offsets in atom_tokens */
    uint32_t *atom_tokens;
    uint32_t *final_ids; /* [256 + inherited] final id by inherited id */
    int64_t tokens;      /* stage 2: tokens of the text before cutting */
    int64_t token_most;  /* occurrences of the most frequent token */
    hr_borders borders;
    int64_t cut;      /* the text is cut at borders with a smaller count; 0: not cut */
    int64_t cut_most; /* upper limit of `cut`, because merges fell to a higher one; 0: none */

    hr_engine_sizes sizes;
    hr_engine engine;
    bool sealed;
} hr_stage;

/* Opens memory and settings, and scans the text: stage->source. */
HR_MUST_CHECK hr_status hr_stage_open(hr_stage *stage, hr_error *err);

/* Counts the text and computes stage->sizes. */
HR_MUST_CHECK hr_status hr_stage_count(hr_stage *stage, hr_error *err);

/* Plans the memory of the process with an engine of stage->sizes, and reports the plan. Allocates
 * the corpus, writes the text to it unless `resumed`, and frees what only that needed. Then
 * allocates the arena, in which all arrays but the corpus are empty. Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_stage_admit(hr_stage *stage, bool resumed, hr_error *err);

/* Adds the alphabet and the inherited merges, converts the corpus to final ids, and counts its
 * pairs. */
HR_MUST_CHECK hr_status hr_stage_build(hr_stage *stage, hr_error *err);

void hr_stage_close(hr_stage *stage);

/* Implementations of the steps for stage 1 and 2 (count_words.c, count_atoms.c). */
bool hr_stage_count_word(void *worker, const uint8_t *word, int64_t bytes);
bool hr_stage_count_atoms(void *worker, const uint8_t *word, int64_t bytes);
HR_MUST_CHECK hr_status hr_stage_size_words(hr_stage *stage, hr_error *err);
HR_MUST_CHECK hr_status hr_stage_size_atoms(hr_stage *stage, hr_error *err);
HR_MUST_CHECK hr_status hr_stage_write_words(hr_stage *stage, hr_error *err);
HR_MUST_CHECK hr_status hr_stage_write_atoms(hr_stage *stage, hr_error *err);
HR_MUST_CHECK hr_status hr_stage_build_words(hr_stage *stage, hr_error *err);
HR_MUST_CHECK hr_status hr_stage_build_atoms(hr_stage *stage, hr_error *err);

/* ---- tokenizer/train/stage_text.c */

/* Opens a region for tables of these capacities and moves the tables of the workers to it. Errors
 * NO_FIT. */
HR_MUST_CHECK hr_status hr_stage_tables(hr_stage *stage,
                                        const hr_word_room rooms[HR_POOL_THREADS_MAX],
                                        hr_error *err);

/* Runs all feeds to their ends with hr_feed.word = `word`, and grows full tables in between.
 * Reports progress as `work`. Errors as hr_feed_run, NO_FIT, INTERRUPTED. */
HR_MUST_CHECK hr_status hr_stage_feed(hr_stage *stage, const char *work,
                                      bool (*word)(void *, const uint8_t *, int64_t),
                                      hr_error *err);

/* Opens a region if the budget allows it. */
HR_MUST_CHECK hr_status hr_stage_region(hr_stage *stage, const char *name, int64_t bytes,
                                        hr_region *region, hr_error *err);

/* Builds the alphabet and checks that it fits the vocabulary with the special tokens. Errors
 * USAGE. */
HR_MUST_CHECK hr_status hr_stage_alphabet(hr_stage *stage, const int64_t counts[256],
                                          hr_error *err);

/* Reports progress. Errors INTERRUPTED. */
HR_MUST_CHECK hr_status hr_stage_report(const hr_stage *stage, const char *work, int64_t done,
                                        int64_t all, hr_error *err);

#endif
