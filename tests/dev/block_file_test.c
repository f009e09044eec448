/* SPDX-License-Identifier: Apache-2.0 */
/* block_file_test.c - a scratch file returns what was written, or says what happened to it, and
 * replaces nothing but scratch files. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/crc32c.h"
#include "base/random.h"
#include "dev/block_file.h"
#include "require.h"
#include "support/file_calls.h"
#include "support/folder.h"

enum { BLOCKS = 96, DATA_BYTES = BLOCKS * HR_BLOCK_BYTES, CASES = 300 };

static hr_folder folder;
static char scratch_path[512];
static hr_block_file file;
static hr_error err;
static _Alignas(64) uint8_t tables[4 * BLOCKS + 64];
static _Alignas(HR_BLOCK_BYTES) uint8_t memory[DATA_BYTES];
static uint8_t expected[DATA_BYTES];
static bool written[BLOCKS];
static uint64_t draw;

static int64_t random_below(int64_t most)
{
    return (int64_t)(hr_random_mix(++draw) % (uint64_t)most);
}

static void fill(uint8_t *bytes, int64_t count)
{
    for (int64_t i = 0; i < count; i++) bytes[i] = (uint8_t)hr_random_mix(++draw);
}

static hr_status open_in(const char *directory)
{
    const hr_block_file_options options = {
        .directory = directory, .name = "scratch.bin", .run = "a test", .bytes = DATA_BYTES
    };
    hr_region region = hr_region_over(tables, sizeof tables);
    assert_true(hr_block_file_bytes(&options) <= region.bytes);
    memset(written, 0, sizeof written);
    return hr_block_file_open(&file, &options, &region, &err);
}

static void open_well(void)
{
    if (open_in(folder.path) != HR_OK) fail_msg("%s", err.message);
}

/* Opens and writes everything. */
static void open_written(void)
{
    open_well();
    fill(expected, DATA_BYTES);
    memcpy(memory, expected, DATA_BYTES);
    assert_int_equal(hr_block_file_write(&file, memory, 0, DATA_BYTES, &err), HR_OK);
}

static void assert_refused(hr_status got, hr_status status, const char *text)
{
    assert_int_equal(got, status);
    assert_int_equal(err.status, status);
    if (!strstr(err.message, text)) fail_msg("not \"%s\": %s", text, err.message);
    if (!strstr(err.message, "scratch.bin")) fail_msg("no path: %s", err.message);
}

static int start(void **state)
{
    (void)state;
    folder = hr_folder_open();
    snprintf(scratch_path, sizeof scratch_path, "%s/scratch.bin", folder.path);
    memset(&calls, 0, sizeof calls);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    memset(&calls, 0, sizeof calls);
    hr_block_file_close(&file);
    hr_folder_close(&folder);
    return 0;
}

/* ---- opening */

static void a_new_file_has_its_space_and_is_private(void **state)
{
    (void)state;
    struct stat what;
    char begin[64] = "";
    open_well();
    print_message("direct I/O: %s\n", file.direct ? "yes" : "no");
    assert_int_equal(stat(scratch_path, &what), 0);
    assert_int_equal(what.st_size, HR_BLOCK_BYTES + DATA_BYTES);
    assert_true(what.st_blocks * 512 >= DATA_BYTES);
    assert_int_equal(what.st_mode & 0777, 0600);
    const int reader = open(scratch_path, O_RDONLY);
    assert_int_equal(read(reader, begin, sizeof begin - 1), sizeof begin - 1);
    close(reader);
    assert_ptr_equal(strstr(begin, "headroom scratch file 1\nrun a test\nbytes 393216\n"), begin);
    hr_block_file_close(&file);
    assert_int_equal(hr_folder_count(&folder, ""), 0);
    hr_block_file_close(&file); /* already closed */
}

static void a_file_of_a_killed_run_is_replaced(void **state)
{
    (void)state;
    open_written();
    char saved[512];
    snprintf(saved, sizeof saved, "%s/saved", folder.path);
    assert_int_equal(link(scratch_path, saved), 0); /* it stays when the file is closed */
    hr_block_file_close(&file);
    assert_int_equal(rename(saved, scratch_path), 0);
    open_well();
    assert_refused(hr_block_file_read(&file, memory, HR_BLOCK_BYTES, HR_BLOCK_BYTES, &err),
                   HR_CORRUPT, "byte 8192 is read but was never written");
    hr_block_file_close(&file);
    hr_folder_write(scratch_path, "", 0); /* of a run that was killed at once */
    open_well();
}

