/* SPDX-License-Identifier: Apache-2.0 */
/* batch_test.c - every window occurs once per epoch, at a position that depends only on (seed,
 * step). */
#include "batch_case.h"

#include <math.h>

#include "base/random.h"
#include "config/config.h"

static void an_order_is_a_permutation_for_every_count(void **state)
{
    (void)state;
    static uint8_t seen[20000];
    for (int64_t count = 1; count < 20000; count += 1 + count / 5) {
        memset(seen, 0, sizeof seen);
        for (int64_t i = 0; i < count; i++) {
            const int64_t to = hr_batch_order(7, 3, i, count);
            assert_in_range(to, 0, count - 1);
            assert_int_equal(seen[to]++, 0);
        }
    }
    assert_in_range(hr_batch_order(7, 3, 0, INT64_C(1) << 40), 0, INT64_C(1) << 40);
}

/* 24 orders of 4 windows: in 24,000 epochs each occurs 1000 times, within 6 sigma. */
static void all_orders_are_equally_likely(void **state)
{
    (void)state;
    int counts[256] = { 0 };
    for (int64_t epoch = 0; epoch < 24000; epoch++) {
        int code = 0;
        for (int64_t i = 0; i < 4; i++) code = code * 4 + (int)hr_batch_order(11, epoch, i, 4);
        counts[code]++;
    }
    int orders = 0;
    for (int i = 0; i < 256; i++) {
        if (counts[i] == 0) continue;
        assert_in_range(counts[i], 1000 - 190, 1000 + 190);
        orders++;
    }
    assert_int_equal(orders, 24);
}

/* 120 orders of 5 windows: chi-squared with 119 degrees of freedom has a standard deviation of
 * sqrt(238). */
static void orders_of_five_pass_a_chi_squared_test(void **state)
{
    (void)state;
    static int counts[3125];
    double sum = 0;
    int orders = 0;
    for (int64_t epoch = 0; epoch < 24000; epoch++) {
        int code = 0;
        for (int64_t i = 0; i < 5; i++) code = code * 5 + (int)hr_batch_order(11, epoch, i, 5);
        counts[code]++;
    }
    for (int i = 0; i < 3125; i++) {
        if (counts[i] == 0) continue;
        sum += (counts[i] - 200.0) * (counts[i] - 200.0) / 200;
        orders++;
    }
    assert_int_equal(orders, 120);
    assert_true(fabs(sum - 119) < 6 * sqrt(238));
}

static void different_seeds_and_epochs_give_different_orders(void **state)
{
    (void)state;
    int same_seed = 0, same_epoch = 0;
    for (int64_t i = 0; i < 1000; i++) {
        const int64_t here = hr_batch_order(1, 0, i, 1000);
        same_seed += here == hr_batch_order(2, 0, i, 1000);
        same_epoch += here == hr_batch_order(1, 1, i, 1000);
    }
    assert_in_range(same_seed, 0, 10);
    assert_in_range(same_epoch, 0, 10);
}

static void an_epoch_has_each_window_at_most_once_and_targets_are_next_tokens(void **state)
{
    (void)state;
    enum { T = 8, BATCH = 6, WINDOWS = 63 };
    int32_t ids[BATCH * T], targets[BATCH * T];
    uint8_t seen[WINDOWS] = { 0 };
    int64_t count;
    hr_error err;
    write_shard(WINDOWS * T + T); /* one token too few for a 64th window */
    const hr_batch_desc desc = describe(T, BATCH, true);
    hr_batches *batches = open_batches(&desc);
    assert_int_equal(hr_batches_view(batches)->windows, WINDOWS);
    assert_int_equal(hr_batches_view(batches)->batches, 10);
    for (int64_t step = 10; step < 20; step++) {
        assert_int_equal(hr_batches_fill(batches, step, 0, BATCH, ids, targets, &count, &err),
                         HR_OK);
        assert_int_equal(count, BATCH * T);
        for (int row = 0; row < BATCH; row++) {
            assert_int_equal(ids[row * T] % T, 0);
            assert_int_equal(seen[ids[row * T] / T]++, 0);
            for (int t = 0; t < T; t++) {
                assert_int_equal(ids[row * T + t], ids[row * T] + t);
                assert_int_equal(targets[row * T + t], ids[row * T] + t + 1);
            }
        }
    }
    close_batches(batches);
}

