/* SPDX-License-Identifier: Apache-2.0 */
/* text/batch.c - selects windows of shards, or rows, in a computed order that needs no table. */
#include "text/batch.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/random.h"
#include "text/shard.h"

struct hr_batches {
    hr_shard *shards[HR_BATCH_SHARDS_MAX]; /* null: rows */
    int64_t windows[HR_BATCH_SHARDS_MAX];  /* of each shard */
    hr_batch_mixture mixture;
    hr_batch_rows rows;
    hr_batch_shape shape;
    int64_t T, batch;
    uint64_t seed;
    bool training, fixed, separate;
    _Alignas(64) uint8_t shard_memory[];
};

/* A window of a shard, or a row. */
typedef struct {
    int32_t shard;
    int64_t window; /* -1: none */
} place;

/* ---- order */

enum { ROUNDS = 8, FEW = 256 };

/* Random lanes of HR_SITE_ORDER: the windows of one text, the rows of a mixture, and the windows of
 * each shard of a mixture. */
enum { LANE_TEXT, LANE_MIXTURE, LANE_SHARDS };

/* Fisher-Yates shuffle: all orders are equally likely. A Feistel network over so few values is
 * biased: for 7 windows, the frequency of an order was off by 19 % (root mean square), and more
 * rounds did not help. */
static int64_t order_of_few(hr_random_stream stream, int64_t index, int64_t count)
{
    uint8_t places[FEW];
    const hr_random_row row = hr_random_row_of(stream, 1, 0);
    for (int64_t i = 0; i < count; i++) places[i] = (uint8_t)i;
    for (int64_t i = count - 1; i > 0; i--) {
        const uint64_t bits = hr_random_wide(&row, (uint64_t)i);
        const uint64_t other = hr_random_below(bits, (uint64_t)i + 1);
        const uint8_t moved = places[i];
        places[i] = places[other];
        places[other] = moved;
    }
    return places[index];
}

/* A balanced Feistel network over [0, 4^half_bits), which is a bijection for any round function.
 * The round function is Philox, with one row per round.
 * Values outside [0, count) go through the network again until they are inside (cycle walking),
 * which gives a bijection of [0, count). The loop ends because it follows a cycle that contains the
 * start value, which is inside.
 * Source  Black and Rogaway, Ciphers with Arbitrary Finite Domains (2002), section 3. */
static int64_t order(uint64_t seed, uint32_t lane, int64_t epoch, int64_t index, int64_t count)
{
    HR_ASSERT(index >= 0 && index < count);
    const hr_random_stream stream = hr_random_stream_of(seed, (uint64_t)epoch, HR_SITE_ORDER, lane);
    if (count <= FEW) return order_of_few(stream, index, count);
    int half_bits = 1;
    while (half_bits < 31 && (INT64_C(1) << 2 * half_bits) < count) half_bits++;
    const uint64_t mask = (UINT64_C(1) << half_bits) - 1;
    uint64_t value = (uint64_t)index;
    do {
        uint64_t left = value >> half_bits, right = value & mask;
        for (uint32_t i = 0; i < ROUNDS; i++) {
            const hr_random_row row = hr_random_row_of(stream, 0, i);
            const uint64_t mixed = left ^ (hr_random_element(&row, right) & mask);
            left = right;
            right = mixed;
        }
        value = left << half_bits | right;
    } while (value >= (uint64_t)count);
    return (int64_t)value;
}

int64_t hr_batch_order(uint64_t seed, int64_t epoch, int64_t index, int64_t count)
{
    return order(seed, LANE_TEXT, epoch, index, count);
}

/* ---- batches */

int64_t hr_batches_bytes(int32_t shards)
{
    return hr_round_up(sizeof(hr_batches), 64) + shards * hr_shard_bytes();
}

static hr_status check_ids(const hr_batch_desc *desc, const char *name, const hr_shard_info *info,
                           hr_error *err)
{
    if (info->vocab_size <= desc->vocab_size) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "%s: has token ids up to %lld, but model.vocab_size is %lld: use "
                   "model.vocab_size=%lld",
                   name, (long long)info->vocab_size - 1, (long long)desc->vocab_size,
                   (long long)info->vocab_size);
}

