/* SPDX-License-Identifier: Apache-2.0 */
/* process_test.c - planned against measured memory. Every measurement is a process of its own: this
 * program, started with the arena size and the number of threads, does what a training run does. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/small_file.h"
#include "dev/pool.h"
#include "mem/limits.h"
#include "mem/memory.h"
#include "mem/proc.h"
#include "require.h"

static const int64_t MiB = 1 << 20;

typedef struct {
    int64_t planned_bytes, measured_bytes, tables_bytes; /* the last: page tables */
} outcome;

static void must(hr_status status, const hr_error *err)
{
    if (!status) return;
    fprintf(stderr, "%s\n", err->message);
    _exit(status);
}

static void write_share(void *context, int32_t thread, int32_t threads)
{
    const hr_memory *memory = context;
    const int64_t first = memory->arena_bytes * thread / threads;
    const int64_t last = memory->arena_bytes * (thread + 1) / threads;
    memset(memory->arena + first, 1, (size_t)(last - first));
}

/* Plans, prepares, seals and runs; prints planned and measured bytes. */
static int run_once(int64_t arena_bytes, int32_t threads, int64_t planning_bytes)
{
    static hr_pool pool;
    hr_memory memory;
    hr_region planning, tables;
    hr_error err;
    void *stacks;
    must(hr_memory_open(&memory, &err), &err);
    must(hr_memory_region_open(&memory, "planning", planning_bytes, &planning, &err), &err);
    must(hr_memory_region_open(&memory, "tables", 3 * MiB, &tables, &err), &err);
    memset(planning.base, 1, (size_t)planning.bytes);
    HR_ASSERT(hr_region_take(&tables, 1, MiB));

    hr_account account = { .threads = threads };
    hr_memory_account(&memory, planning_bytes + 3 * MiB, MiB, arena_bytes, &account);
    hr_memory_region_close(&memory, &planning);
    hr_memory_region_trim(&memory, &tables);
    must(hr_memory_stacks_open(&memory, hr_pool_bytes(threads), &stacks, &err), &err);
    must(hr_pool_open(&pool, stacks, hr_pool_bytes(threads), threads, &err), &err);
    must(hr_memory_arena_open(&memory, &account, arena_bytes, 0, &err), &err);
    must(hr_memory_seal(&memory, &account, &err), &err);
    for (int turn = 0; turn < 3; turn++) hr_pool_run(&pool, write_share, &memory);

    const int64_t measured = hr_process_peak_bytes();
    char text[4096];
    hr_small_file_read("/proc/self/status", text, sizeof text);
    hr_pool_close(&pool);
    hr_memory_close(&memory);
    printf("%lld %lld %lld\n", (long long)account.bytes, (long long)measured,
           (long long)hr_small_file_number(text, "VmPTE:") * 1024);
    return 0;
}

static outcome run_apart(int64_t arena_bytes, int32_t threads, int64_t planning_bytes)
{
    char command[256], line[128] = "";
    snprintf(command, sizeof command, "/proc/%d/exe %lld %d %lld", (int)getpid(),
             (long long)arena_bytes, threads, (long long)planning_bytes);
    FILE *child = popen(command, "r");
    assert_non_null(child);
    assert_non_null(fgets(line, sizeof line, child));
    assert_int_equal(pclose(child), 0);
    outcome found = { 0 };
    char *end;
    found.planned_bytes = strtoll(line, &end, 10);
    found.measured_bytes = strtoll(end, &end, 10);
    found.tables_bytes = strtoll(end, 0, 10);
    print_message("arena %lld, %d threads, planning %lld: planned %lld, measured %lld (%.2f %%), "
                  "page tables %lld\n",
                  (long long)arena_bytes, threads, (long long)planning_bytes,
                  (long long)found.planned_bytes, (long long)found.measured_bytes,
                  100.0 * (double)found.measured_bytes / (double)found.planned_bytes,
                  (long long)found.tables_bytes);
    return found;
}

static void expect_close(int64_t arena_bytes, int32_t threads, int64_t planning_bytes)
{
    const outcome found = run_apart(arena_bytes, threads, planning_bytes);
    if (!hr_process_is_exact()) return;
    const int64_t missing = found.planned_bytes - found.measured_bytes;
    const int64_t files_bytes = 4 * MiB; /* page cache part of the kernel memory */
    assert_true(missing >= 0);
    assert_true(missing <= (found.planned_bytes > 256 * MiB ? found.planned_bytes / 100 : 4 * MiB));
    assert_true(found.tables_bytes <=
                hr_process_kernel_bytes(found.planned_bytes, threads, false) - files_bytes);
}

static void a_process_uses_what_was_planned(void **state)
{
    (void)state;
    expect_close(64, 1, 0);
    expect_close(8 * MiB, 1, 2 * MiB);
    expect_close(8 * MiB + 12345, 2, MiB);
    expect_close(300 * MiB + 64, 2, 20 * MiB);
#if HR_COUNT > 1
    expect_close(1024 * MiB, 4, 20 * MiB);
#endif
}