static void a_resumed_run_sees_the_same_batches_in_any_pieces(void **state)
{
    (void)state;
    enum { T = 5, BATCH = 12, STEPS = 30 };
    static int32_t whole[STEPS][BATCH * T], after[STEPS][BATCH * T];
    int32_t ids[BATCH * T], targets[BATCH * T];
    int64_t count;
    hr_error err;
    write_shard(1000);
    const hr_batch_desc desc = describe(T, BATCH, true);
    hr_batches *batches = open_batches(&desc);
    for (int step = 0; step < STEPS; step++)
        assert_int_equal(
            hr_batches_fill(batches, step, 0, BATCH, whole[step], after[step], &count, &err),
            HR_OK);
    close_batches(batches);
    assert_memory_not_equal(whole[0], whole[16], sizeof whole[0]); /* 16 steps per epoch */
    batches = open_batches(&desc);
    for (int step = STEPS - 1; step >= 7; step--)
        for (int rows = 1; rows <= BATCH; rows++) {
            for (int row = 0; row < BATCH; row += rows) {
                if (BATCH % rows) continue;
                assert_int_equal(
                    hr_batches_fill(batches, step, row, rows, ids, targets, &count, &err), HR_OK);
                assert_int_equal(count, rows * T);
                assert_memory_equal(ids, whole[step] + row * T, (size_t)count * sizeof *ids);
                assert_memory_equal(targets, after[step] + row * T, (size_t)count * sizeof *ids);
            }
        }
    close_batches(batches);
}

static void evaluation_goes_in_order_and_keeps_the_partial_batch(void **state)
{
    (void)state;
    enum { T = 4, BATCH = 5 };
    int32_t ids[BATCH * T], targets[BATCH * T];
    int64_t count, total = 0, next = 0;
    hr_error err;
    write_shard(13 * T + 1);
    const hr_batch_desc desc = describe(T, BATCH, false);
    hr_batches *batches = open_batches(&desc);
    assert_int_equal(hr_batches_view(batches)->windows, 13);
    assert_int_equal(hr_batches_view(batches)->batches, 3);
    for (int64_t step = 0; step < 4; step++) {
        assert_int_equal(hr_batches_fill(batches, step, 0, BATCH, ids, targets, &count, &err),
                         HR_OK);
        for (int64_t i = 0; i < count; i++, next++) {
            assert_int_equal(ids[i], next);
            assert_int_equal(targets[i], next + 1);
        }
        for (int64_t i = count; i < BATCH * T; i++) {
            assert_int_equal(ids[i], 0);
            assert_int_equal(targets[i], HR_TARGET_IGNORED);
        }
        total += count;
    }
    assert_int_equal(total, 13 * T);
    assert_int_equal(count, 0);
    close_batches(batches);
}

/* Rows of the caller: row r has ids r, and r % 3 of its T targets count. */
enum { ROW_T = 4 };

static hr_status read_row(void *context, int64_t row, int32_t *ids, int32_t *targets,
                          int64_t *targets_count, hr_error *err)
{
    int64_t *failing = context;
    if (row == *failing) return hr_fail(err, HR_CORRUPT, "row %lld is wrong", (long long)row);
    for (int64_t t = 0; ids && t < ROW_T; t++) {
        ids[t] = (int32_t)row;
        targets[t] = t < row % 3 ? (int32_t)(row + t) : HR_TARGET_IGNORED;
    }
    *targets_count = row % 3;
    return HR_OK;
}

