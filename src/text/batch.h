/* SPDX-License-Identifier: Apache-2.0 */
/* text/batch.h - selects the tokens of each step.
 *
 * Windows of T tokens start every T tokens of a shard, or of several shards in a mixture. The
 * target of a token is the next token, unless the shard masks it. Alternatively, the caller gives
 * rows of T tokens with their own targets. The windows or rows of a step are a function of (seed,
 * step) alone, so a run can resume at any step.
 *
 * In a run of stages (hr_batches_enter) the length and the number of the windows change. Then the
 * order is that of text/cursor.h, with blocks shuffled in every pass: each token is used once a
 * pass, whatever the stages. The windows of a step are a function of (seed, step, cursor), and the
 * cursor is what the run keeps for the stage that it is in. */
#ifndef HR_TEXT_BATCH_H
#define HR_TEXT_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

enum { HR_TARGET_IGNORED = -1, HR_BATCH_SHARDS_MAX = 16 };

/* Rows from the caller instead of windows of a shard. */
typedef struct {
    int64_t count; /* 0: use windows of the shard */
    void *context;
    /* Reads one row: ids [T] and targets [T], which may contain HR_TARGET_IGNORED. If both are
     * null, only counts. targets_count out. Errors as hr_batches_fill. */
    hr_status (*read)(void *context, int64_t row, int32_t *ids, int32_t *targets,
                      int64_t *targets_count, hr_error *err);
} hr_batch_rows;

/* A mixture: in every block of `block` consecutive training rows, shard i has shares[i] rows,
 * spread evenly from a random start. Each shard has its own epochs and shuffles, and goes through
 * them in order. */
typedef struct {
    int32_t count;                           /* 0: no mixture; one shard */
    const char *shards[HR_BATCH_SHARDS_MAX]; /* [count] paths */
    int64_t shares[HR_BATCH_SHARDS_MAX];     /* [count], each at least 1; the sum is the block */
    int64_t block;
} hr_batch_mixture;

typedef struct {
    hr_batch_rows rows;       /* instead of the shard */
    hr_batch_mixture mixture; /* instead of the shard */
    bool fixed;               /* rows: the first B rows are the batch of every step */
    bool separate;            /* the first token of a document is never a target */
    const char *shard;        /* path */
    const char *name;         /* the text's name in error messages: "data.train" */
    int64_t vocab_size;       /* rows of the model's embedding; every id must be below */
    int64_t T;                /* tokens per window */
    int64_t batch;            /* B, windows per step */
    /* true: shuffle every epoch, drop the last partial batch; false: in order, keep it */
    bool training;
    uint64_t seed; /* for shuffling */
    /* of a run of stages, in training: the unit of text/cursor.h for the lengths of all, the
     * longest of which every text must have; 0: no stages. T and batch are then those of the first
     * hr_batches_enter. */
    int64_t unit, longest;
    /* for validation: the text is read up to here and to the end of a window, so that what is read
     * depends on no batch; 0: all of it */
    int64_t tokens;
} hr_batch_desc;

/* What a stage reads: its shares are those of the mixture, or of another one over its shards, in
 * which a shard that it does not read has 0. */
typedef struct {
    int64_t T, batch;
    int64_t first; /* number of its first batch */
    int64_t shares[HR_BATCH_SHARDS_MAX], block;
} hr_batch_stage;

/* Positions in the passes over each shard, or over the rows. */
typedef struct {
    int64_t at[HR_BATCH_SHARDS_MAX];
} hr_batch_cursor;

typedef struct {
    int64_t tokens;  /* of the text */
    int64_t windows; /* (tokens - 1) / T; or rows; for a mixture the sum over its shards */
    /* per epoch: windows / B, rounded down for training, else up; a fixed batch: 1 */
    int64_t batches;
} hr_batch_shape;

typedef struct hr_batches hr_batches;

/* Bytes of open batches with this many shards; 1 for rows. Pure. */
int64_t hr_batches_bytes(int32_t shards);

