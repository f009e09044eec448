/* SPDX-License-Identifier: Apache-2.0 */
/* text/batch.h - which tokens a step sees.
 *
 * Windows of T tokens start every T tokens of a shard, or of several in shares; a target is the
 * token after, unless the shard says that it is none. Or rows of T tokens are there already, with
 * targets of their own, some of them ignored. Which windows or rows a step sees is a function of
 * (seed, step) alone, so a run can be taken up at any step. */
#ifndef HR_TEXT_BATCH_H
#define HR_TEXT_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

enum { HR_TARGET_IGNORED = -1, HR_BATCH_SHARDS_MAX = 16 };

/* Rows that are there already. */
typedef struct {
    int64_t count; /* 0: none are, and windows of the shard are what is seen */
    void *context;
    /* Reads one: ids [T] and targets [T], HR_TARGET_IGNORED among them; with both null it counts
     * alone. targets_count out. Errors as hr_batches_fill. */
    hr_status (*read)(void *context, int64_t row, int32_t *ids, int32_t *targets,
                      int64_t *targets_count, hr_error *err);
} hr_batch_rows;

/* A mixture: of every `block` rows of training that follow one another, shard i has shares[i], in
 * an order of their own; its windows come as they would if it were alone. */
typedef struct {
    int32_t count;                           /* 0: none, there is one shard */
    const char *shards[HR_BATCH_SHARDS_MAX]; /* [count] paths */
    int64_t shares[HR_BATCH_SHARDS_MAX];     /* [count], each at least 1; their sum is the block */
    int64_t block;
} hr_batch_mixture;

typedef struct {
    hr_batch_rows rows;       /* in place of the shard */
    hr_batch_mixture mixture; /* the same */
    bool fixed;               /* rows: the first B of them are the batch of every step */
    bool separate;      /* the first token of a document is no target of what stands before it */
    const char *shard;  /* path */
    const char *name;   /* what sentences call the text: "data.train" */
    int64_t vocab_size; /* rows of the model's embedding: every id must be below */
    int64_t T;          /* tokens a window */
    int64_t batch;      /* B, windows a step */
    bool training;      /* shuffled every epoch, last partial batch dropped; else in order, kept */
    uint64_t seed;      /* of the shuffling */
} hr_batch_desc;

typedef struct {
    int64_t tokens;  /* of the text */
    int64_t windows; /* (tokens - 1) / T; or rows; of a mixture the sum over its shards */
    int64_t batches; /* of an epoch: training windows / B, else rounded up; a fixed batch: 1 */
} hr_batch_shape;

/* How many times the rows of so many steps of a mixture go through the windows of a shard, which
 * are `windows`. Pure. */
double hr_batch_passes(const hr_batch_mixture *mixture, int32_t shard, int64_t windows,
                       int64_t rows);

typedef struct hr_batches hr_batches;

/* Bytes of open batches of so many shards, 1 for rows. Pure. */
int64_t hr_batches_bytes(int32_t shards);

/* Opens shards for reading batches, in memory [hr_batches_bytes(shards)], aligned to 64.
 *
 * Errors   USAGE    missing or unreadable; more ids than the model has rows
 *          CORRUPT  damaged; a text shorter than one window or, in training, than one batch, with
 *                   both numbers; rows likewise. */
HR_MUST_CHECK hr_status hr_batches_open(hr_batches **batches, void *memory,
                                        const hr_batch_desc *desc, hr_error *err);
void hr_batches_close(hr_batches **batches);

/* Valid until the close. */
const hr_batch_shape *hr_batches_view(const hr_batches *batches);

/* Reads rows [row_first, row_first + rows) of the batch of a step; a micro-batch is such a range.
 * Training takes any step, and a new epoch begins every `batches` steps; otherwise a step past the
 * last batch has no rows. A row that is not there has ids 0 and targets HR_TARGET_IGNORED.
 *
 *   ids, targets   [rows, T] out; targets are the tokens that follow
 *   targets_count  out; targets that are not ignored
 *
 * Repeat   a function of the shard or the rows, the description and the arguments.
 * Errors   CORRUPT  a checksum is wrong, or an id is not below the vocabulary's size
 *          FAILURE  the system refused.
 * Cost     no allocation; reads the 4 KiB blocks in which the windows lie.
 * Threads  one thread per object. */
HR_MUST_CHECK hr_status hr_batches_fill(hr_batches *batches, int64_t step, int64_t row_first,
                                        int64_t rows, int32_t *ids, int32_t *targets,
                                        int64_t *targets_count, hr_error *err);

/* Targets that count in the whole batch of a step, before any of it is read for use. Of windows
 * without masks that is known; else they are read once more. Errors as hr_batches_fill. */
HR_MUST_CHECK hr_status hr_batches_targets(hr_batches *batches, int64_t step,
                                           int64_t *targets_count, hr_error *err);

/* That some window or row has a target: without one there is nothing to learn, or to evaluate.
 *   name  of the text, for the sentence
 * Errors   CORRUPT  there is none. As hr_batches_fill.
 * Cost     of text without masks none; else marks are read up to the first target. */
HR_MUST_CHECK hr_status hr_batches_check_targets(hr_batches *batches, const char *name,
                                                 hr_error *err);

/* Where the documents begin that the tokens of these rows belong to, as hr_batches_fill takes them.
 *
 *   begins  [rows, T] out: the index in its row of the first token of the same document, 0 where
 *           that lies before the row. So t - begins[t] is a position in the document, and what
 *           token t may attend to is begins[t] to t. Rows that were ids before have all zeros.
 *
 * Errors and cost as hr_batches_fill. */
HR_MUST_CHECK hr_status hr_batches_begins(hr_batches *batches, int64_t step, int64_t row_first,
                                          int64_t rows, int32_t *begins, hr_error *err);

/* Where place `index` of `count` goes in the order of an epoch: for fixed seed, epoch and count a
 * permutation of [0, count). Pure.
 * Cost  no table; on average fewer than four evaluations of a Feistel network. */
int64_t hr_batch_order(uint64_t seed, int64_t epoch, int64_t index, int64_t count);

#endif
