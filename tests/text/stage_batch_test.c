/* SPDX-License-Identifier: Apache-2.0 */
/* stage_batch_test.c - every token occurs once a pass, in stages of any lengths and batches. */
#include "batch_case.h"

#include "text/cursor.h"

/* Three passes over a text in stages whose lengths do not divide it: every token is a target once a
 * pass, whatever the stages, and a batch depends on its number and the cursor alone. */
static void stages_use_every_token_once_a_pass(void **state)
{
    (void)state;
    enum { TOKENS = 10007, PASSES = 3, LENGTHS = 4, ROWS_MOST = 9, T_MOST = 48 };
    static const int64_t lengths[LENGTHS] = { 5, 24, 48, 7 }, rows[LENGTHS] = { 9, 4, 2, 5 };
    static int32_t ids[ROWS_MOST * T_MOST], targets[ROWS_MOST * T_MOST], again[ROWS_MOST * T_MOST];
    static uint8_t seen[TOKENS];
    int64_t count, counted, padded = 0, number = 0, targets_all = 0;
    hr_batch_cursor cursor = { 0 };
    hr_error err;
    write_shard(TOKENS);
    hr_batch_desc desc = describe(lengths[0], rows[0], true);
    desc.unit = hr_passes_unit(lengths, LENGTHS);
    desc.longest = T_MOST;
    hr_batches *batches = open_batches(&desc);
    memset(seen, 0, sizeof seen);
    for (int32_t k = 0; k < LENGTHS; k++) {
        const int64_t T = lengths[k];
        const hr_batch_stage stage = { .T = T, .batch = rows[k], .first = number };
        hr_batches_enter(batches, &stage, &cursor, PASSES);
        const int64_t left = hr_batches_left(batches), last = number + (k < 3 ? left / 3 : left);
        for (; number < last; number++) {
            assert_int_equal(hr_batches_targets(batches, number, &counted, &err), HR_OK);
            assert_int_equal(
                hr_batches_fill(batches, number, 0, rows[k], ids, targets, &count, &err), HR_OK);
            assert_int_equal(counted, count);
            for (int64_t i = 0; i < rows[k] * T; i++) {
                padded += targets[i] < 0;
                if (targets[i] < 0) continue;
                assert_int_equal(targets[i], ids[i] + 1);
                assert_true(i % T == 0 || ids[i] == ids[i - 1] + 1);
                seen[ids[i]]++;
            }
            targets_all += count;
            assert_int_equal(hr_batches_fill(batches, number, 1, 1, again, targets, &count, &err),
                             HR_OK);
            assert_memory_equal(again, ids + T, (size_t)T * sizeof *ids);
        }
        cursor = hr_batches_cursor(batches, number);
        assert_true(k == 3 ? cursor.at[0] >= PASSES * (TOKENS - 1) : cursor.at[0] == targets_all);
    }
    for (int64_t t = 0; t < TOKENS - 1; t++) assert_int_equal(seen[t], PASSES);
    assert_int_equal(seen[TOKENS - 1], 0);
    assert_true(padded < targets_all / 50);
    close_batches(batches);
}

/* A shard that a stage leaves out goes on where it stopped. */
static void a_shard_goes_on_where_an_earlier_stage_left_it(void **state)
{
    (void)state;
    enum { PARTS = 2, TOKENS = 401, B = 4 };
    static int32_t ids[B * 20], targets[B * 20];
    static uint8_t seen[PARTS][TOKENS];
    static const hr_batch_stage stages[] = {
        { .T = 10, .batch = B, .first = 0, .shares = { 3, 1 }, .block = 4 },
        { .T = 20, .batch = B, .first = 7, .shares = { 0, 1 }, .block = 1 },
        { .T = 5, .batch = B, .first = 9, .shares = { 1, 1 }, .block = 2 },
    };
    char paths[PARTS][512];
    hr_batch_desc desc = describe(10, B, true);
    desc.mixture = (hr_batch_mixture){ .count = PARTS, .shares = { 3, 1 }, .block = 4 };
    desc.unit = 20;
    desc.longest = 20;
    for (int i = 0; i < PARTS; i++) {
        char name[24];
        snprintf(name, sizeof name, "stage%d", i);
        write_shard_from(name, TOKENS, (uint32_t)(10000 * i));
        strcpy(paths[i], hr_folder_path(&folder, name));
        desc.mixture.shards[i] = paths[i];
    }
    hr_batches *batches = NULL;
    hr_batch_cursor cursor = { 0 };
    hr_error err;
    int64_t count, read[PARTS] = { 0 };
    void *memory = hr_guard_open(&guard, hr_batches_bytes(PARTS));
    assert_int_equal(hr_batches_open(&batches, memory, &desc, &err), HR_OK);
    for (int k = 0; k < 3; k++) {
        const int64_t end = k < 2 ? stages[k + 1].first : 14;
        hr_batches_enter(batches, &stages[k], &cursor, 0);
        for (int64_t number = stages[k].first; number < end; number++) {
            assert_int_equal(hr_batches_fill(batches, number, 0, B, ids, targets, &count, &err),
                             HR_OK);
            for (int64_t i = 0; i < B * stages[k].T; i++) {
                if (targets[i] < 0) continue;
                seen[ids[i] / 10000][ids[i] % 10000]++;
                read[ids[i] / 10000]++;
            }
        }
        cursor = hr_batches_cursor(batches, end);
        for (int i = 0; i < PARTS; i++) assert_int_equal(cursor.at[i], read[i]);
    }
    for (int i = 0; i < PARTS; i++)
        for (int t = 0; t < TOKENS - 1; t++)
            assert_in_range(seen[i][t], read[i] / (TOKENS - 1), read[i] / (TOKENS - 1) + 1);
    close_batches(batches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(stages_use_every_token_once_a_pass),
        TEST(a_shard_goes_on_where_an_earlier_stage_left_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