/* Opens shards for reading batches, in memory [hr_batches_bytes(shards)], aligned to 64.
 *
 * Errors   USAGE    missing or unreadable; an id is not below vocab_size
 *          CORRUPT  damaged; all tokens are masked; a text shorter than one window or, in training,
 *                   than one batch, with both numbers; too few rows likewise. */
HR_MUST_CHECK hr_status hr_batches_open(hr_batches **batches, void *memory,
                                        const hr_batch_desc *desc, hr_error *err);
void hr_batches_close(hr_batches **batches);

/* Reads as a stage from here on, from a cursor.
 *   passes  after which the text ends, so that later rows are missing; 0: it does not end */
void hr_batches_enter(hr_batches *batches, const hr_batch_stage *stage,
                      const hr_batch_cursor *cursor, int64_t passes);

/* The cursor before batch `number`, in the stage that was entered. */
hr_batch_cursor hr_batches_cursor(const hr_batches *batches, int64_t number);

/* The number of batches of the stage until the passes that it was entered with are over: with one
 * shard or rows to the last token, and with a mixture when so many tokens have been read. */
int64_t hr_batches_left(const hr_batches *batches);

/* For validation: reads windows of another length, in batches of another size.
 * Errors   CORRUPT  as hr_batches_open. */
HR_MUST_CHECK hr_status hr_batches_reshape(hr_batches *batches, int64_t T, int64_t batch,
                                           const char *name, hr_error *err);

/* Valid until the close. */
const hr_batch_shape *hr_batches_view(const hr_batches *batches);

/* Reads rows [row_first, row_first + rows) of the batch of a step; a micro-batch is such a range.
 * Training accepts any step; a new epoch begins every `batches` steps. Without training, a step
 * after the last batch has no rows. A missing row has ids 0 and targets HR_TARGET_IGNORED.
 *
 *   ids, targets   [rows, T] out; targets are the next tokens
 *   targets_count  out; targets that are not ignored
 *
 * Repeat   a function of the shard or the rows, the description and the arguments.
 * Errors   CORRUPT  a checksum is wrong, or an id is not below the vocabulary's size
 *          FAILURE  a system call failed.
 * Cost     no allocation; reads the 4 KiB blocks that contain the windows.
 * Threads  one thread per object. */
HR_MUST_CHECK hr_status hr_batches_fill(hr_batches *batches, int64_t step, int64_t row_first,
                                        int64_t rows, int32_t *ids, int32_t *targets,
                                        int64_t *targets_count, hr_error *err);

/* Counts the targets of a whole batch before it is used. For windows without masks this needs no
 * reading; otherwise the rows are read once more. Errors as hr_batches_fill. */
HR_MUST_CHECK hr_status hr_batches_targets(hr_batches *batches, int64_t step,
                                           int64_t *targets_count, hr_error *err);

/* Checks that at least one window or row has a target; otherwise the loss is undefined.
 *   name  of the text, for the error message
 * Errors   CORRUPT  there is none. As hr_batches_fill.
 * Cost     none without masks; otherwise reads masks up to the first target. */
HR_MUST_CHECK hr_status hr_batches_check_targets(hr_batches *batches, const char *name,
                                                 hr_error *err);

/* Finds where the document of each token begins, for the rows that hr_batches_fill reads.
 *
 *   begins  [rows, T] out: the index within the row of the first token of the same document, 0 if
 *           that is before the row. So t - begins[t] is the position in the document, and token t
 *           attends to begins[t] to t. For rows from the caller all are zero.
 *
 * Errors and cost as hr_batches_fill. */
HR_MUST_CHECK hr_status hr_batches_begins(hr_batches *batches, int64_t step, int64_t row_first,
                                          int64_t rows, int32_t *begins, hr_error *err);

/* The window at position `index` of `count` in the order of an epoch: for fixed seed, epoch and
 * count a permutation of [0, count). Pure.
 * Cost  no table; on average fewer than four evaluations of a Feistel network. */
int64_t hr_batch_order(uint64_t seed, int64_t epoch, int64_t index, int64_t count);

#endif
