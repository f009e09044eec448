/* SPDX-License-Identifier: Apache-2.0 */
/* text/batch.c - windows of a shard, or rows, in an order that is computed and never stored. */
#include "text/batch.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/random.h"
#include "text/shard.h"

struct hr_batches {
    hr_shard *shard; /* null: rows */
    hr_batch_rows rows;
    hr_batch_shape shape;
    int64_t T, batch;
    uint64_t seed;
    bool training, fixed;
    _Alignas(64) uint8_t shard_memory[];
};

/* ---- order */

enum { ROUNDS = 8 };

/* No random op of a program has this site: sites count up from 0. */
static const uint64_t ORDER_SITE = UINT64_C(0x6f72646572);

/* A balanced Feistel network is a bijection whatever its round function: here of [0, 4^half_bits).
 * Values that fall outside [0, count) are sent through again until they land inside ("cycle
 * walking"), which is a bijection of [0, count). It ends, because the walk runs along a cycle that
 * holds the place it began at, and that one is inside.
 * Source  Black and Rogaway, Ciphers with Arbitrary Finite Domains (2002), section 3. */
int64_t hr_batch_order(uint64_t seed, int64_t epoch, int64_t index, int64_t count)
{
    HR_ASSERT(index >= 0 && index < count);
    uint64_t keys[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        keys[i] = hr_random_row_key(seed, (uint64_t)epoch, ORDER_SITE, 0, (uint64_t)i);
    int half_bits = 1;
    while (half_bits < 31 && (INT64_C(1) << 2 * half_bits) < count) half_bits++;
    const uint64_t mask = (UINT64_C(1) << half_bits) - 1;
    uint64_t value = (uint64_t)index;
    do {
        uint64_t left = value >> half_bits, right = value & mask;
        for (int i = 0; i < ROUNDS; i++) {
            const uint64_t mixed = left ^ (hr_random_mix(keys[i] ^ right) & mask);
            left = right;
            right = mixed;
        }
        value = left << half_bits | right;
    } while (value >= (uint64_t)count);
    return (int64_t)value;
}

/* ---- batches */

int64_t hr_batches_bytes(void)
{
    return hr_round_up(sizeof(hr_batches), 64) + hr_shard_bytes();
}

static hr_status check_shard(const hr_batch_desc *desc, const hr_shard_info *info,
                             const hr_batch_shape *shape, hr_error *err)
{
    if (info->vocab_size > desc->vocab_size)
        return hr_fail(err, HR_USAGE,
                       "%s: has token ids up to %lld, and model.vocab_size=%lld: type "
                       "model.vocab_size=%lld",
                       desc->name, (long long)info->vocab_size - 1, (long long)desc->vocab_size,
                       (long long)info->vocab_size);
    if (info->tokens < 2)
        return hr_fail(err, HR_CORRUPT,
                       "%s: has %lld token%s, and one window of train.seq_len=%lld needs %lld: "
                       "give a longer text",
                       desc->name, (long long)info->tokens, info->tokens == 1 ? "" : "s",
                       (long long)desc->T, (long long)desc->T + 1);
    if (shape->windows == 0)
        return hr_fail(err, HR_CORRUPT,
                       "%s: has %lld tokens, and one window of train.seq_len=%lld needs %lld: "
                       "give a longer text or type train.seq_len=%lld",
                       desc->name, (long long)info->tokens, (long long)desc->T,
                       (long long)desc->T + 1, (long long)info->tokens - 1);
    return HR_OK;
}

static hr_status check_batches(const hr_batch_desc *desc, const hr_batch_shape *shape,
                               hr_error *err)
{
    const bool rows = desc->rows.count > 0;
    if (shape->batches > 0) return HR_OK;
    return hr_fail(err, HR_CORRUPT,
                   "%s: has %lld %s%s of train.seq_len=%lld, and one batch needs %lld: give %s or "
                   "type train.batch=%lld",
                   desc->name, (long long)shape->windows, rows ? "row" : "window",
                   shape->windows == 1 ? "" : "s", (long long)desc->T, (long long)desc->batch,
                   rows ? "more rows" : "a longer text", (long long)shape->windows);
}

/* Opens the shard, unless rows are there in its place. */
static hr_status open_shard(hr_batches *b, const hr_batch_desc *desc, hr_error *err)
{
    b->shard = NULL;
    b->shape = (hr_batch_shape){ desc->rows.count * desc->T, desc->rows.count, 0 };
    if (desc->rows.count) return HR_OK;
    const hr_status status = hr_shard_open(&b->shard, b->shard_memory, desc->shard, err);
    if (status != HR_OK) return status;
    const hr_shard_info *info = hr_shard_view(b->shard);
    b->shape = (hr_batch_shape){ info->tokens, (info->tokens - 1) / desc->T, 0 };
    return check_shard(desc, info, &b->shape, err);
}

hr_status hr_batches_open(hr_batches **batches, void *memory, const hr_batch_desc *desc,
                          hr_error *err)
{
    HR_ASSERT(desc->T > 0 && desc->batch > 0);
    hr_batches *opened = memory;
    opened->rows = desc->rows;
    opened->T = desc->T;
    opened->batch = desc->batch;
    opened->seed = desc->seed;
    opened->training = desc->training;
    opened->fixed = desc->fixed;
    hr_status status = open_shard(opened, desc, err);
    const int64_t windows = opened->shape.windows;
    const int64_t partial = !desc->training && windows % desc->batch != 0;
    opened->shape.batches = windows / desc->batch + partial;
    if (desc->fixed) opened->shape.batches = hr_min(opened->shape.batches, 1);
    if (status == HR_OK) status = check_batches(desc, &opened->shape, err);
    if (status != HR_OK) hr_shard_close(&opened->shard);
    else *batches = opened;
    return status;
}

void hr_batches_close(hr_batches **batches)
{
    if (*batches) hr_shard_close(&(*batches)->shard);
    *batches = 0;
}

const hr_batch_shape *hr_batches_view(const hr_batches *batches)
{
    return &batches->shape;
}

/* The window that a row of a step sees; -1: none. */
static int64_t window_of(const hr_batches *b, int64_t step, int64_t row)
{
    const int64_t batches = b->shape.batches;
    if (b->fixed) return row;
    if (!b->training) {
        const int64_t window = step < batches ? step * b->batch + row : b->shape.windows;
        return window < b->shape.windows ? window : -1;
    }
    return hr_batch_order(b->seed, step / batches, step % batches * b->batch + row,
                          b->shape.windows);
}

static hr_status fill_row(hr_batches *b, int64_t window, int32_t *ids, int32_t *targets,
                          int64_t *targets_count, hr_error *err)
{
    const int64_t T = b->T;
    if (!b->shard) return b->rows.read(b->rows.context, window, ids, targets, targets_count, err);
    *targets_count = T;
    hr_status status = hr_shard_read(b->shard, window * T, T, ids, err);
    if (status != HR_OK) return status;
    memcpy(targets, ids + 1, (size_t)(T - 1) * sizeof *ids);
    return hr_shard_read(b->shard, window * T + T, 1, targets + T - 1, err);
}

hr_status hr_batches_fill(hr_batches *batches, int64_t step, int64_t row_first, int64_t rows,
                          int32_t *ids, int32_t *targets, int64_t *targets_count, hr_error *err)
{
    const int64_t T = batches->T;
    int64_t targets_sum = 0, count = 0;
    HR_ASSERT(step >= 0 && row_first >= 0 && rows >= 0 && row_first + rows <= batches->batch);
    for (int64_t row = 0; row < rows; row++) {
        const int64_t window = window_of(batches, step, row_first + row);
        if (window < 0) {
            memset(ids + row * T, 0, (size_t)T * sizeof *ids);
            for (int64_t t = 0; t < T; t++) targets[row * T + t] = HR_TARGET_IGNORED;
            continue;
        }
        const hr_status status = fill_row(batches, window, ids + row * T, targets + row * T, &count,
                                          err);
        if (status != HR_OK) return status;
        targets_sum += count;
    }
    *targets_count = targets_sum;
    return HR_OK;
}

hr_status hr_batches_targets(hr_batches *batches, int64_t step, int64_t *targets_count,
                             hr_error *err)
{
    int64_t targets_sum = 0, count = 0;
    for (int64_t row = 0; row < batches->batch; row++) {
        const int64_t window = window_of(batches, step, row);
        if (window < 0) continue;
        hr_status status = HR_OK;
        if (batches->shard) count = batches->T;
        else status = batches->rows.read(batches->rows.context, window, NULL, NULL, &count, err);
        if (status != HR_OK) return status;
        targets_sum += count;
    }
    *targets_count = targets_sum;
    return HR_OK;
}