static void planning_counts_when_it_is_larger_than_the_arena(void **state)
{
    (void)state;
    expect_close(8 * MiB, 2, 100 * MiB);
}

static void the_stacks_of_eight_threads_are_counted(void **state)
{
    (void)state;
    expect_close(4 * MiB, 8, MiB);
}

static void the_lines_sum_to_the_process(void **state)
{
    (void)state;
    const hr_memory memory = { .image_bytes = 5 * MiB,
                               .main_stack_bytes = HR_STACK_BYTES,
                               .heap_bytes = HR_HEAP_BYTES };
    hr_account account = { .threads = 3 };
    hr_memory_account(&memory, 40 * MiB, 2 * MiB, 10 * MiB + 1, &account);
    int64_t sum = 0, arena = 10 * MiB + hr_page_bytes();
    for (int32_t i = 0; i < account.line_count; i++) sum += account.lines[i].bytes;
    assert_int_equal(sum, account.bytes);
    assert_int_equal(sum, 5 * MiB + HR_STACK_BYTES + HR_HEAP_BYTES + 40 * MiB +
                              hr_process_counter_bytes());
    assert_string_equal(account.lines[5].name, "arena");
    assert_int_equal(account.lines[5].bytes, arena);
    assert_int_equal(account.lines[4].bytes, 38 * MiB - 2 * HR_STACK_BYTES - arena);
}

/* The thread starts on another processor, and ends on the one where the pages were freed, with its
 * old affinity mask. Half of the attempts are enough: the system may move it at any time. */
static void pages_are_freed_on_one_processor(void **state)
{
    (void)state;
    enum { TRIES = 100 };
    cpu_set_t allowed, other, after;
    int32_t first = -1, second = -1, there = 0;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (int32_t i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &allowed)) continue;
        if (first < 0) first = i;
        else if (second < 0) second = i;
    }
    if (second < 0) {
        hr_test_skip("processors", "one processor is allowed, two are needed");
    }
    CPU_ZERO(&other);
    CPU_SET(second, &other);
    for (int32_t i = 0; i < TRIES; i++) {
        void *base = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(base, MAP_FAILED);
        hr_span span = { base, 65536 };
        assert_int_equal(sched_setaffinity(0, sizeof other, &other), 0);
        assert_int_equal(sched_setaffinity(0, sizeof allowed, &allowed), 0);
        hr_process_unmap(&span, first);
        there += hr_process_processor() == first;
        assert_null(span.base);
        assert_int_equal(mprotect(base, 65536, PROT_READ), -1); /* nothing is mapped there */
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        assert_true(CPU_EQUAL(&allowed, &after));
        hr_process_unmap(&span, first); /* accepts an empty span */
    }
    print_message("%d of %d\n", there, TRIES);
    assert_true(there > TRIES / 2);
    /* A processor outside the affinity mask is ignored, and the pages are freed anyway. */
    hr_span span = { mmap(0, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 65536 };
    const void *base = span.base;
    assert_int_equal(sched_setaffinity(0, sizeof other, &other), 0);
    hr_process_unmap(&span, first);
    assert_int_equal(hr_process_processor(), second);
    assert_int_equal(mprotect((void *)base, 65536, PROT_READ), -1);
    assert_int_equal(sched_setaffinity(0, sizeof allowed, &allowed), 0);
}

static void the_mappings_are_ordered_and_have_a_stack(void **state)
{
    (void)state;
    static hr_mappings mappings;
    hr_mapping mapping;
    uintptr_t end = 0;
    bool stack = false;
    assert_true(hr_mappings_open(&mappings));
    while (hr_mappings_next(&mappings, &mapping)) {
        assert_true(mapping.first >= end && mapping.first < mapping.end);
        end = mapping.end;
        const uintptr_t here = (uintptr_t)&mapping;
        if (!strcmp(mapping.name, "[stack]")) stack = here >= mapping.first && here < mapping.end;
    }
    hr_mappings_close(&mappings);
    assert_true(stack || !hr_process_is_exact());
}

static void the_machine_has_room(void **state)
{
    (void)state;
    const hr_room memory = hr_room_memory();
    print_message("%lld of %lld bytes left of %s\n", (long long)memory.left_bytes,
                  (long long)memory.whole_bytes, memory.name);
    assert_true(memory.left_bytes > 0 && memory.left_bytes <= memory.whole_bytes);
    assert_true(hr_room_process_bytes() > 0);
}

int main(int argc, char **argv)
{
    if (argc == 4) return run_once(atoll(argv[1]), atoi(argv[2]), atoll(argv[3]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_uses_what_was_planned),
        cmocka_unit_test(planning_counts_when_it_is_larger_than_the_arena),
        cmocka_unit_test(the_stacks_of_eight_threads_are_counted),
        cmocka_unit_test(the_lines_sum_to_the_process),
        cmocka_unit_test(pages_are_freed_on_one_processor),
        cmocka_unit_test(the_mappings_are_ordered_and_have_a_stack),
        cmocka_unit_test(the_machine_has_room),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