static void other_files_are_refused_and_stay(void **state)
{
    (void)state;
    static const char *const others[] = { "x", "headroom scratch fil",
                                          "the notes of somebody, longer than the header" };
    for (int32_t i = 0; i < 3; i++) {
        int64_t bytes;
        hr_folder_write(scratch_path, others[i], (int64_t)strlen(others[i]));
        assert_refused(open_in(folder.path), HR_USAGE,
                       "exists and is not a scratch file of headroom; remove it or move it away");
        char *content = hr_folder_read(scratch_path, &bytes);
        assert_string_equal(content, others[i]);
        free(content);
    }
    hr_folder_empty(&folder);
    assert_int_equal(symlink("elsewhere", scratch_path), 0);
    assert_refused(open_in(folder.path), HR_USAGE, "it is a symbolic link");
    hr_folder_empty(&folder);
    assert_int_equal(mkfifo(scratch_path, 0600), 0);
    assert_refused(open_in(folder.path), HR_USAGE, "is a device or pipe, a file is needed");
    hr_folder_empty(&folder);
    assert_int_equal(mkdir(scratch_path, 0700), 0);
    assert_refused(open_in(folder.path), HR_USAGE, "Is a directory");
    hr_folder_empty(&folder);
    assert_refused(open_in(hr_folder_path(&folder, "missing")), HR_USAGE,
                   "cannot be created: No such file or directory");
    assert_int_equal(hr_folder_count(&folder, ""), 0);
}

static void a_file_in_use_is_refused(void **state)
{
    (void)state;
    open_written();
    hr_block_file own = file;
    uint32_t kept[BLOCKS];
    memcpy(kept, own.checksums, sizeof kept);
    own.checksums = kept;
    assert_refused(open_in(folder.path), HR_FAILURE, "is in use by another process");
    file = own;
    assert_int_equal(hr_block_file_read(&file, memory, 0, DATA_BYTES, &err), HR_OK);
    assert_memory_equal(memory, expected, DATA_BYTES);
}

static void a_file_that_took_its_place_is_not_removed(void **state)
{
    (void)state;
    open_well();
    unlink(scratch_path);
    hr_folder_write(scratch_path, "other", 5);
    hr_block_file_close(&file);
    assert_int_equal(hr_folder_count(&folder, "scratch.bin"), 1);
}

static void a_full_disk_is_refused_when_opened(void **state)
{
    (void)state;
    if (mount("none", folder.path, "tmpfs", 0, "size=200k") != 0)
        hr_test_skip("mount", "mount: %s", strerror(errno));
    const hr_status by_reservation = open_in(folder.path);
    const hr_error first = err;
    const int left = hr_folder_count(&folder, "");
    calls.reserve_code = EOPNOTSUPP;
    const hr_status by_free_bytes = open_in(folder.path);
    assert_int_equal(umount(folder.path), 0);
    assert_refused(by_free_bytes, HR_NO_FIT, "are free there: free some space");
    err = first;
    assert_refused(by_reservation, HR_NO_FIT,
                   "scratch.bin: needs 397,312 bytes, 204,800 are free there: free some space, or "
                   "give another place");
    assert_int_equal(left, 0);
}

static void a_limit_for_files_is_refused_when_opened(void **state)
{
    (void)state;
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 100000, before.rlim_max }), 0);
    const hr_status by_reservation = open_in(folder.path);
    calls.reserve_code = EOPNOTSUPP;
    const hr_status by_length = open_in(folder.path);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(by_length, HR_NO_FIT);
    assert_refused(by_reservation, HR_NO_FIT,
                   "needs 397,312 bytes, more than the limit of its file system or of this process "
                   "for a file");
    assert_int_equal(hr_folder_count(&folder, ""), 0);
}

static void a_failing_reservation_or_header_leaves_no_file(void **state)
{
    (void)state;
    calls.reserve_code = EIO;
    assert_refused(open_in(folder.path), HR_FAILURE, "its space cannot be reserved: Input/output");
    calls.reserve_code = EDQUOT;
    assert_refused(open_in(folder.path), HR_NO_FIT, "are free there beyond the quota:");
    calls.reserve_code = 0;
    calls.code = EIO;
    for (int32_t reads = 0; reads <= 1; reads++) {
        calls.reads = calls.writes = 0;
        calls.read_fails = reads;
        calls.write_fails = !reads;
        assert_refused(open_in(folder.path), HR_FAILURE,
                       "its header cannot be written and read: Input/output error");
    }
    calls.most = 100;
    calls.reads = calls.writes = 0;
    calls.read_fails = 0;
    calls.write_fails = 2; /* the rest of a short write */
    calls.code = ENOSPC;
    assert_refused(open_in(folder.path), HR_FAILURE,
                   "its header cannot be written and read: No space left on device");
    assert_int_equal(hr_folder_count(&folder, ""), 0);
}

