/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/stage.h - one stage of a training, from its text to an engine that is ready to
 * merge.
 *
 * Memory: regions for the settings, for reading and for counting, which grow while the text is
 * counted and never past the budget; then the plan is known. The text is written down, the regions
 * for reading and counting go, and the engine gets its arena. */
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

/* Where the tokens of an atom of up to 15 bytes are, to be found without a look at the table. */
enum { HR_ATOM_PLACE_BITS = 14 };

typedef struct {
    uint64_t key[2]; /* bytes of the atom, and how many in the last; 0: none */
    uint64_t start;
    uint32_t tokens;
} hr_atom_place;

/* What a thread does with its part of the text. */
typedef struct {
    struct hr_stage *stage;
    hr_feed feed;
    hr_word_counts counts;     /* of words; stage 2: of atoms */
    int64_t words;             /* stage 2: told so far */
    int64_t atom_at;           /* stage 2: bytes of the word at work that are counted */
    hr_atom_place *places;     /* stage 2: [1 << HR_ATOM_PLACE_BITS] */
    int64_t slot_at, slot_end; /* stage 2: where its next slot goes, and where its part ends */
    bool full;                 /* there is no room for a word */
    bool changed;              /* the text is not what was counted */
    hr_status status;
    hr_error err;
} hr_stage_worker;

typedef struct hr_stage {
    const hr_tokenize_train_request *request;
    hr_tokenize_train_result *result;
    int32_t number; /* 1 or 2 */
    int32_t threads;
    const char *merges_path; /* stage 2: whose first lines are inherited */

    hr_memory memory;
    hr_pool pool;
    hr_plan plan;
    hr_region settings;
    hr_region cutting, reading, counting, merged, atoms, bordering; /* until the text is written */
    hr_pipeline pipeline;
    hr_pretokenizer *pretokenizer;
    hr_feed_source *source;
    hr_stage_worker *workers; /* [threads] */
    char *output;             /* [HR_OUTPUT_BYTES] */
    hr_word_counts words;     /* of all threads */
    hr_alphabet alphabet;
    hr_inherited inherited;
    uint8_t *there;        /* [inherited] whether a merge was there to be made */
    uint64_t *atom_starts; /* [words + 1] in atom_tokens */
    uint32_t *atom_tokens;
    uint32_t *final_ids; /* [256 + inherited] of inherited ids */
    int64_t tokens;      /* of the text in stage 2, before any is cut out */
    int64_t token_most;  /* occurrences of the most frequent token */
    hr_borders borders;
    int64_t cut;      /* the text is cut at borders with a smaller count; 0: it is not */
    int64_t cut_most; /* not above, because merges came down to it; 0: any */

    hr_engine_sizes sizes;
    hr_engine engine;
    bool sealed;
} hr_stage;

/* Opens memory and settings, and looks at the text: stage->source. */
HR_MUST_CHECK hr_status hr_stage_open(hr_stage *stage, hr_error *err);

/* Counts the text: stage->sizes. */
HR_MUST_CHECK hr_status hr_stage_count(hr_stage *stage, hr_error *err);

/* Plans the process with an engine of stage->sizes, and tells the plan. Takes the memory of the
 * corpus, writes the text into it unless it is `resumed`, and gives back what only that needed;
 * then takes the arena: all but the corpus is empty. Errors NO_FIT. */
HR_MUST_CHECK hr_status hr_stage_admit(hr_stage *stage, bool resumed, hr_error *err);

/* Makes the alphabet and what is inherited, gives the corpus their ids, and counts its pairs. */
HR_MUST_CHECK hr_status hr_stage_build(hr_stage *stage, hr_error *err);

void hr_stage_close(hr_stage *stage);

/* Parts of these, by stage (count_words.c, count_atoms.c). */
bool hr_stage_count_word(void *worker, const uint8_t *word, int64_t bytes);
bool hr_stage_count_atoms(void *worker, const uint8_t *word, int64_t bytes);
HR_MUST_CHECK hr_status hr_stage_size_words(hr_stage *stage, hr_error *err);
HR_MUST_CHECK hr_status hr_stage_size_atoms(hr_stage *stage, hr_error *err);
HR_MUST_CHECK hr_status hr_stage_write_words(hr_stage *stage, hr_error *err);
HR_MUST_CHECK hr_status hr_stage_write_atoms(hr_stage *stage, hr_error *err);
HR_MUST_CHECK hr_status hr_stage_build_words(hr_stage *stage, hr_error *err);
HR_MUST_CHECK hr_status hr_stage_build_atoms(hr_stage *stage, hr_error *err);

/* Runs all feeds to their ends with hr_feed.word = `word`; tables that are full are made larger in
 * between. Tells `work`. Errors as hr_feed_run, NO_FIT, INTERRUPTED. */
HR_MUST_CHECK hr_status hr_stage_feed(hr_stage *stage, const char *work,
                                      bool (*word)(void *, const uint8_t *, int64_t),
                                      hr_error *err);

/* Opens a region, if the budget allows. */
HR_MUST_CHECK hr_status hr_stage_region(hr_stage *stage, const char *name, int64_t bytes,
                                        hr_region *region, hr_error *err);

/* Alphabet and special tokens fit the vocabulary; says what they need. Errors USAGE. */
HR_MUST_CHECK hr_status hr_stage_alphabet(hr_stage *stage, const int64_t counts[256],
                                          hr_error *err);

/* Tells how far work is. Errors INTERRUPTED. */
HR_MUST_CHECK hr_status hr_stage_tell(const hr_stage *stage, const char *work, int64_t done,
                                      int64_t all, hr_error *err);

#endif