static hr_batch_desc describe_rows(int64_t count, int64_t batch, bool training, int64_t *failing)
{
    hr_batch_desc desc = describe(ROW_T, batch, training);
    desc.shard = "";
    desc.rows = (hr_batch_rows){ count, failing, read_row };
    return desc;
}

/* Rows come in the order of windows; targets are counted before reading, for any split of the
 * batch. */
static void rows_come_in_the_order_of_windows_and_count_their_targets(void **state)
{
    (void)state;
    enum { BATCH = 5, ROWS = 23 };
    int64_t failing = -1, count, sum;
    int32_t ids[BATCH * ROW_T], targets[BATCH * ROW_T];
    uint8_t seen[ROWS] = { 0 };
    hr_error err;
    const hr_batch_desc desc = describe_rows(ROWS, BATCH, true, &failing);
    hr_batches *batches = open_batches(&desc);
    assert_int_equal(hr_batches_view(batches)->windows, ROWS);
    assert_int_equal(hr_batches_view(batches)->batches, 4);
    for (int64_t step = 4; step < 8; step++) {
        int64_t real = 0;
        for (int64_t row = 0; row < BATCH; row++) {
            const int64_t place = hr_batch_order(5, 1, (step - 4) * BATCH + row, ROWS);
            assert_int_equal(hr_batches_fill(batches, step, row, 1, ids, targets, &count, &err),
                             HR_OK);
            assert_int_equal(ids[0], place);
            assert_int_equal(count, place % 3);
            assert_int_equal(seen[place]++, 0);
            real += count;
        }
        assert_int_equal(hr_batches_targets(batches, step, &sum, &err), HR_OK);
        assert_int_equal(sum, real);
        assert_int_equal(hr_batches_fill(batches, step, 0, BATCH, ids, targets, &count, &err),
                         HR_OK);
        assert_int_equal(count, real);
    }
    failing = 3;
    int32_t failed = 0;
    for (int64_t step = 0; step < 5; step++)
        failed += hr_batches_targets(batches, step, &sum, &err) == HR_CORRUPT;
    assert_in_range(failed, 1, 2);
    assert_string_equal(err.message, "row 3 is wrong");
    close_batches(batches);
}

static void rows_for_evaluation_come_in_order_with_a_partial_batch(void **state)
{
    (void)state;
    enum { BATCH = 5, ROWS = 12 };
    int64_t failing = -1, count, sum, total = 0;
    int32_t ids[BATCH * ROW_T], targets[BATCH * ROW_T];
    hr_error err;
    const hr_batch_desc desc = describe_rows(ROWS, BATCH, false, &failing);
    hr_batches *batches = open_batches(&desc);
    assert_int_equal(hr_batches_view(batches)->batches, 3);
    for (int64_t step = 0; step < 4; step++) {
        assert_int_equal(hr_batches_fill(batches, step, 0, BATCH, ids, targets, &count, &err),
                         HR_OK);
        assert_int_equal(hr_batches_targets(batches, step, &sum, &err), HR_OK);
        assert_int_equal(sum, count);
        for (int64_t row = 0; row < BATCH; row++) {
            const int64_t place = step * BATCH + row;
            assert_int_equal(ids[row * ROW_T], place < ROWS ? place : 0);
            if (place >= ROWS) assert_int_equal(targets[row * ROW_T], HR_TARGET_IGNORED);
        }
        total += count;
    }
    assert_int_equal(total, 12);
    close_batches(batches);
}

