/* SPDX-License-Identifier: Apache-2.0 */
/* text/batch.h - which tokens a step sees.
 *
 * Windows of T tokens start every T tokens of a shard; a target is the token after. Or rows of T
 * tokens are there already, with targets of their own, some of them ignored. Which windows or rows
 * a step sees is a function of (seed, step) alone, so a run can be taken up at any step. */
#ifndef HR_TEXT_BATCH_H
#define HR_TEXT_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

enum { HR_TARGET_IGNORED = -1 };

/* Rows that are there already. */
typedef struct {
    int64_t count; /* 0: none are, and windows of the shard are what is seen */
    void *context;
    /* Reads one: ids [T] and targets [T], HR_TARGET_IGNORED among them; with both null it counts
     * alone. targets_count out. Errors as hr_batches_fill. */
    hr_status (*read)(void *context, int64_t row, int32_t *ids, int32_t *targets,
                      int64_t *targets_count, hr_error *err);
} hr_batch_rows;

typedef struct {
    hr_batch_rows rows; /* in place of the shard */
    bool fixed;         /* rows: the first B of them are the batch of every step */
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
    int64_t windows; /* (tokens - 1) / T; or rows */
    int64_t batches; /* of an epoch: training windows / B, else rounded up; a fixed batch: 1 */
} hr_batch_shape;

typedef struct hr_batches hr_batches;

/* Bytes of open batches. Pure. */
int64_t hr_batches_bytes(void);

/* Opens a shard for reading batches, in memory [hr_batches_bytes()], aligned to 64.
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
 *   targets_count  out; targets that are not ignored: of windows, all
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
 * that is known; of rows their targets are read once more. Errors as hr_batches_fill. */
HR_MUST_CHECK hr_status hr_batches_targets(hr_batches *batches, int64_t step,
                                           int64_t *targets_count, hr_error *err);

/* Where place `index` of `count` goes in the order of an epoch: for fixed seed, epoch and count a
 * permutation of [0, count). Pure.
 * Cost  no table; on average fewer than four evaluations of a Feistel network. */
int64_t hr_batch_order(uint64_t seed, int64_t epoch, int64_t index, int64_t count);

#endif