static hr_status check_length(const hr_batch_desc *desc, const char *name,
                              const hr_shard_info *info, hr_error *err)
{
    if (info->tokens < 2)
        return hr_fail(
            err, HR_CORRUPT,
            "%s: has %lld token%s, but one window of train.seq_len=%lld needs %lld: give "
            "a longer text",
            name, (long long)info->tokens, info->tokens == 1 ? "" : "s", (long long)desc->T,
            (long long)desc->T + 1);
    if ((info->tokens - 1) / desc->T == 0)
        return hr_fail(err, HR_CORRUPT,
                       "%s: has %lld tokens, but one window of train.seq_len=%lld needs %lld: give "
                       "a longer text or use train.seq_len=%lld",
                       name, (long long)info->tokens, (long long)desc->T, (long long)desc->T + 1,
                       (long long)info->tokens - 1);
    return HR_OK;
}

static hr_status fail_no_target(const hr_batches *b, const char *name, hr_error *err)
{
    return hr_fail(
        err, HR_CORRUPT,
        "%.300s: has %lld tokens and no target: each token is masked, such as those of a "
        "prompt, or has no token after it; give text with tokens to predict",
        name, (long long)b->shape.tokens);
}

static bool is_masked(const hr_shard *shard)
{
    const hr_shard_info *info = hr_shard_view(shard);
    return info->tokens > 0 && info->masked >= info->tokens;
}

static hr_status check_batches(const hr_batch_desc *desc, const hr_batch_shape *shape,
                               hr_error *err)
{
    const bool rows = desc->rows.count > 0;
    if (shape->batches > 0) return HR_OK;
    return hr_fail(err, HR_CORRUPT,
                   "%s: has %lld %s%s of train.seq_len=%lld, but one batch needs %lld: give %s "
                   "or use train.batch=%lld",
                   desc->name, (long long)shape->windows, rows ? "row" : "window",
                   shape->windows == 1 ? "" : "s", (long long)desc->T, (long long)desc->batch,
                   rows ? "more rows" : "a longer text", (long long)shape->windows);
}

/* Opens one shard; `name` is for error messages. */
static hr_status open_shard(hr_batches *b, const hr_batch_desc *desc, int32_t index,
                            const char *path, const char *name, hr_error *err)
{
    hr_shard **shard = &b->shards[index];
    hr_status status = hr_shard_open(shard, b->shard_memory + index * hr_shard_bytes(), path, err);
    if (status != HR_OK) return status;
    const hr_shard_info *info = hr_shard_view(*shard);
    b->windows[index] = (info->tokens - 1) / desc->T;
    b->shape.tokens += info->tokens;
    b->shape.windows += b->windows[index];
    return check_ids(desc, name, info, err);
}

/* Opens the shards, if windows are used. A text without a target is refused as that, however short
 * it is: a longer one of its kind would not help. */
static hr_status open_shards(hr_batches *b, const hr_batch_desc *desc, hr_error *err)
{
    const hr_batch_mixture *mixture = &desc->mixture;
    const int32_t count = (int32_t)hr_max(mixture->count, 1);
    const char *const *paths = mixture->count ? mixture->shards : &desc->shard;
    const char *const *names = mixture->count ? mixture->shards : &desc->name;
    hr_status status = HR_OK;
    bool masked = true;
    memset(b->shards, 0, sizeof b->shards);
    b->shape = (hr_batch_shape){ desc->rows.count * desc->T, desc->rows.count, 0 };
    if (desc->rows.count) return HR_OK;
    for (int32_t i = 0; i < count && status == HR_OK; i++) {
        status = open_shard(b, desc, i, paths[i], names[i], err);
        if (status == HR_OK) masked = masked && is_masked(b->shards[i]);
    }
    if (status == HR_OK && masked) status = fail_no_target(b, desc->name, err);
    for (int32_t i = 0; i < count && status == HR_OK; i++)
        status = check_length(desc, names[i], hr_shard_view(b->shards[i]), err);
    return status;
}

static void close_shards(hr_batches *b)
{
    for (int32_t i = 0; i < HR_BATCH_SHARDS_MAX; i++) hr_shard_close(&b->shards[i]);
}