/* ---- transfers */

/* Random reads and writes beside a model of the file. */
static void transfer_at_random(int32_t cases)
{
    for (int32_t i = 0; i < cases; i++) {
        const int64_t first = random_below(BLOCKS), count = 1 + random_below(BLOCKS - first);
        const int64_t offset = first * HR_BLOCK_BYTES, bytes = count * HR_BLOCK_BYTES;
        uint8_t *at = memory + random_below(BLOCKS - count + 1) * HR_BLOCK_BYTES;
        if (random_below(2)) {
            fill(at, bytes);
            memcpy(expected + offset, at, (size_t)bytes);
            memset(written + first, true, (size_t)count);
            assert_int_equal(hr_block_file_write(&file, at, offset, bytes, &err), HR_OK);
            continue;
        }
        const hr_status status = hr_block_file_read(&file, at, offset, bytes, &err);
        if (memchr(written + first, false, (size_t)count)) {
            assert_refused(status, HR_CORRUPT, "is read but was never written");
        } else {
            if (status != HR_OK) fail_msg("%s", err.message);
            assert_memory_equal(at, expected + offset, bytes);
        }
    }
}

static void random_transfers_return_what_was_written(void **state)
{
    (void)state;
    draw = 11;
    print_message("seed %llu\n", (unsigned long long)draw);
    open_well();
    transfer_at_random(CASES * HR_COUNT);
}

static void file_systems_without_direct_transfers_work(void **state)
{
    (void)state;
    draw = 12;
    print_message("seed %llu\n", (unsigned long long)draw);
    for (int32_t i = 0; i < 2; i++) {
        calls.no_direct = i == 0;
        calls.no_direct_transfer = i == 1;
        calls.reserve_code = i == 0 ? EOPNOTSUPP : 0;
        open_well();
        assert_false(file.direct);
        transfer_at_random(CASES * HR_COUNT / 2);
        hr_block_file_close(&file);
    }
}

/* Number of pages of the file in the page cache. */
static int64_t count_cached_pages(void)
{
    static unsigned char resident[1 + BLOCKS];
    const size_t bytes = HR_BLOCK_BYTES + DATA_BYTES;
    const int other = open(scratch_path, O_RDONLY);
    void *map = mmap(0, bytes, PROT_READ, MAP_SHARED, other, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mincore(map, bytes, resident), 0);
    munmap(map, bytes);
    close(other);
    int64_t count = 0;
    for (int64_t i = 0; i < 1 + BLOCKS; i++) count += resident[i] & 1;
    return count;
}

static void no_pages_stay_in_the_cache(void **state)
{
    (void)state;
    struct statfs system;
    assert_int_equal(statfs(folder.path, &system), 0);
    if (system.f_type == TMPFS_MAGIC) hr_test_skip("disk", "%s is in memory", folder.path);
    if (sysconf(_SC_PAGESIZE) != HR_BLOCK_BYTES)
        hr_test_skip("page-4096", "the pages have %ld bytes", sysconf(_SC_PAGESIZE));
    for (int32_t no_direct = 0; no_direct <= 1; no_direct++) {
        calls.no_direct = no_direct;
        open_written();
        assert_true(count_cached_pages() <= 1); /* the header */
        assert_int_equal(hr_block_file_read(&file, memory, 0, DATA_BYTES, &err), HR_OK);
        assert_true(count_cached_pages() <= 1);
        hr_block_file_close(&file);
    }
}

static void a_file_in_memory_works(void **state)
{
    (void)state;
    draw = 13;
    print_message("seed %llu\n", (unsigned long long)draw);
    if (mount("none", folder.path, "tmpfs", 0, "size=4m") != 0)
        hr_test_skip("mount", "mount: %s", strerror(errno));
    const hr_status status = open_in(folder.path);
    if (status == HR_OK) transfer_at_random(CASES * HR_COUNT);
    hr_block_file_close(&file);
    const int left = hr_folder_count(&folder, "");
    assert_int_equal(umount(folder.path), 0);
    if (status != HR_OK) fail_msg("%s", err.message);
    assert_int_equal(left, 0);
}

static void short_and_interrupted_calls_are_continued(void **state)
{
    (void)state;
    draw = 14;
    print_message("seed %llu\n", (unsigned long long)draw);
    open_well();
    calls.interrupts = true;
    for (calls.most = HR_BLOCK_BYTES; calls.most < 10000; calls.most += 1600)
        transfer_at_random(20 * HR_COUNT);
}