static void a_fixed_batch_is_equal_in_every_step(void **state)
{
    (void)state;
    enum { BATCH = 5 };
    int64_t failing = -1, count;
    int32_t ids[BATCH * ROW_T], targets[BATCH * ROW_T];
    hr_error err;
    hr_batch_desc desc = describe_rows(BATCH, BATCH, true, &failing);
    desc.fixed = true;
    hr_batches *batches = open_batches(&desc);
    assert_int_equal(hr_batches_view(batches)->batches, 1);
    for (int64_t step = 0; step < 3; step++) {
        assert_int_equal(hr_batches_fill(batches, step, 0, BATCH, ids, targets, &count, &err),
                         HR_OK);
        for (int32_t row = 0; row < BATCH; row++) assert_int_equal(ids[row * ROW_T], row);
        assert_int_equal(count, 0 + 1 + 2 + 0 + 1);
        assert_int_equal(hr_batches_fill(batches, step, 2, 2, ids, targets, &count, &err), HR_OK);
        assert_int_equal(ids[0], 2);
        assert_int_equal(count, 2);
    }
    close_batches(batches);
}

static void windows_longer_than_the_staging_buffer_are_complete(void **state)
{
    (void)state;
    enum { T = 50000 };
    static int32_t ids[T], targets[T];
    int64_t count;
    hr_error err;
    write_shard(2 * T + 1);
    const hr_batch_desc desc = describe(T, 1, false);
    hr_batches *batches = open_batches(&desc);
    assert_int_equal(hr_batches_fill(batches, 1, 0, 1, ids, targets, &count, &err), HR_OK);
    for (int i = 0; i < T; i++) {
        assert_int_equal(ids[i], T + i);
        assert_int_equal(targets[i], T + i + 1);
    }
    close_batches(batches);
}

static void assert_refused(int64_t tokens, const hr_batch_desc *desc, hr_status status,
                           const char *sentence)
{
    static _Alignas(64) uint8_t memory[1 << 18];
    hr_batches *batches = NULL;
    hr_error err;
    assert_true(hr_batches_bytes(1) <= (int64_t)sizeof memory);
    write_shard(tokens);
    assert_int_equal(hr_batches_open(&batches, memory, desc, &err), status);
    assert_null(batches);
    assert_string_equal(err.message, sentence);
}

static void texts_that_are_too_short_are_refused_with_both_numbers(void **state)
{
    (void)state;
    hr_batch_desc desc = describe(128, 32, true);
    assert_refused(128, &desc, HR_CORRUPT,
                   "data.train: has 128 tokens, but one window of train.seq_len=128 needs 129: "
                   "give a longer text or use train.seq_len=127");
    assert_refused(0, &desc, HR_CORRUPT,
                   "data.train: has 0 tokens, but one window of train.seq_len=128 needs 129: "
                   "give a longer text");
    assert_refused(128 * 31 + 1, &desc, HR_CORRUPT,
                   "data.train: has 31 windows of train.seq_len=128, but one batch needs 32: "
                   "give a longer text or use train.batch=31");
    int64_t failing = -1;
    const hr_batch_desc rows = describe_rows(3, 8, true, &failing);
    assert_refused(0, &rows, HR_CORRUPT,
                   "data.train: has 3 rows of train.seq_len=4, but one batch needs 8: give more "
                   "rows or use train.batch=3");
    desc.vocab_size = 10000;
    assert_refused(129 * 32, &desc, HR_USAGE,
                   "data.train: has token ids up to 131071, but model.vocab_size is 10000: use "
                   "model.vocab_size=131072");
}

static void a_flipped_bit_is_detected_when_its_window_is_read(void **state)
{
    (void)state;
    int32_t ids[16], targets[16];
    int64_t count;
    hr_error err;
    write_shard(5000);
    const hr_batch_desc desc = describe(16, 1, false);
    hr_batches *batches = open_batches(&desc);
    FILE *file = fopen(desc.shard, "r+b");
    const uint8_t wrong = 0x55;
    /* within tokens 1022 to 2043 */
    assert_int_equal(pwrite(fileno(file), &wrong, 1, 4096 * 2 + 100), 1);
    fclose(file);
    assert_int_equal(hr_batches_fill(batches, 1, 0, 1, ids, targets, &count, &err), HR_OK);
    assert_int_equal(hr_batches_fill(batches, 64, 0, 1, ids, targets, &count, &err), HR_CORRUPT);
    assert_non_null(strstr(err.message, "block 2 (bytes 8192 to 12288) is damaged"));
    assert_int_equal(hr_batches_fill(batches, 200, 0, 1, ids, targets, &count, &err), HR_OK);
    close_batches(batches);
}

