/* SPDX-License-Identifier: Apache-2.0 */
/* space_file_test.c - transfers in the background have the effect of transfers one after the other,
 * and the first failure reaches all who wait. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/random.h"
#include "dev/space_file.h"
#include "support/file_calls.h"
#include "support/folder.h"

enum {
    BLOCK = HR_BLOCK_BYTES,
    BLOCKS = 64,
    DATA_BYTES = BLOCKS * BLOCK,
    HEADER_BYTES = BLOCK,
    ROUNDS = 12,
    LARGE_BYTES = 3 * HR_SPACE_PIECE_BYTES + 5 * BLOCK
};

static hr_folder folder;
static hr_space_file space;
static hr_error err;
static void *stacks;
static _Alignas(64) uint8_t tables[4 * (LARGE_BYTES / BLOCK) + 64];
static _Alignas(BLOCK) uint8_t memory[LARGE_BYTES], memory_after[LARGE_BYTES];
static uint8_t content[DATA_BYTES]; /* of the file, after all transfers */
static uint64_t draw;
static atomic_bool held;      /* transfers at held_at wait */
static atomic_long held_at;   /* in the file */
static atomic_int held_calls; /* that have begun to wait */

static bool hold(off_t at)
{
    static _Thread_local off_t counted = -1;
    if (!held || at != held_at) {
        counted = -1;
        return false;
    }
    if (counted != at) atomic_fetch_add(&held_calls, 1);
    counted = at;
    return true;
}

/* A slow disk: calls take random times, and end in another order than they begin. */
static bool linger(off_t at)
{
    static _Thread_local uint64_t turns;
    return hr_random_mix((uint64_t)at + ++turns) % 16;
}

static void hold_at(int64_t offset)
{
    held_calls = 0;
    held_at = HEADER_BYTES + offset;
    held = true;
    calls.held = hold;
}

static int64_t random_below(int64_t most)
{
    return (int64_t)(hr_random_mix(++draw) % (uint64_t)most);
}

static void fill(uint8_t *bytes, int64_t count)
{
    for (int64_t i = 0; i < count; i++) bytes[i] = (uint8_t)hr_random_mix(++draw);
}

static hr_status open_space(int64_t bytes, int32_t threads)
{
    const hr_space_file_options options = {
        { .directory = folder.path, .name = "space.bin", .run = "a test", .bytes = bytes }, threads
    };
    hr_region region = hr_region_over(tables, sizeof tables);
    assert_true(hr_space_file_bytes(&options) <= region.bytes);
    assert_true(hr_space_file_stack_bytes(&options) <= HR_SPACE_THREADS_MOST * HR_STACK_BYTES);
    return hr_space_file_open(&space, &options, &region, stacks, &err);
}

static void open_well(int64_t bytes, int32_t threads)
{
    if (open_space(bytes, threads) != HR_OK) fail_msg("%s", err.message);
}

static int64_t begin(hr_space_direction direction, uint8_t *at, int64_t offset, int64_t bytes)
{
    return hr_space_file_begin(&space, (hr_space_transfer){ direction, at, offset, bytes });
}

static void wait_well(int64_t ticket)
{
    if (hr_space_file_wait(&space, ticket, &err) != HR_OK) fail_msg("%s", err.message);
    assert_true(hr_space_file_is_done(&space, ticket));
}

static void assert_refused(int64_t ticket, hr_status status, const char *text)
{
    hr_error why = { .status = HR_OK };
    assert_int_equal(hr_space_file_wait(&space, ticket, &why), status);
    assert_int_equal(why.status, status);
    if (!strstr(why.message, text)) fail_msg("not \"%s\": %s", text, why.message);
    assert_true(hr_space_file_is_done(&space, ticket));
}