static void calls_that_move_nothing_are_reported(void **state)
{
    (void)state;
    open_written();
    calls.most = 100;
    assert_refused(hr_block_file_read(&file, memory, 0, DATA_BYTES, &err), HR_FAILURE,
                   "cannot be read at byte 4096: the system moves no bytes");
    assert_refused(hr_block_file_write(&file, memory, 4096, 8192, &err), HR_FAILURE,
                   "cannot be written at byte 8192: the system moves no bytes");
}

static void errors_of_the_disk_are_reported(void **state)
{
    (void)state;
    open_written();
    calls.reads = calls.writes = 0;
    calls.read_fails = calls.write_fails = 2;
    calls.most = 2 * HR_BLOCK_BYTES;
    calls.code = EIO;
    assert_refused(hr_block_file_read(&file, memory, 0, DATA_BYTES, &err), HR_FAILURE,
                   "cannot be read at byte 12288: Input/output error");
    calls.code = ENOSPC;
    assert_refused(hr_block_file_write(&file, memory, 0, DATA_BYTES, &err), HR_FAILURE,
                   "cannot be written at byte 12288: No space left on device");
    hr_block_file_close(&file);
    memset(&calls, 0, sizeof calls);
    calls.no_direct = true;
    open_well();
    calls.flush_code = EIO;
    assert_refused(hr_block_file_write(&file, memory, 0, DATA_BYTES, &err), HR_FAILURE,
                   "cannot be written at byte 4096: Input/output error");
}

/* Sets the last four bytes of a block so that its checksum is 0. The checksum is an affine function
 * of the bits: solved by elimination. */
static void make_checksum_zero(uint8_t *block)
{
    uint32_t *last = (uint32_t *)(block + HR_BLOCK_BYTES - 4);
    uint32_t effect[32], bits[32], rest, found = 0;
    *last = 0;
    rest = hr_crc32c(block, HR_BLOCK_BYTES, false);
    for (int32_t i = 0; i < 32; i++) {
        *last = bits[i] = 1u << i;
        effect[i] = hr_crc32c(block, HR_BLOCK_BYTES, false) ^ rest;
    }
    for (int32_t i = 0; i < 32; i++) { /* effect[i] with its lowest bit in no other */
        assert_true(effect[i]);
        const uint32_t lowest = effect[i] & -effect[i];
        for (int32_t k = 0; k < 32; k++) {
            if (k == i || !(effect[k] & lowest)) continue;
            effect[k] ^= effect[i];
            bits[k] ^= bits[i];
        }
    }
    for (int32_t i = 0; i < 32; i++)
        if (rest & effect[i] & -effect[i]) found ^= bits[i];
    *last = found;
    assert_int_equal(hr_crc32c(block, HR_BLOCK_BYTES, false), 0);
}

static void a_block_with_checksum_zero_was_written(void **state)
{
    (void)state;
    draw = 16;
    print_message("seed %llu\n", (unsigned long long)draw);
    open_written();
    fill(expected, HR_BLOCK_BYTES);
    make_checksum_zero(expected);
    memcpy(memory, expected, HR_BLOCK_BYTES);
    assert_int_equal(hr_block_file_write(&file, memory, 0, HR_BLOCK_BYTES, &err), HR_OK);
    memset(memory, 0, HR_BLOCK_BYTES);
    assert_int_equal(hr_block_file_read(&file, memory, 0, HR_BLOCK_BYTES, &err), HR_OK);
    assert_memory_equal(memory, expected, HR_BLOCK_BYTES);
}

/* ---- damage */

static void change_byte(int64_t at, uint8_t change)
{
    uint8_t byte;
    const int other = open(scratch_path, O_RDWR);
    assert_int_equal(syscall(SYS_pread64, other, &byte, 1, at), 1);
    byte ^= change;
    assert_int_equal(syscall(SYS_pwrite64, other, &byte, 1, at), 1);
    assert_int_equal(fsync(other), 0);
    close(other);
}

static void a_changed_bit_is_reported(void **state)
{
    (void)state;
    draw = 15;
    print_message("seed %llu\n", (unsigned long long)draw);
    open_written();
    for (int32_t i = 0; i < 20 * HR_COUNT; i++) {
        const int64_t at = random_below(DATA_BYTES), block = at / HR_BLOCK_BYTES;
        const uint8_t bit = (uint8_t)(1 << random_below(8));
        char text[80];
        change_byte(HR_BLOCK_BYTES + at, bit);
        snprintf(text, sizeof text, "damaged: the block at byte %lld has checksum",
                 (long long)(HR_BLOCK_BYTES * (1 + block)));
        assert_refused(hr_block_file_read(&file, memory, 0, DATA_BYTES, &err), HR_CORRUPT, text);
        change_byte(HR_BLOCK_BYTES + at, bit);
    }
    assert_int_equal(hr_block_file_read(&file, memory, 0, DATA_BYTES, &err), HR_OK);
    assert_memory_equal(memory, expected, DATA_BYTES);
}

