/* SPDX-License-Identifier: Apache-2.0 */
/* account_test.c - the memory of a process, against a clock that opens and closes regions page by
 * page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/account.h"
#include "base/checked.h"
#include "base/random.h"
#include "dev/space_file.h"
#include "mem/limits.h"
#include "mem/memory.h"

enum { CASES = 2000, REGIONS = 6, ROOM = 64 };

static int64_t draw(const hr_random_stream *stream, uint32_t at, int64_t below)
{
    const hr_random_row row = hr_random_row_of(*stream, at / 4096, at % 4096);
    return (int64_t)(hr_random_wide(&row, 0) % (uint64_t)below);
}

/* One bool per page and phase. */
static int64_t pages_open(const hr_account_region *regions, int32_t count, hr_phase phase)
{
    int64_t pages = 0;
    for (int32_t i = 0; i < count; i++) {
        bool is_open[ROOM] = { false };
        for (hr_phase p = 0; p < HR_PHASES; p++) {
            if (p == regions[i].first)
                for (int64_t b = 0; b < regions[i].bytes; b++) is_open[b / hr_page_bytes()] = true;
            if (p == phase)
                for (int32_t k = 0; k < ROOM; k++) pages += is_open[k];
            if (p == regions[i].last)
                for (int32_t k = 0; k < ROOM; k++) is_open[k] = false;
        }
    }
    return pages;
}

static int64_t line(const hr_account *account, const char *name)
{
    for (int32_t i = 0; i < account->line_count; i++)
        if (!strcmp(account->lines[i].name, name)) return account->lines[i].bytes;
    fail_msg("no line %s", name);
    return -1;
}

static void the_peak_of_the_phases_is_planned(void **state)
{
    const hr_memory memory = { .image_bytes = 1 << 20,
                               .main_stack_bytes = HR_STACK_BYTES,
                               .heap_bytes = HR_HEAP_BYTES };
    const hr_random_stream stream = hr_random_stream_of(7, 0, 0, 0);
    const hr_process_base base = hr_memory_process(&memory);
    const int64_t page = hr_page_bytes();
    uint32_t at = 0;
    (void)state;
    for (int32_t c = 0; c < CASES; c++) {
        hr_account_region regions[REGIONS];
        hr_account account = { 0 };
        const int64_t arena = draw(&stream, at++, 40 * page);
        const int32_t count = (int32_t)draw(&stream, at++, REGIONS + 1);
        const int32_t threads = 1 + (int32_t)draw(&stream, at++, 2);
        for (int32_t i = 0; i < count; i++) {
            regions[i].bytes = draw(&stream, at++, ROOM * page);
            regions[i].first = (hr_phase)draw(&stream, at++, HR_PHASES);
            regions[i].last = regions[i].first +
                              (hr_phase)draw(&stream, at++, HR_PHASES - (int64_t)regions[i].first);
        }
        hr_account_regions(&base, regions, count, threads, "reference", arena, &account);
        int64_t before = 0;
        for (hr_phase p = HR_PHASE_PLAN; p < HR_PHASE_RUN; p++)
            before = hr_max(before, pages_open(regions, count, p) * page);
        const int64_t beside = pages_open(regions, count, HR_PHASE_RUN) * page;
        const int64_t fixed = memory.image_bytes + memory.main_stack_bytes + HR_HEAP_BYTES +
                              hr_process_counter_bytes();
        const int64_t running = beside + hr_round_up(arena, page) +
                                (threads - 1) * (int64_t)HR_STACK_BYTES;
        assert_int_equal(line(&account, "tables"), beside);
        assert_int_equal(account.bytes, fixed + hr_max(before, running));
        assert_int_equal(account.threads, threads);
    }
}

static void a_budget_covers_the_process_and_a_machine_its_page_tables(void **state)
{
    const int64_t GiB = 1 << 30, page = hr_page_bytes();
    (void)state;
    assert_int_equal(hr_room_available(3 * GiB), 3 * GiB);
    assert_int_equal(hr_account_needed(3 * GiB, page, 2 * GiB, 2, false), 2 * GiB);
    assert_int_equal(hr_account_process(3 * GiB, page, 3 * GiB, 2, false), 3 * GiB);
    assert_true(hr_room_available(0) > 0);
    assert_true(hr_account_needed(0, page, 2 * GiB, 2, false) > 2 * GiB + 2 * GiB / 512);
    for (int64_t available = GiB; available < 64 * GiB; available += GiB) {
        const int64_t process = hr_account_process(0, page, available, 2, false);
        assert_true(process > 0 && hr_account_needed(0, page, process, 2, false) <= available);
    }
}

/* Two threads with a piece of pages each, where there is no direct I/O. */
static void a_file_of_the_plan_adds_its_threads_and_their_pages(void **state)
{
    const int64_t GiB = 1 << 30, page = hr_page_bytes();
    const int64_t more = HR_SPACE_THREADS * ((48 << 10) + HR_SPACE_PIECE_BYTES);
    (void)state;
    assert_int_equal(hr_account_needed(GiB, page, GiB, 2, true), GiB);
    assert_int_equal(hr_account_needed(0, page, GiB, 2, true),
                     hr_account_needed(0, page, GiB, 2, false) + more);
    assert_int_equal(hr_account_process(0, page, GiB, 2, true),
                     hr_account_process(0, page, GiB, 2, false) - more);
}

static void an_open_region_counts_at_once(void **state)
{
    hr_memory memory = { 0 };
    hr_region region;
    (void)state;
    assert_int_equal(hr_memory_open(&memory, NULL), HR_OK);
    const int64_t before = hr_memory_bytes_with(&memory, 0),
                  more = hr_memory_bytes_with(&memory, 5000);
    assert_int_equal(more - before, hr_round_up(5000, hr_page_bytes()));
    assert_int_equal(hr_memory_region_open(&memory, "a test", 5000, &region, NULL), HR_OK);
    assert_int_equal(hr_memory_bytes_with(&memory, 0), more);
    hr_memory_close(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peak_of_the_phases_is_planned),
        cmocka_unit_test(a_budget_covers_the_process_and_a_machine_its_page_tables),
        cmocka_unit_test(a_file_of_the_plan_adds_its_threads_and_their_pages),
        cmocka_unit_test(an_open_region_counts_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
