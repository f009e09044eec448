/* SPDX-License-Identifier: Apache-2.0 */
/* memory_test.c - allocation, refusals, and no allocation after the seal. Cases that end or seal
 * the process run in a child. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "mem/limits.h"
#include "mem/memory.h"
#include "mem/poison.h"
#include "require.h"
#include "support/pattern.h"

static const int64_t MiB = 1 << 20;

/* Shared with child processes. */
static struct {
    hr_error said;
    volatile sig_atomic_t interrupts;
} * shared;

static hr_error *said; /* the error in shared memory */

/* Runs `scene` in a child; returns its exit status, or minus the signal. */
static int in_child(hr_status (*scene)(void))
{
    *said = (hr_error){ 0 };
    shared->interrupts = 0;
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        close(2);
        _exit(scene());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static hr_memory memory;

static hr_status open_with_arena(int64_t arena_bytes, hr_account *account)
{
    hr_status status = hr_memory_open(&memory, said);
    if (status) return status;
    *account = (hr_account){ .threads = 1 };
    hr_memory_account(&memory, 0, 0, arena_bytes, account);
    return hr_memory_arena_open(&memory, account, arena_bytes, &shared->interrupts, said);
}

static hr_status seal_with_arena(int64_t arena_bytes, hr_account *account)
{
    hr_status status = open_with_arena(arena_bytes, account);
    return status ? status : hr_memory_seal(&memory, account, said);
}

static void regions_are_opened_and_closed(void **state)
{
    (void)state;
    hr_error err;
    hr_region a, b;
    const int64_t page = hr_page_bytes();
    assert_int_equal(hr_memory_open(&memory, &err), HR_OK);
    assert_int_equal(hr_memory_region_open(&memory, "a", 0, &a, &err), HR_OK);
    assert_int_equal(hr_memory_region_open(&memory, "b", 5 * MiB - 1, &b, &err), HR_OK);
    assert_int_equal(a.bytes, page);
    assert_int_equal(b.bytes, 5 * MiB);
    assert_int_equal(memory.regions_bytes, 5 * MiB + page);
    assert_non_null(hr_region_take(&b, 3, page));
    hr_memory_region_trim(&memory, &b);
    assert_int_equal(b.bytes, 3 * page);
    memset(b.base, 1, (size_t)b.bytes);
    hr_memory_region_close(&memory, &a);
    hr_memory_region_close(&memory, &a);
    assert_null(a.base);
    assert_int_equal(memory.regions_bytes, 3 * page);
    hr_memory_region_close(&memory, &b);
    assert_int_equal(memory.regions_bytes, 0);
    assert_int_equal(memory.regions_bytes_most, 5 * MiB + page);
    hr_memory_close(&memory);
    hr_memory_close(&memory);
    hr_memory_close(0);
}

static void a_region_larger_than_the_machine_is_refused_with_both_numbers(void **state)
{
    (void)state;
    static const int64_t sizes[] = { INT64_C(1) << 50, INT64_MAX };
    for (int i = 0; i < 2; i++) {
        hr_error err;
        hr_region region = { 0 };
        assert_int_equal(hr_memory_open(&memory, &err), HR_OK);
        assert_int_equal(hr_memory_region_open(&memory, "words", sizes[i], &region, &err),
                         HR_NO_FIT);
        assert_null(region.base);
        assert_non_null(strstr(err.message, "words: needs "));
        assert_non_null(strstr(err.message, " left of "));
        hr_memory_close(&memory);
    }
}

static hr_status arena_too_large(void)
{
    hr_account account;
    return open_with_arena(hr_room_memory().left_bytes / 8 * 9, &account);
}

static void a_run_above_the_available_memory_is_refused(void **state)
{
    (void)state;
    assert_int_equal(in_child(arena_too_large), HR_NO_FIT);
    assert_non_null(strstr(said->message, "run: needs "));
    assert_non_null(strstr(said->message, "; free some memory, or lower memory.budget"));
}

static hr_status arena_above_the_address_space(void)
{
    setrlimit(RLIMIT_AS, &(struct rlimit){ 64 << 20, 64 << 20 });
    hr_account account;
    return open_with_arena(100 * MiB, &account);
}

static void an_arena_above_ulimit_is_refused_by_name(void **state)
{
    (void)state;
    if (!hr_process_is_exact()) hr_test_skip("no-sanitizer", "a sanitizer has memory of its own");
    assert_int_equal(in_child(arena_above_the_address_space), HR_NO_FIT);
    assert_non_null(strstr(said->message, "arena: needs "));
    assert_non_null(strstr(said->message, "67,108,864 bytes"));
    assert_non_null(strstr(said->message, "ulimit -v"));
}

/* Populating half a GiB takes at least 30 ms. Another process sends the interrupt, because signals
 * are delayed under ThreadSanitizer. */
static hr_status interrupt_an_arena(void)
{
    hr_account account;
    const pid_t other = fork();
    if (other == 0) {
        usleep(5000);
        shared->interrupts = 1;
        _exit(0);
    }
    const hr_status status = open_with_arena(512 * MiB, &account);
    waitpid(other, NULL, 0);
    return memory.arena ? HR_FAILURE : status;
}

static void an_interrupt_stops_populating_the_arena(void **state)
{
    (void)state;
    if (hr_room_memory().left_bytes < 600 * MiB)
        hr_test_skip("memory", "less than 600 MiB are free");
    assert_int_equal(in_child(interrupt_an_arena), HR_INTERRUPTED);
}

static hr_status use_arena(void)
{
    hr_account account;
    hr_status status = seal_with_arena(5 * MiB + 64, &account);
    if (status) return status;
    if ((uintptr_t)memory.arena % (2 << 20)) return HR_FAILURE;
    for (int64_t i = 0; i < memory.arena_bytes; i++)
        if (memory.arena[i]) return HR_FAILURE;
    memset(memory.arena, 1, (size_t)memory.arena_bytes);
    if (!hr_memory_is_sealed()) return HR_FAILURE;
    hr_arena_note(&memory, memory.arena + 640, 64);
    hr_arena_note(&memory, memory.arena, 128);
    if (memory.arena_bytes_used != 704) return HR_FAILURE;
    hr_memory_close(&memory);
    return hr_memory_is_sealed() ? HR_FAILURE : HR_OK;
}

static void an_arena_is_aligned_zeroed_and_its_highest_used_byte_recorded(void **state)
{
    (void)state;
    assert_int_equal(in_child(use_arena), HR_OK);
}

static hr_status ask_after_the_seal(void)
{
    hr_account account;
    hr_region region;
    hr_status status = seal_with_arena(MiB, &account);
    return status ? status : hr_memory_region_open(&memory, "late", MiB, &region, said);
}

static void allocation_after_the_seal_is_a_programmer_error(void **state)
{
    (void)state;
    assert_int_equal(in_child(ask_after_the_seal), -SIGABRT);
}

static hr_status seal_with_a_forgotten_region(void)
{
    hr_account account;
    hr_region region;
    hr_status status = open_with_arena(MiB, &account);
    if (!status) status = hr_memory_region_open(&memory, "forgotten", 3 * MiB, &region, said);
    return status ? status : hr_memory_seal(&memory, &account, said);
}

static hr_status seal_with_a_stranger(void)
{
    hr_account account;
    hr_status status = open_with_arena(MiB, &account);
    if (mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) return HR_OK;
    return status ? status : hr_memory_seal(&memory, &account, said);
}

static hr_status seal_with_a_large_heap(void)
{
    hr_account account;
    hr_status status = open_with_arena(MiB, &account);
    void *volatile block = malloc((size_t)(2 * MiB));
    if (!status) status = hr_memory_seal(&memory, &account, said);
    free(block);
    return status;
}

static __attribute__((noinline)) void go_deep(void)
{
    char deep[3 * HR_STACK_BYTES];
    explicit_bzero(deep, sizeof deep);
}

static hr_status seal_with_a_deep_stack(void)
{
    hr_account account;
    hr_status status = open_with_arena(MiB, &account);
    go_deep();
    return status ? status : hr_memory_seal(&memory, &account, said);
}

static hr_status seal_with_a_high_peak(void)
{
    hr_account account;
    hr_region region;
    hr_status status = hr_memory_open(&memory, said);
    if (!status) status = hr_memory_region_open(&memory, "planning", 40 * MiB, &region, said);
    if (status) return status;
    memset(region.base, 1, (size_t)region.bytes);
    hr_memory_region_close(&memory, &region);
    account = (hr_account){ .threads = 1 };
    hr_memory_account(&memory, 0, 0, MiB, &account);
    status = hr_memory_arena_open(&memory, &account, MiB, 0, said);
    return status ? status : hr_memory_seal(&memory, &account, said);
}

static void a_seal_detects_memory_outside_the_plan(void **state)
{
    (void)state;
    static const struct {
        hr_status (*scene)(void);
        const char *sentence;
    } scenes[] = { { seal_with_a_forgotten_region, "process: planned " },
                   { seal_with_a_stranger, "image: " },
                   { seal_with_a_large_heap, "heap: limited to 1048576 bytes, grew to " },
                   { seal_with_a_deep_stack, "main stack: planned " },
                   { seal_with_a_high_peak, "process: planned " } };
    if (!hr_process_is_exact()) hr_test_skip("no-sanitizer", "a sanitizer has memory of its own");
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        assert_int_equal(in_child(scenes[i].scene), HR_BROKEN);
        print_message("%s\n", said->message);
        assert_non_null(strstr(said->message, scenes[i].sentence));
    }
}