/* ---- documents, masks, mixtures */

enum { MIX_T = 7, LENGTH = 50 };

/* Documents of LENGTH tokens each. Token i has id `first` + i; the first third of each document is
 * masked. */
static void write_documents(const char *name, int64_t tokens, uint32_t first)
{
    hr_shard_writer *writer = NULL;
    hr_error err;
    void *memory = malloc((size_t)hr_shard_writer_bytes());
    const hr_shard_desc desc = { folder.path, name, 1 << 17, HR_SHARD_DOCUMENTS | HR_SHARD_MASKS,
                                 -1 };
    assert_int_equal(hr_shard_begin(&writer, memory, &desc, &err), HR_OK);
    for (int64_t i = 0; i < tokens; i++) {
        const uint32_t id = first + (uint32_t)i;
        if (i % LENGTH == 0) hr_shard_document(writer);
        hr_shard_mask(writer, i % LENGTH >= LENGTH / 3);
        assert_int_equal(hr_shard_append(writer, &id, 1, &err), HR_OK);
    }
    assert_int_equal(hr_shard_commit(writer, &(hr_shard_info){ .kind = HR_TOKENIZER_WORDS }, &err),
                     HR_OK);
    free(memory);
}

static void masked_tokens_and_first_tokens_of_documents_are_not_targets(void **state)
{
    (void)state;
    enum { T = 1300, TOKENS = 5300 };
    static int32_t ids[T], targets[T], begins[T];
    write_documents("ids", TOKENS, 0);
    for (int separate = 0; separate < 2; separate++) {
        hr_batch_desc desc = describe(T, 1, false);
        desc.separate = separate;
        hr_batches *batches = open_batches(&desc);
        for (int64_t step = 0; step < (TOKENS - 1) / T; step++) {
            hr_error err;
            int64_t count, counted = 0, before;
            assert_int_equal(hr_batches_targets(batches, step, &before, &err), HR_OK);
            assert_int_equal(hr_batches_fill(batches, step, 0, 1, ids, targets, &count, &err),
                             HR_OK);
            assert_int_equal(hr_batches_begins(batches, step, 0, 1, begins, &err), HR_OK);
            for (int64_t t = 0; t < T; t++) {
                const int64_t token = step * T + t, next = token + 1;
                const bool masked = next % LENGTH < LENGTH / 3;
                assert_int_equal(ids[t], token);
                assert_int_equal(targets[t], masked ? HR_TARGET_IGNORED : next);
                const int64_t document = token / LENGTH * LENGTH - step * T;
                assert_int_equal(begins[t], document > 0 ? document : 0);
                counted += !masked;
            }
            assert_int_equal(count, counted);
            assert_int_equal(before, counted);
        }
        close_batches(batches);
    }
    /* Without masks, only the first token of a further document is not a target. */
    hr_shard_writer *writer = NULL;
    hr_error err;
    int64_t count;
    static uint32_t tokens[TOKENS];
    void *memory = malloc((size_t)hr_shard_writer_bytes());
    const hr_shard_desc shard = { folder.path, "ids", 9, HR_SHARD_DOCUMENTS, -1 };
    assert_int_equal(hr_shard_begin(&writer, memory, &shard, &err), HR_OK);
    for (int i = 0; i < TOKENS; i += LENGTH) {
        hr_shard_document(writer);
        assert_int_equal(hr_shard_append(writer, tokens, LENGTH, &err), HR_OK);
    }
    assert_int_equal(hr_shard_commit(writer, &(hr_shard_info){ .kind = HR_TOKENIZER_WORDS }, &err),
                     HR_OK);
    free(memory);
    hr_batch_desc desc = describe(T, 1, false);
    desc.separate = true;
    hr_batches *batches = open_batches(&desc);
    assert_int_equal(hr_batches_fill(batches, 0, 0, 1, ids, targets, &count, &err), HR_OK);
    assert_int_equal(count, T - T / LENGTH);
    for (int64_t t = 0; t < T; t++)
        assert_int_equal(targets[t], (t + 1) % LENGTH ? 0 : HR_TARGET_IGNORED);
    close_batches(batches);
}