/* A disk that loses a write, or reads another place. */
static void an_old_block_and_a_block_of_another_place_are_reported(void **state)
{
    (void)state;
    open_written();
    uint8_t block[HR_BLOCK_BYTES];
    memcpy(block, expected + 5 * HR_BLOCK_BYTES, sizeof block);
    memset(memory, 7, HR_BLOCK_BYTES);
    assert_int_equal(hr_block_file_write(&file, memory, 5 * HR_BLOCK_BYTES, HR_BLOCK_BYTES, &err),
                     HR_OK);
    for (int32_t place = 5; place <= 6; place++) {
        const int other = open(scratch_path, O_RDWR);
        assert_int_equal(pwrite(other, block, sizeof block, (1 + place) * HR_BLOCK_BYTES),
                         sizeof block);
        assert_int_equal(fsync(other), 0);
        close(other);
        assert_refused(
            hr_block_file_read(&file, memory, place * HR_BLOCK_BYTES, HR_BLOCK_BYTES, &err),
            HR_CORRUPT, "damaged: the block at byte");
    }
}

static void a_truncated_file_is_reported(void **state)
{
    (void)state;
    open_written();
    assert_int_equal(truncate(scratch_path, 100000), 0);
    static const char text[] = "has 100000 bytes, 397312 are needed: it was truncated while the "
                               "run used it";
    /* Also where the transfer itself is within the rest: all of it is needed later. */
    assert_refused(hr_block_file_read(&file, memory, 0, HR_BLOCK_BYTES, &err), HR_CORRUPT, text);
    assert_refused(hr_block_file_write(&file, memory, 0, HR_BLOCK_BYTES, &err), HR_CORRUPT, text);
}

static bool cut;

static bool cut_once(off_t at)
{
    (void)at;
    if (!cut) assert_int_equal(truncate(scratch_path, 50000), 0);
    cut = true;
    return false;
}

static void a_file_truncated_during_a_call_is_reported(void **state)
{
    (void)state;
    open_written();
    cut = false;
    calls.held = cut_once;
    assert_refused(hr_block_file_read(&file, memory, 0, DATA_BYTES, &err), HR_CORRUPT,
                   "has 50000 bytes, 397312 are needed");
}

static void a_removed_or_replaced_file_is_reported(void **state)
{
    (void)state;
    for (int32_t i = 0; i < 2; i++) {
        open_written();
        if (i == 0) {
            assert_int_equal(unlink(scratch_path), 0);
        } else {
            hr_folder_write(hr_folder_path(&folder, "other"), "other", 5);
            assert_int_equal(rename(hr_folder_path(&folder, "other"), scratch_path), 0);
        }
        assert_refused(hr_block_file_read(&file, memory, 0, HR_BLOCK_BYTES, &err), HR_CORRUPT,
                       "was removed while the run used it");
        assert_refused(hr_block_file_write(&file, memory, 0, HR_BLOCK_BYTES, &err), HR_CORRUPT,
                       "was removed while the run used it");
        hr_block_file_close(&file);
    }
    assert_int_equal(hr_folder_count(&folder, "scratch.bin"), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_file_has_its_space_and_is_private),
        TEST(a_file_of_a_killed_run_is_replaced),
        TEST(other_files_are_refused_and_stay),
        TEST(a_file_in_use_is_refused),
        TEST(a_file_that_took_its_place_is_not_removed),
        TEST(a_full_disk_is_refused_when_opened),
        TEST(a_limit_for_files_is_refused_when_opened),
        TEST(a_failing_reservation_or_header_leaves_no_file),
        TEST(random_transfers_return_what_was_written),
        TEST(file_systems_without_direct_transfers_work),
        TEST(no_pages_stay_in_the_cache),
        TEST(a_file_in_memory_works),
        TEST(short_and_interrupted_calls_are_continued),
        TEST(calls_that_move_nothing_are_reported),
        TEST(errors_of_the_disk_are_reported),
        TEST(a_block_with_checksum_zero_was_written),
        TEST(a_changed_bit_is_reported),
        TEST(an_old_block_and_a_block_of_another_place_are_reported),
        TEST(a_truncated_file_is_reported),
        TEST(a_file_truncated_during_a_call_is_reported),
        TEST(a_removed_or_replaced_file_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