static hr_status run_twice(void)
{
    hr_account account;
    hr_status status = seal_with_arena(40 * MiB, &account);
    if (status) return status;
    hr_memory_close(&memory);
    status = seal_with_arena(MiB, &account);
    if (status) return status;
    return hr_memory_peak_bytes(&memory) <= account.bytes ? HR_OK : HR_BROKEN;
}

static void a_smaller_run_can_follow_in_the_same_process(void **state)
{
    (void)state;
    if (!hr_process_is_exact()) hr_test_skip("no-sanitizer", "a sanitizer has memory of its own");
    assert_int_equal(in_child(run_twice), HR_OK);
}

static hr_status write_poisoned(void)
{
    hr_account account;
    hr_status status = seal_with_arena(MiB, &account);
    if (status) return status;
    hr_arena_poison(memory.arena, memory.arena_bytes);
    hr_arena_unpoison(memory.arena + 64, 64);
    memory.arena[64] = memory.arena[127] = 1;
    memory.arena[128] = 1;
    return HR_OK;
}

static void writing_a_poisoned_byte_ends_the_program(void **state)
{
    (void)state;
    const int end = in_child(write_poisoned);
    if (HR_ADDRESS_SANITIZER) {
        assert_int_not_equal(end, HR_OK);
    } else {
        assert_int_equal(end, HR_OK);
    }
}