/* Every block has the exact shares. Each shard shows all of its windows once before any of them
 * again, except in a block across two epochs. Steps do not depend on the order of the calls. */
static void a_mixture_has_exact_shares_and_complete_epochs_of_each_shard(void **state)
{
    (void)state;
    enum { B = 4, STEPS = 300, PARTS = 3, MOST = 200 };
    static const int64_t tokens[PARTS] = { 700, 1400, 71 };
    static int32_t ids[B * MIX_T], targets[B * MIX_T], again[B * MIX_T];
    static int64_t seen[PARTS][MOST], rows_of[PARTS], in_block[PARTS];
    char paths[PARTS][512];
    hr_batch_desc desc = describe(MIX_T, B, true);
    desc.mixture = (hr_batch_mixture){ .count = PARTS, .shares = { 6, 3, 1 }, .block = 10 };
    for (int i = 0; i < PARTS; i++) {
        char name[24];
        snprintf(name, sizeof name, "part%d", i);
        write_documents(name, tokens[i], (uint32_t)(10000 * i));
        strcpy(paths[i], hr_folder_path(&folder, name));
        desc.mixture.shards[i] = paths[i];
    }
    hr_batches *batches = NULL;
    hr_error err;
    int64_t count, row = 0;
    void *memory = hr_guard_open(&guard, hr_batches_bytes(PARTS));
    assert_int_equal(hr_batches_open(&batches, memory, &desc, &err), HR_OK);
    assert_int_equal(hr_batches_view(batches)->windows, 99 + 199 + 10);
    assert_int_equal(hr_batches_view(batches)->batches, 308 / B);
    for (int64_t step = 0; step < STEPS; step++) {
        assert_int_equal(hr_batches_fill(batches, step, 0, B, ids, targets, &count, &err), HR_OK);
        for (int b = 0; b < B; b++, row++) {
            const int part = ids[b * MIX_T] / 10000;
            const int64_t window = ids[b * MIX_T] % 10000 / MIX_T;
            for (int t = 0; t < MIX_T; t++)
                assert_int_equal(ids[b * MIX_T + t], 10000 * part + window * MIX_T + t);
            /* one pass after the other */
            assert_int_equal(seen[part][window]++, rows_of[part]++ / ((tokens[part] - 1) / MIX_T));
            in_block[part]++;
            if (row % 10 != 9) continue;
            for (int i = 0; i < PARTS; i++) assert_int_equal(in_block[i], desc.mixture.shares[i]);
            memset(in_block, 0, sizeof in_block);
        }
    }
    for (int i = 0; i < PARTS; i++) {
        const int64_t windows = (tokens[i] - 1) / MIX_T, passes = rows_of[i] / windows;
        assert_true(rows_of[i] == STEPS * B * desc.mixture.shares[i] / 10);
        for (int64_t w = 0; w < windows; w++) assert_in_range(seen[i][w], passes, passes + 1);
    }
    for (int64_t step = STEPS - 1; step >= 0; step -= 37) {
        assert_int_equal(hr_batches_fill(batches, step, 0, B, ids, targets, &count, &err), HR_OK);
        assert_int_equal(hr_batches_fill(batches, 0, 0, B, again, targets, &count, &err), HR_OK);
        assert_int_equal(hr_batches_fill(batches, step, 2, 1, again, targets, &count, &err), HR_OK);
        assert_memory_equal(again, ids + 2 * MIX_T, MIX_T * sizeof *ids);
    }
    close_batches(batches);
    /* Another seed gives another order; an error names the part that is too short. */
    desc.seed++;
    batches = NULL;
    memory = hr_guard_open(&guard, hr_batches_bytes(PARTS));
    assert_int_equal(hr_batches_open(&batches, memory, &desc, &err), HR_OK);
    assert_int_equal(hr_batches_fill(batches, 0, 0, B, again, targets, &count, &err), HR_OK);
    hr_batches_close(&batches);
    desc.T = 100;
    assert_int_equal(hr_batches_open(&batches, memory, &desc, &err), HR_CORRUPT);
    assert_non_null(strstr(err.message, "part2: has 71 tokens, but one window"));
    desc.longest = 200;
    assert_int_equal(hr_batches_open(&batches, memory, &desc, &err), HR_CORRUPT);
    assert_non_null(strstr(err.message, "one window of a stage with seq_len=200 needs 201: give a "
                                        "longer text or use seq_len="));
    close_batches(batches);
}

