/* SPDX-License-Identifier: Apache-2.0 */
/* text/batch.c - selects windows of shards, or rows, in a computed order that needs no table. */
#include "text/batch.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/random.h"
#include "text/cursor.h"
#include "text/shard.h"
#include "text/spread.h"

struct hr_batches {
    hr_shard *shards[HR_BATCH_SHARDS_MAX]; /* null: rows */
    int64_t windows[HR_BATCH_SHARDS_MAX];  /* of each shard */
    hr_batch_rows rows;
    hr_batch_shape shape;
    hr_batch_stage stage; /* the length and batch of a run without stages, too */
    uint64_t seed;
    int32_t mixture_count; /* 0: no mixture */
    bool training, fixed, separate;
    int64_t tokens;         /* of the text, up to which it is read; 0: all */
    int64_t unit;           /* of a run of stages; 0: none */
    hr_batch_cursor cursor; /* at the first batch of the stage */
    int64_t passes;
    int64_t stride; /* of a mixture, in a block of the stage */
    _Alignas(64) uint8_t shard_memory[];
};

/* A window of a shard, or a row. */
typedef struct {
    int32_t shard;
    int64_t first;  /* its first token, or the number of the row; -1: none */
    int64_t tokens; /* with targets: T, or fewer at the end of a block */
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
    const int64_t T = hr_max(desc->T, desc->longest);
    const bool staged = desc->longest > 0;
    char shorter[80] = "";
    if ((info->tokens - 1) / T > 0) return HR_OK;
    if (info->tokens > 1)
        snprintf(shorter, sizeof shorter, " or use %sseq_len=%lld%s", staged ? "" : "train.",
                 (long long)info->tokens - 1, staged ? " in train.stages" : "");
    return hr_fail(err, HR_CORRUPT,
                   "%s: has %lld token%s, but one window of %sseq_len=%lld needs %lld: give a "
                   "longer text%s",
                   name, (long long)info->tokens, info->tokens == 1 ? "" : "s",
                   staged ? "a stage with " : "train.", (long long)T, (long long)T + 1, shorter);
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

/* Counts the windows and batches of the present length. A run of stages has those of its text. */
static hr_status shape_batches(hr_batches *b, const char *name, hr_error *err)
{
    const bool rows = b->rows.count > 0;
    hr_batch_shape *shape = &b->shape;
    shape->windows = b->rows.count;
    for (int32_t i = 0; i < HR_BATCH_SHARDS_MAX; i++) {
        if (!b->shards[i]) continue;
        b->windows[i] = (hr_shard_view(b->shards[i])->tokens - 1) / b->stage.T;
        shape->windows += b->windows[i];
    }
    if (b->tokens) shape->windows = hr_min(shape->windows, (b->tokens - 1) / b->stage.T + 1);
    const bool partial = !b->training && shape->windows % b->stage.batch != 0;
    shape->batches = shape->windows / b->stage.batch + partial;
    if (b->fixed) shape->batches = hr_min(shape->batches, 1);
    if (shape->batches > 0 || b->unit) return HR_OK;
    return hr_fail(err, HR_CORRUPT,
                   "%s: has %lld %s%s of train.seq_len=%lld, but one batch needs %lld: give %s "
                   "or use train.batch=%lld",
                   name, (long long)shape->windows, rows ? "row" : "window",
                   shape->windows == 1 ? "" : "s", (long long)b->stage.T, (long long)b->stage.batch,
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
    b->shape.tokens += info->tokens;
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
    b->shape = (hr_batch_shape){ .tokens = desc->rows.count * desc->T };
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
    opened->mixture_count = desc->mixture.count;
    opened->stage = (hr_batch_stage){ .block = desc->mixture.block };
    memcpy(opened->stage.shares, desc->mixture.shares, sizeof opened->stage.shares);
    opened->stage.T = desc->T;
    opened->stage.batch = desc->batch;
    opened->stride = hr_spread_stride(desc->mixture.block);
    opened->tokens = desc->tokens;
    opened->seed = desc->seed;
    opened->training = desc->training;
    opened->fixed = desc->fixed;
    opened->separate = desc->separate;
    opened->unit = desc->unit && desc->rows.count ? 1 : desc->unit;
    hr_status status = open_shards(opened, desc, err);
    if (status == HR_OK) status = shape_batches(opened, desc->name, err);
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

hr_status hr_batches_reshape(hr_batches *batches, int64_t T, int64_t batch, const char *name,
                             hr_error *err)
{
    batches->stage.T = T;
    batches->stage.batch = batch;
    return shape_batches(batches, name, err);
}

/* ---- stages */

/* The passes over a shard, or over the rows. The last token has no target. */
static hr_passes passes_of(const hr_batches *b, int32_t shard)
{
    const hr_shard *from = b->shards[shard];
    return (hr_passes){ from ? hr_shard_view(from)->tokens - 1 : b->rows.count, b->unit };
}

/* Tokens, or rows, that a row of the batch takes. */
static int64_t row_tokens(const hr_batches *b)
{
    return b->shards[0] ? b->stage.T : 1;
}

/* The first place of a block of a mixture. A run of stages has other ones in each stage. */
static int64_t start_of(const hr_batches *b, int64_t block)
{
    const hr_batch_stage *stage = &b->stage;
    return order(b->seed, LANE_MIXTURE, stage->first + block, 0, stage->block);
}

/* Rows of a shard among the first `rows` rows of a stage. A shard has an arc of the circle. */
static int64_t rows_of(const hr_batches *b, int32_t shard, int64_t rows)
{
    const hr_batch_stage *stage = &b->stage;
    const int64_t n = stage->block;
    if (!n) return shard ? 0 : rows;
    const int64_t block = rows / n, start = start_of(b, block), share = stage->shares[shard];
    int64_t first = 0;
    for (int32_t i = 0; i < shard; i++) first += stage->shares[i];
    return block * share + hr_spread_count(n, b->stride, start, rows % n, first, share);
}

/* Selects the shard of a row of a mixture: the rows of a block go around the circle in strides.
 *
 *   index  out: the number of rows that the shard has had before */
static int32_t shard_of(const hr_batches *b, int64_t row, int64_t *index)
{
    const hr_batch_stage *stage = &b->stage;
    const int64_t n = stage->block;
    int64_t at = (start_of(b, row / n) + row % n * b->stride) % n;
    int32_t i = 0;
    for (; at >= stage->shares[i]; i++) at -= stage->shares[i];
    *index = rows_of(b, i, row);
    return i;
}

/* The window at a position of the passes over a shard. */
static place window_at(const hr_batches *b, int32_t shard, int64_t position)
{
    const hr_passes passes = passes_of(b, shard);
    const int64_t pass = position / passes.tokens, at = position % passes.tokens;
    const int64_t whole = passes.tokens / b->unit;
    int64_t block = at / b->unit;
    const uint32_t lane = b->mixture_count ? LANE_SHARDS + (uint32_t)shard : LANE_TEXT;
    if (b->passes && !b->stage.block && pass >= b->passes) return (place){ shard, -1, 0 };
    if (block < whole) block = order(b->seed, lane, pass, block, whole); /* the rest stays last */
    const int64_t tokens = hr_passes_window(passes, position, row_tokens(b));
    return (place){ shard, block * b->unit + at % b->unit, b->shards[shard] ? tokens : b->stage.T };
}

static place staged(const hr_batches *b, int64_t row)
{
    int64_t index = row;
    const int32_t shard = b->stage.block ? shard_of(b, row, &index) : 0;
    return window_at(
        b, shard, hr_passes_after(passes_of(b, shard), b->cursor.at[shard], index, row_tokens(b)));
}

void hr_batches_enter(hr_batches *batches, const hr_batch_stage *stage,
                      const hr_batch_cursor *cursor, int64_t passes)
{
    HR_ASSERT(batches->unit > 0);
    batches->stage = *stage;
    batches->cursor = *cursor;
    batches->passes = passes;
    batches->stride = hr_spread_stride(stage->block);
}

hr_batch_cursor hr_batches_cursor(const hr_batches *batches, int64_t number)
{
    hr_batch_cursor cursor = batches->cursor;
    const int64_t rows = (number - batches->stage.first) * batches->stage.batch;
    for (int32_t i = 0; i < hr_max(batches->mixture_count, 1); i++)
        cursor.at[i] = hr_passes_after(passes_of(batches, i), cursor.at[i],
                                       rows_of(batches, i, rows), row_tokens(batches));
    return cursor;
}

int64_t hr_batches_left(const hr_batches *batches)
{
    int64_t rows = 0, tokens = 0;
    if (batches->stage.block) {
        for (int32_t i = 0; i < batches->mixture_count; i++)
            tokens += passes_of(batches, i).tokens * batches->passes - batches->cursor.at[i];
        rows = hr_max(tokens, 0) / batches->stage.T;
    } else {
        rows = hr_passes_windows_to(passes_of(batches, 0), batches->cursor.at[0], batches->passes,
                                    row_tokens(batches));
    }
    return rows / batches->stage.batch + (rows % batches->stage.batch != 0);
}

/* ---- places */

static place window_of(const hr_batches *b, int32_t shard, int64_t window)
{
    const int64_t first = window < 0 || !b->shards[shard] ? window : window * b->stage.T;
    return (place){ shard, first, b->stage.T };
}

/* Selects the window for training row `row` of a mixture: each shard has epochs of its own. */
static place mix(const hr_batches *b, int64_t row)
{
    int64_t number;
    const int32_t i = shard_of(b, row, &number);
    const int64_t windows = b->windows[i];
    return window_of(
        b, i,
        order(b->seed, LANE_SHARDS + (uint32_t)i, number / windows, number % windows, windows));
}

/* Selects the window or row for a row of a step. */
static place place_of(const hr_batches *b, int64_t step, int64_t row)
{
    const int64_t batches = b->shape.batches;
    if (b->fixed) return window_of(b, 0, row);
    if (b->unit) return staged(b, (step - b->stage.first) * b->stage.batch + row);
    if (b->mixture_count) return mix(b, step * b->stage.batch + row);
    if (!b->training) {
        const int64_t window = step < batches ? step * b->stage.batch + row : b->shape.windows;
        return window_of(b, 0, window < b->shape.windows ? window : -1);
    }
    return window_of(b, 0,
                     hr_batch_order(b->seed, step / batches, step % batches * b->stage.batch + row,
                                    b->shape.windows));
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
static hr_status mask_window(const hr_batches *b, place at, int32_t *targets,
                             int64_t *targets_count, hr_error *err)
{
    hr_shard *shard = b->shards[at.shard];
    const uint8_t ignored = ignored_marks(b, shard);
    uint8_t marks[MARKS];
    *targets_count = at.tokens;
    for (int64_t first = 0; first < at.tokens && ignored; first += MARKS) {
        const int64_t count = hr_min(MARKS, at.tokens - first);
        const hr_status status = hr_shard_marks(shard, at.first + 1 + first, count, marks, err);
        if (status != HR_OK) return status;
        for (int64_t t = 0; t < count; t++) {
            if (!(marks[t] & ignored)) continue;
            if (targets) targets[first + t] = HR_TARGET_IGNORED;
            --*targets_count;
        }
    }
    return HR_OK;
}

/* A window that is shorter than a row is followed by tokens without targets. */
static hr_status fill_row(hr_batches *b, place at, int32_t *ids, int32_t *targets,
                          int64_t *targets_count, hr_error *err)
{
    const int64_t T = b->stage.T, tokens = hr_max(at.tokens, 1);
    hr_shard *shard = b->shards[at.shard];
    if (!shard && at.first >= 0)
        return b->rows.read(b->rows.context, at.first, ids, targets, targets_count, err);
    *targets_count = 0;
    memset(ids, 0, (size_t)T * sizeof *ids);
    for (int64_t t = 0; t < T; t++) targets[t] = HR_TARGET_IGNORED;
    if (at.first < 0) return HR_OK;
    hr_status status = hr_shard_read(shard, at.first, tokens, ids, err);
    if (status != HR_OK) return status;
    memcpy(targets, ids + 1, (size_t)(tokens - 1) * sizeof *ids);
    status = hr_shard_read(shard, at.first + tokens, 1, targets + tokens - 1, err);
    return status == HR_OK ? mask_window(b, at, targets, targets_count, err) : status;
}

hr_status hr_batches_fill(hr_batches *batches, int64_t step, int64_t row_first, int64_t rows,
                          int32_t *ids, int32_t *targets, int64_t *targets_count, hr_error *err)
{
    const int64_t T = batches->stage.T;
    int64_t targets_sum = 0, count = 0;
    HR_ASSERT(step >= 0 && row_first >= 0 && rows >= 0 && row_first + rows <= batches->stage.batch);
    for (int64_t row = 0; row < rows; row++) {
        const hr_status status = fill_row(batches, place_of(batches, step, row_first + row),
                                          ids + row * T, targets + row * T, &count, err);
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
    for (int64_t row = 0; row < batches->stage.batch; row++) {
        const place at = place_of(batches, step, row);
        if (at.first < 0) continue;
        const hr_status status = batches->shards[at.shard]
                                     ? mask_window(batches, at, NULL, &count, err)
                                     : batches->rows.read(batches->rows.context, at.first, NULL,
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
    if (b->fixed) windows = hr_min(windows, b->stage.batch);
    if (shard && is_masked(shard)) windows = 0;
    hr_status status = HR_OK;
    for (int64_t w = 0; w < windows && count == 0 && status == HR_OK; w++)
        status = shard ? mask_window(b, window_of(b, index, w), NULL, &count, err)
                       : b->rows.read(b->rows.context, w, NULL, NULL, &count, err);
    *found = count > 0;
    return status;
}

hr_status hr_batches_check_targets(hr_batches *batches, const char *name, hr_error *err)
{
    const int32_t shards = (int32_t)hr_max(batches->mixture_count, 1);
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
    memset(begins, 0, (size_t)b->stage.T * sizeof *begins);
    if (at.first < 0 || !shard || hr_shard_view(shard)->documents < 2) return HR_OK;
    for (int64_t first = 0; first < at.tokens; first += MARKS) {
        const int64_t count = hr_min(MARKS, at.tokens - first);
        const hr_status status = hr_shard_marks(shard, at.first + first, count, marks, err);
        if (status != HR_OK) return status;
        for (int64_t t = 0; t < count; t++) {
            if (marks[t] & HR_TOKEN_BEGINS) begun = (int32_t)(first + t);
            begins[first + t] = begun;
        }
    }
    for (int64_t t = at.tokens; t < b->stage.T; t++) begins[t] = begun;
    return HR_OK;
}

hr_status hr_batches_begins(hr_batches *batches, int64_t step, int64_t row_first, int64_t rows,
                            int32_t *begins, hr_error *err)
{
    hr_status status = HR_OK;
    HR_ASSERT(step >= 0 && row_first >= 0 && rows >= 0 && row_first + rows <= batches->stage.batch);
    for (int64_t row = 0; row < rows && status == HR_OK; row++)
        status = begins_of(batches, place_of(batches, step, row_first + row),
                           begins + row * batches->stage.T, err);
    return status;
}