static void a_pattern_detects_written_bytes(void **state)
{
    (void)state;
    enum { WORDS = 4096, SEED = 1 };
    static uint64_t words[WORDS];
    print_message("seed %d\n", SEED);
    for (int round = 0; round < 50 * HR_COUNT; round++) {
        int64_t untouched = WORDS * 8, end = 0;
        pattern_fill(words, sizeof words);
        assert_int_equal(pattern_end(words, sizeof words), 0);
        for (uint32_t i = 0; i < WORDS; i++) {
            const uint32_t draw = (uint32_t)hr_random_mix((uint64_t)(SEED + round) << 32 | i);
            if (draw % 3) continue;
            ((uint8_t *)words)[i * 8 + draw / 3 % 8] ^= 1;
            untouched -= 8;
            end = (i + 1) * 8;
        }
        assert_int_equal(pattern_end(words, sizeof words), end);
        assert_int_equal(pattern_untouched_bytes(words, 0, sizeof words), untouched);
        assert_int_equal(pattern_untouched_bytes(words, 0, 800) +
                             pattern_untouched_bytes(words, 800, sizeof words - 800),
                         untouched);
    }
}

int main(void)
{
    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    said = &shared->said;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_are_opened_and_closed),
        cmocka_unit_test(a_region_larger_than_the_machine_is_refused_with_both_numbers),
        cmocka_unit_test(a_run_above_the_available_memory_is_refused),
        cmocka_unit_test(an_arena_above_ulimit_is_refused_by_name),
        cmocka_unit_test(an_interrupt_stops_populating_the_arena),
        cmocka_unit_test(an_arena_is_aligned_zeroed_and_its_highest_used_byte_recorded),
        cmocka_unit_test(allocation_after_the_seal_is_a_programmer_error),
        cmocka_unit_test(a_seal_detects_memory_outside_the_plan),
        cmocka_unit_test(a_smaller_run_can_follow_in_the_same_process),
        cmocka_unit_test(writing_a_poisoned_byte_ends_the_program),
        cmocka_unit_test(a_pattern_detects_written_bytes),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