/* Shares that are exact only in a long block hold in a short run, too, up to a few rows. */
static void a_short_run_has_the_shares_of_a_long_block(void **state)
{
    (void)state;
    enum { B = 8, STEPS = 5, PARTS = 2 };
    static int32_t ids[B * MIX_T], targets[B * MIX_T];
    char paths[PARTS][512];
    hr_batch_desc desc = describe(MIX_T, B, true);
    desc.mixture = (hr_batch_mixture){ .count = PARTS, .shares = { 5001, 4999 }, .block = 10000 };
    for (int i = 0; i < PARTS; i++) {
        char name[24];
        snprintf(name, sizeof name, "short%d", i);
        write_documents(name, 20 * MIX_T + 1, (uint32_t)(10000 * i));
        strcpy(paths[i], hr_folder_path(&folder, name));
        desc.mixture.shards[i] = paths[i];
    }
    for (desc.seed = 1; desc.seed < 20; desc.seed++) {
        uint8_t seen[PARTS][20] = { { 0 } };
        int64_t count, windows = 0;
        hr_batches *batches = NULL;
        hr_error err;
        void *memory = hr_guard_open(&guard, hr_batches_bytes(PARTS));
        assert_int_equal(hr_batches_open(&batches, memory, &desc, &err), HR_OK);
        for (int64_t step = 0; step < STEPS; step++) {
            assert_int_equal(hr_batches_fill(batches, step, 0, B, ids, targets, &count, &err),
                             HR_OK);
            for (int b = 0; b < B; b++) {
                uint8_t *window = &seen[ids[b * MIX_T] / 10000][ids[b * MIX_T] % 10000 / MIX_T];
                windows += !*window;
                *window = 1;
            }
        }
        assert_in_range(windows, PARTS * 20 - 3, PARTS * 20);
        close_batches(batches);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_is_a_permutation_for_every_count),
        cmocka_unit_test(all_orders_are_equally_likely),
        cmocka_unit_test(orders_of_five_pass_a_chi_squared_test),
        cmocka_unit_test(different_seeds_and_epochs_give_different_orders),
        TEST(an_epoch_has_each_window_at_most_once_and_targets_are_next_tokens),
        TEST(a_resumed_run_sees_the_same_batches_in_any_pieces),
        TEST(evaluation_goes_in_order_and_keeps_the_partial_batch),
        TEST(rows_come_in_the_order_of_windows_and_count_their_targets),
        TEST(rows_for_evaluation_come_in_order_with_a_partial_batch),
        TEST(a_fixed_batch_is_equal_in_every_step),
        TEST(windows_longer_than_the_staging_buffer_are_complete),
        TEST(texts_that_are_too_short_are_refused_with_both_numbers),
        TEST(a_flipped_bit_is_detected_when_its_window_is_read),
        TEST(masked_tokens_and_first_tokens_of_documents_are_not_targets),
        TEST(a_mixture_has_exact_shares_and_complete_epochs_of_each_shard),
        TEST(a_short_run_has_the_shares_of_a_long_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