hr_status hr_batches_open(hr_batches **batches, void *memory, const hr_batch_desc *desc,
                          hr_error *err)
{
    HR_ASSERT(desc->T > 0 && desc->batch > 0);
    HR_ASSERT(desc->mixture.count >= 0 && desc->mixture.count <= HR_BATCH_SHARDS_MAX);
    HR_ASSERT(!desc->mixture.count || desc->training);
    hr_batches *opened = memory;
    opened->rows = desc->rows;
    opened->mixture = desc->mixture;
    opened->T = desc->T;
    opened->batch = desc->batch;
    opened->seed = desc->seed;
    opened->training = desc->training;
    opened->fixed = desc->fixed;
    opened->separate = desc->separate;
    hr_status status = open_shards(opened, desc, err);
    const int64_t windows = opened->shape.windows;
    const int64_t partial = !desc->training && windows % desc->batch != 0;
    opened->shape.batches = windows / desc->batch + partial;
    if (desc->fixed) opened->shape.batches = hr_min(opened->shape.batches, 1);
    if (status == HR_OK) status = check_batches(desc, &opened->shape, err);
    if (status != HR_OK) close_shards(opened);
    else *batches = opened;
    return status;
}

void hr_batches_close(hr_batches **batches)
{
    if (*batches) close_shards(*batches);
    *batches = 0;
}

const hr_batch_shape *hr_batches_view(const hr_batches *batches)
{
    return &batches->shape;
}

/* Selects the window for training row `row` of a mixture. The rows of a block are shuffled and
 * divided into the shards' shares. The position in the share plus the shares of the previous blocks
 * is the row's index within its shard, which selects the epoch and the window. */
static place mix(const hr_batches *b, int64_t row)
{
    const hr_batch_mixture *mixture = &b->mixture;
    const int64_t block = row / mixture->block;
    int64_t at = order(b->seed, LANE_MIXTURE, block, row % mixture->block, mixture->block);
    int32_t i = 0;
    for (; at >= mixture->shares[i]; i++) at -= mixture->shares[i];
    const int64_t number = block * mixture->shares[i] + at, windows = b->windows[i];
    return (place){ i, order(b->seed, LANE_SHARDS + (uint32_t)i, number / windows, number % windows,
                             windows) };
}

/* Selects the window or row for a row of a step. */
static place place_of(const hr_batches *b, int64_t step, int64_t row)
{
    const int64_t batches = b->shape.batches;
    if (b->fixed) return (place){ 0, row };
    if (b->mixture.count) return mix(b, step * b->batch + row);
    if (!b->training) {
        const int64_t window = step < batches ? step * b->batch + row : b->shape.windows;
        return (place){ 0, window < b->shape.windows ? window : -1 };
    }
    return (place){ 0, hr_batch_order(b->seed, step / batches, step % batches * b->batch + row,
                                      b->shape.windows) };
}

/* ---- masks */

enum { MARKS = 512 }; /* marks read at once */

/* Marks that exclude a token as a target. */
static uint8_t ignored_marks(const hr_batches *b, const hr_shard *shard)
{
    const hr_shard_info *info = hr_shard_view(shard);
    uint8_t marks = 0;
    if (info->masked) marks |= HR_TOKEN_MASKED;
    if (b->separate && info->documents > 1) marks |= HR_TOKEN_BEGINS;
    return marks;
}

/* Sets the excluded targets of a window to HR_TARGET_IGNORED in targets [T], which may be null, and
 * counts the others. Target t is token t + 1 of the window. */
static hr_status mask_window(const hr_batches *b, hr_shard *shard, int64_t window, int32_t *targets,
                             int64_t *targets_count, hr_error *err)
{
    const uint8_t ignored = ignored_marks(b, shard);
    uint8_t marks[MARKS];
    *targets_count = b->T;
    for (int64_t first = 0; first < b->T && ignored; first += MARKS) {
        const int64_t count = hr_min(MARKS, b->T - first);
        const hr_status status = hr_shard_marks(shard, window * b->T + 1 + first, count, marks,
                                                err);
        if (status != HR_OK) return status;
        for (int64_t t = 0; t < count; t++) {
            if (!(marks[t] & ignored)) continue;
            if (targets) targets[first + t] = HR_TARGET_IGNORED;
            --*targets_count;
        }
    }
    return HR_OK;
}

