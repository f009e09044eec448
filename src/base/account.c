/* SPDX-License-Identifier: Apache-2.0 */
/* base/account.c - sums regions by phase, and the lines of a process. */
#include "base/account.h"

#include <string.h>

#include "base/checked.h"

void hr_account_lines(const hr_process_base *base, int64_t planning_bytes, int64_t tables_bytes,
                      int64_t arena_bytes, hr_account *account)
{
    const int64_t arena = hr_round_up(arena_bytes, base->page_bytes);
    const int64_t stacks = (account->threads - 1) * base->stack_bytes;
    const hr_account_line lines[] = {
        { "image", base->image_bytes },
        { "stacks", base->main_stack_bytes + stacks },
        { "heap", base->heap_bytes },
        { "tables", tables_bytes },
        { "planning", hr_max(0, planning_bytes - tables_bytes - stacks - arena) },
        { "arena", arena },
        { "kernel", base->counter_bytes },
    };
    account->line_count = sizeof lines / sizeof *lines;
    memcpy(account->lines, lines, sizeof lines);
    account->bytes = 0;
    for (int32_t i = 0; i < account->line_count; i++) account->bytes += lines[i].bytes;
}

void hr_account_regions(const hr_process_base *base, const hr_account_region *regions,
                        int32_t count, int32_t threads, const char *rung, int64_t arena_bytes,
                        hr_account *account)
{
    int64_t sums[HR_PHASES] = { 0 }, before = 0;
    for (int32_t i = 0; i < count; i++)
        for (hr_phase p = regions[i].first; p <= regions[i].last; p++)
            sums[p] += hr_round_up(regions[i].bytes, base->page_bytes);
    for (hr_phase p = 0; p < HR_PHASE_RUN; p++) before = hr_max(before, sums[p]);
    account->threads = threads;
    account->rung = rung;
    account->page_bytes = base->page_bytes;
    hr_account_lines(base, before, sums[HR_PHASE_RUN], arena_bytes, account);
}

void hr_account_card(const hr_process_base *base, int64_t arena_bytes, hr_account *account)
{
    const hr_account_line line = { "arena", hr_round_up(arena_bytes, base->page_bytes) };
    account->threads = 1;
    account->rung = "none";
    account->page_bytes = base->page_bytes;
    account->line_count = 1;
    account->lines[0] = line;
    account->bytes = line.bytes;
}

/* HR_SPACE_THREADS and HR_SPACE_PIECE_BYTES of dev/space_file.h. Without direct I/O, a call of one
 * thread fills pages with its bytes, which are dropped after it. */
enum { FILE_THREADS = 2, FILE_CALL_BYTES = 4 << 20 };

int64_t hr_account_kernel(int64_t page_bytes, int64_t process_bytes, int32_t threads, bool has_file)
{
    const int64_t MiB = 1 << 20;
    const int64_t entries = page_bytes / 8; /* per page table; a huge page keeps one in reserve */
    const int64_t tables = process_bytes / page_bytes / entries + 1;
    const int64_t scattered = 64;          /* upper levels, and nearly empty tables */
    const int64_t thread_bytes = 48 << 10; /* 16 KiB of stack; task structure with AMX state, 20
                                            * KiB */
    const int64_t files_bytes = 4 * MiB;   /* read-ahead, and dirty pages not yet on disk */
    const int64_t transfers_bytes = has_file ? FILE_THREADS * (thread_bytes + FILE_CALL_BYTES) : 0;
    return (tables + scattered) * page_bytes + threads * thread_bytes + files_bytes +
           transfers_bytes;
}

int64_t hr_account_needed(int64_t budget, int64_t page_bytes, int64_t process_bytes,
                          int32_t threads, bool has_file)
{
    return process_bytes +
           (budget ? 0 : hr_account_kernel(page_bytes, process_bytes, threads, has_file));
}

int64_t hr_account_process(int64_t budget, int64_t page_bytes, int64_t available, int32_t threads,
                           bool has_file)
{
    return available - (budget ? 0 : hr_account_kernel(page_bytes, available, threads, has_file));
}