static int start(void **state)
{
    (void)state;
    folder = hr_folder_open();
    memset(&calls, 0, sizeof calls);
    held = false;
    stacks = mmap(0, HR_SPACE_THREADS_MOST * HR_STACK_BYTES, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return stacks == MAP_FAILED;
}

static int finish(void **state)
{
    (void)state;
    held = false;
    hr_space_file_close(&space);
    memset(&calls, 0, sizeof calls);
    munmap(stacks, HR_SPACE_THREADS_MOST * HR_STACK_BYTES);
    hr_folder_close(&folder);
    return 0;
}

/* ---- order */

/* Begins a random transfer, and does it in the models of the file and of the memory. */
static int64_t begin_at_random(void)
{
    const int64_t bytes = BLOCK * (1 + random_below(BLOCKS / 4));
    const int64_t offset = BLOCK * random_below((DATA_BYTES - bytes) / BLOCK + 1);
    const int64_t at = BLOCK * random_below((DATA_BYTES - bytes) / BLOCK + 1);
    const hr_space_direction direction = random_below(2) ? HR_SPACE_SPILL : HR_SPACE_FETCH;
    if (direction == HR_SPACE_SPILL) memcpy(content + offset, memory_after + at, (size_t)bytes);
    else memcpy(memory_after + at, content + offset, (size_t)bytes);
    return begin(direction, memory + at, offset, bytes);
}

static void transfer_at_random(int32_t threads, int32_t rounds)
{
    open_well(DATA_BYTES, threads);
    fill(memory, DATA_BYTES);
    memcpy(content, memory, DATA_BYTES);
    memcpy(memory_after, memory, DATA_BYTES);
    int64_t ticket = begin(HR_SPACE_SPILL, memory, 0, DATA_BYTES);
    for (int32_t i = 0; i < rounds; i++) {
        /* sometimes more than the ring holds */
        const int64_t most = random_below(8) ? HR_SPACE_TRANSFERS_MOST / 4
                                             : 3 * HR_SPACE_TRANSFERS_MOST / 2;
        for (int64_t count = 1 + random_below(most); count; count--) {
            const int64_t next = begin_at_random();
            assert_int_equal(next, ticket + 1);
            ticket = next;
            if (random_below(8) == 0) wait_well(random_below(ticket + 1));
        }
        for (int64_t t = 0; t <= ticket; t++) wait_well(t);
        assert_memory_equal(memory, memory_after, DATA_BYTES);
        fill(memory, DATA_BYTES / 2);
        memcpy(memory_after, memory, DATA_BYTES);
    }
    wait_well(begin(HR_SPACE_FETCH, memory, 0, DATA_BYTES));
    assert_memory_equal(memory, content, DATA_BYTES);
    hr_space_file_close(&space);
    assert_int_equal(hr_folder_count(&folder, ""), 0);
}

static void transfers_have_the_effect_of_their_order(void **state)
{
    (void)state;
    draw = 21;
    print_message("seed %llu\n", (unsigned long long)draw);
    for (int32_t threads = 1; threads <= 4; threads++)
        transfer_at_random(threads, ROUNDS * HR_COUNT);
}

static void slow_calls_change_nothing(void **state)
{
    (void)state;
    draw = 24;
    print_message("seed %llu\n", (unsigned long long)draw);
    calls.held = linger;
    for (int32_t threads = 2; threads <= HR_SPACE_THREADS_MOST; threads += 3)
        transfer_at_random(threads, ROUNDS / 4 * HR_COUNT);
}

static void interrupted_and_short_calls_change_nothing(void **state)
{
    (void)state;
    draw = 22;
    print_message("seed %llu\n", (unsigned long long)draw);
    for (int32_t threads = 1; threads <= 3; threads++) {
        memset(&calls, 0, sizeof calls);
        calls.most = 3 * BLOCK + 512;
        calls.interrupts = true;
        calls.no_direct = threads == 3;
        transfer_at_random(threads, 3 * HR_COUNT);
    }
}

static void a_fetch_waits_for_the_spill_of_its_range_only(void **state)
{
    (void)state;
    open_well(DATA_BYTES, 2);
    fill(memory, DATA_BYTES);
    wait_well(begin(HR_SPACE_SPILL, memory, 0, DATA_BYTES));
    memcpy(content, memory, DATA_BYTES);
    hold_at(8 * BLOCK);
    memset(memory + 8 * BLOCK, 3, 4 * BLOCK);
    memset(content + 8 * BLOCK, 3, 4 * BLOCK);
    const int64_t spill = begin(HR_SPACE_SPILL, memory + 8 * BLOCK, 8 * BLOCK, 4 * BLOCK);
    const int64_t same = begin(HR_SPACE_FETCH, memory_after, 11 * BLOCK, 2 * BLOCK);
    const int64_t other = begin(HR_SPACE_FETCH, memory_after + 8 * BLOCK, 20 * BLOCK, 8 * BLOCK);
    wait_well(other);
    assert_memory_equal(memory_after + 8 * BLOCK, content + 20 * BLOCK, 8 * BLOCK);
    assert_false(hr_space_file_is_done(&space, spill));
    assert_false(hr_space_file_is_done(&space, same));
    held = false;
    wait_well(same);
    assert_memory_equal(memory_after, content + 11 * BLOCK, 2 * BLOCK);
    wait_well(spill);
}

static void threads_share_the_pieces_of_a_transfer(void **state)
{
    (void)state;
    draw = 23;
    print_message("seed %llu\n", (unsigned long long)draw);
    open_well(LARGE_BYTES, 2);
    fill(memory, LARGE_BYTES);
    hold_at(HR_SPACE_PIECE_BYTES); /* the second piece; the others go past it */
    calls.writes = 0;
    const int64_t ticket = begin(HR_SPACE_SPILL, memory, 0, LARGE_BYTES);
    while (calls.writes < 4) sched_yield();
    assert_false(hr_space_file_is_done(&space, ticket));
    held = false;
    wait_well(ticket);
    memset(memory_after, 0, LARGE_BYTES);
    wait_well(begin(HR_SPACE_FETCH, memory_after, 0, LARGE_BYTES));
    assert_memory_equal(memory, memory_after, LARGE_BYTES);
}

/* ---- failures */

static void a_failure_ends_the_transfers_after_it(void **state)
{
    (void)state;
    open_well(DATA_BYTES, 1);
    fill(memory, DATA_BYTES);
    const int64_t good = begin(HR_SPACE_SPILL, memory, 0, DATA_BYTES);
    wait_well(good);
    assert_int_equal(hr_space_file_failure(&space, NULL), HR_OK);
    calls.reads = 0;
    calls.read_fails = 2;
    calls.code = EIO;
    const long writes = calls.writes;
    const int64_t before = begin(HR_SPACE_FETCH, memory, 0, 4 * BLOCK);
    const int64_t bad = begin(HR_SPACE_FETCH, memory, 4 * BLOCK, 4 * BLOCK);
    const int64_t after = begin(HR_SPACE_SPILL, memory + 20 * BLOCK, 20 * BLOCK, 4 * BLOCK);
    assert_refused(after, HR_FAILURE, "space.bin: cannot be read at byte 20480: Input/output");
    assert_refused(bad, HR_FAILURE, "cannot be read at byte 20480");
    memset(&err, 0, sizeof err);
    assert_int_equal(hr_space_file_failure(&space, NULL), HR_FAILURE);
    assert_int_equal(hr_space_file_failure(&space, &err), HR_FAILURE);
    assert_non_null(strstr(err.message, "Input/output error"));
    wait_well(before);
    wait_well(good);
    for (int32_t i = 0; i < 2 * HR_SPACE_TRANSFERS_MOST; i++)
        assert_refused(begin(HR_SPACE_SPILL, memory, 0, BLOCK), HR_FAILURE,
                       "cannot be read at byte 20480");
    hr_space_file_close(&space);
    assert_int_equal(calls.writes, writes);
}

static void a_full_ring_is_released_by_a_failure(void **state)
{
    (void)state;
    open_well(DATA_BYTES, 1);
    hold_at(0);
    calls.writes = 0;
    calls.write_fails = 1;
    calls.code = ENOSPC;
    int64_t ticket = 0;
    for (int32_t i = 0; i < HR_SPACE_TRANSFERS_MOST; i++)
        ticket = begin(HR_SPACE_SPILL, memory, i % BLOCKS * BLOCK, BLOCK);
    assert_int_equal(ticket, HR_SPACE_TRANSFERS_MOST - 1);
    held = false;
    ticket = begin(HR_SPACE_SPILL, memory, 0, BLOCK);
    assert_refused(ticket, HR_FAILURE, "cannot be written at byte 4096: No space left on device");
}

static void damage_is_reported(void **state)
{
    (void)state;
    static const char byte = 1;
    open_well(DATA_BYTES, 2);
    wait_well(begin(HR_SPACE_SPILL, memory, 0, DATA_BYTES / 2));
    const int other = open(hr_folder_path(&folder, "space.bin"), O_RDWR);
    memset(memory, 0, BLOCK);
    wait_well(begin(HR_SPACE_SPILL, memory, 7 * BLOCK, BLOCK));
    assert_int_equal(pwrite(other, &byte, 1, HEADER_BYTES + 7 * BLOCK + 99), 1);
    assert_int_equal(fsync(other), 0);
    close(other);
    assert_refused(begin(HR_SPACE_FETCH, memory, 0, DATA_BYTES / 2), HR_CORRUPT,
                   "space.bin: damaged: the block at byte 32768 has checksum");
    hr_space_file_close(&space);
    open_well(DATA_BYTES, 2);
    wait_well(begin(HR_SPACE_SPILL, memory, 0, DATA_BYTES / 2));
    assert_refused(begin(HR_SPACE_FETCH, memory, DATA_BYTES / 2 - BLOCK, 2 * BLOCK), HR_CORRUPT,
                   "is read but was never written");
}

static void a_removed_file_is_reported(void **state)
{
    (void)state;
    open_well(DATA_BYTES, 1);
    wait_well(begin(HR_SPACE_SPILL, memory, 0, DATA_BYTES));
    assert_int_equal(unlink(hr_folder_path(&folder, "space.bin")), 0);
    assert_refused(begin(HR_SPACE_FETCH, memory, 0, BLOCK), HR_CORRUPT,
                   "was removed while the run used it");
}

/* ---- opening and closing */

static bool is_closing(void)
{
    pthread_mutex_lock(&space.mutex);
    const bool closing = space.closing;
    pthread_mutex_unlock(&space.mutex);
    return closing;
}

static bool until_closing(off_t at)
{
    (void)at;
    return !is_closing();
}

static void closing_waits_for_pieces_in_motion_only(void **state)
{
    (void)state;
    open_well(LARGE_BYTES, 2);
    calls.writes = 0;
    calls.held = until_closing;
    begin(HR_SPACE_SPILL, memory, 0, LARGE_BYTES);
    begin(HR_SPACE_SPILL, memory, 0, LARGE_BYTES);
    while (calls.writes < 2) sched_yield();
    hr_space_file_close(&space);
    assert_int_equal(calls.writes, 2);
    assert_int_equal(hr_folder_count(&folder, ""), 0);
    hr_space_file_close(&space); /* already closed */
    for (int64_t i = 0; i < 2 * HR_STACK_BYTES; i += 4096)
        (void)((volatile char *)stacks)[i]; /* accessible again */
}

static void a_zeroed_object_is_closed(void **state)
{
    (void)state;
    hr_space_file zeros = { 0 };
    hr_space_file_close(&zeros);
    assert_int_equal(lseek(0, 0, SEEK_CUR) == -1 && errno == EBADF, 0); /* descriptor 0 is open */
}

static void a_thread_that_cannot_start_leaves_nothing(void **state)
{
    (void)state;
    for (int32_t nth = 1; nth <= 3; nth++) {
        calls.protect_fails = nth;
        assert_int_equal(open_space(DATA_BYTES, 3), HR_FAILURE);
        assert_non_null(strstr(err.message, "cannot create the threads that read and write"));
        assert_non_null(strstr(err.message, "space.bin: Cannot allocate memory"));
        assert_int_equal(hr_folder_count(&folder, ""), 0);
    }
}

static void a_refused_file_starts_no_thread(void **state)
{
    (void)state;
    hr_folder_write(hr_folder_path(&folder, "space.bin"), "notes", 5);
    assert_int_equal(open_space(DATA_BYTES, 2), HR_USAGE);
    assert_non_null(strstr(err.message, "is not a scratch file of headroom"));
    hr_space_file_close(&space); /* accepted */
    assert_int_equal(hr_folder_count(&folder, "space.bin"), 1);
}

static int32_t removals;

static void remove_some(void)
{
    if (removals-- > 0) unlink(hr_folder_path(&folder, "space.bin"));
}

/* As by a run that ends while another one begins. */
static void a_file_that_is_removed_while_it_is_opened_is_created_again(void **state)
{
    (void)state;
    calls.before_lock = remove_some;
    removals = 3;
    open_well(DATA_BYTES, 1);
    assert_int_equal(hr_folder_count(&folder, "space.bin"), 1);
    hr_space_file_close(&space);
    removals = INT32_MAX;
    assert_int_equal(open_space(DATA_BYTES, 1), HR_FAILURE);
    assert_non_null(strstr(err.message, "space.bin: was removed 8 times while it was opened"));
    assert_int_equal(hr_folder_count(&folder, ""), 0);
}

static void a_file_is_removed_from_a_directory_that_was_moved(void **state)
{
    (void)state;
    char moved[sizeof folder.path + 8];
    snprintf(moved, sizeof moved, "%s-moved", folder.path);
    open_well(DATA_BYTES, 1);
    assert_int_equal(rename(folder.path, moved), 0);
    hr_space_file_close(&space);
    assert_int_equal(rename(moved, folder.path), 0);
    assert_int_equal(hr_folder_count(&folder, ""), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(transfers_have_the_effect_of_their_order),
        TEST(slow_calls_change_nothing),
        TEST(interrupted_and_short_calls_change_nothing),
        TEST(a_fetch_waits_for_the_spill_of_its_range_only),
        TEST(threads_share_the_pieces_of_a_transfer),
        TEST(a_failure_ends_the_transfers_after_it),
        TEST(a_full_ring_is_released_by_a_failure),
        TEST(damage_is_reported),
        TEST(a_removed_file_is_reported),
        TEST(closing_waits_for_pieces_in_motion_only),
        TEST(a_zeroed_object_is_closed),
        TEST(a_thread_that_cannot_start_leaves_nothing),
        TEST(a_refused_file_starts_no_thread),
        TEST(a_file_that_is_removed_while_it_is_opened_is_created_again),
        TEST(a_file_is_removed_from_a_directory_that_was_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