static hr_status fill_row(hr_batches *b, place at, int32_t *ids, int32_t *targets,
                          int64_t *targets_count, hr_error *err)
{
    const int64_t T = b->T, window = at.window;
    hr_shard *shard = b->shards[at.shard];
    if (!shard) return b->rows.read(b->rows.context, window, ids, targets, targets_count, err);
    hr_status status = hr_shard_read(shard, window * T, T, ids, err);
    if (status != HR_OK) return status;
    memcpy(targets, ids + 1, (size_t)(T - 1) * sizeof *ids);
    status = hr_shard_read(shard, window * T + T, 1, targets + T - 1, err);
    return status == HR_OK ? mask_window(b, shard, window, targets, targets_count, err) : status;
}

hr_status hr_batches_fill(hr_batches *batches, int64_t step, int64_t row_first, int64_t rows,
                          int32_t *ids, int32_t *targets, int64_t *targets_count, hr_error *err)
{
    const int64_t T = batches->T;
    int64_t targets_sum = 0, count = 0;
    HR_ASSERT(step >= 0 && row_first >= 0 && rows >= 0 && row_first + rows <= batches->batch);
    for (int64_t row = 0; row < rows; row++) {
        const place at = place_of(batches, step, row_first + row);
        if (at.window < 0) {
            memset(ids + row * T, 0, (size_t)T * sizeof *ids);
            for (int64_t t = 0; t < T; t++) targets[row * T + t] = HR_TARGET_IGNORED;
            continue;
        }
        const hr_status status = fill_row(batches, at, ids + row * T, targets + row * T, &count,
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
        const place at = place_of(batches, step, row);
        if (at.window < 0) continue;
        hr_shard *shard = batches->shards[at.shard];
        const hr_status status = shard ? mask_window(batches, shard, at.window, NULL, &count, err)
                                       : batches->rows.read(batches->rows.context, at.window, NULL,
                                                            NULL, &count, err);
        if (status != HR_OK) return status;
        targets_sum += count;
    }
    *targets_count = targets_sum;
    return HR_OK;
}

/* Whether a shard, or the rows, have a target. */
static hr_status find_target(hr_batches *b, int32_t index, bool *found, hr_error *err)
{
    hr_shard *shard = b->shards[index];
    int64_t count = 0, windows = shard ? b->windows[index] : b->rows.count;
    if (b->fixed) windows = hr_min(windows, b->batch);
    if (shard && is_masked(shard)) windows = 0;
    hr_status status = HR_OK;
    for (int64_t w = 0; w < windows && count == 0 && status == HR_OK; w++)
        status = shard ? mask_window(b, shard, w, NULL, &count, err)
                       : b->rows.read(b->rows.context, w, NULL, NULL, &count, err);
    *found = count > 0;
    return status;
}

hr_status hr_batches_check_targets(hr_batches *batches, const char *name, hr_error *err)
{
    const int32_t shards = (int32_t)hr_max(batches->mixture.count, 1);
    for (int32_t i = 0; i < shards; i++) {
        bool found;
        const hr_status status = find_target(batches, i, &found, err);
        if (status != HR_OK || found) return status;
    }
    return fail_no_target(batches, name, err);
}

/* ---- documents */

static hr_status begins_of(const hr_batches *b, place at, int32_t *begins, hr_error *err)
{
    hr_shard *shard = b->shards[at.shard];
    uint8_t marks[MARKS];
    int32_t begun = 0;
    memset(begins, 0, (size_t)b->T * sizeof *begins);
    if (at.window < 0 || !shard || hr_shard_view(shard)->documents < 2) return HR_OK;
    for (int64_t first = 0; first < b->T; first += MARKS) {
        const int64_t count = hr_min(MARKS, b->T - first);
        const hr_status status = hr_shard_marks(shard, at.window * b->T + first, count, marks, err);
        if (status != HR_OK) return status;
        for (int64_t t = 0; t < count; t++) {
            if (marks[t] & HR_TOKEN_BEGINS) begun = (int32_t)(first + t);
            begins[first + t] = begun;
        }
    }
    return HR_OK;
}

hr_status hr_batches_begins(hr_batches *batches, int64_t step, int64_t row_first, int64_t rows,
                            int32_t *begins, hr_error *err)
{
    hr_status status = HR_OK;
    HR_ASSERT(step >= 0 && row_first >= 0 && rows >= 0 && row_first + rows <= batches->batch);
    for (int64_t row = 0; row < rows && status == HR_OK; row++)
        status = begins_of(batches, place_of(batches, step, row_first + row),
                           begins + row * batches->T, err);
    return status;
}
