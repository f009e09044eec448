/* SPDX-License-Identifier: Apache-2.0 */
/* mem/memory.c - allocates with mmap only; the heap is left to the libraries. */
#define _GNU_SOURCE
#include "mem/memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "headroom/config.h"
#include "mem/limits.h"
#include "mem/poison.h"

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

enum {
    HUGE_BYTES = 2 << 20,
    PIECE_BYTES = 64 << 20 /* populated between two checks for interrupts: about 0.1 s */
};

/* The only global variable of the library: the seal is a property of the process. */
static atomic_int sealed_count;

bool hr_memory_is_sealed(void)
{
    return atomic_load(&sealed_count) > 0;
}

/* The error suggests a lower memory.budget only for the run itself: a budget does not reduce other
 * regions. */
static hr_status refuse(const char *name, int64_t needed, hr_room room, hr_error *err)
{
    char needed_text[64], left_text[64], whole_text[64];
    const bool budgeted = !strcmp(name, "run") || !strcmp(name, "arena");
    return hr_fail(err, HR_NO_FIT, "%s: needs %s, %s left of %s, %s; free some memory%s", name,
                   hr_bytes_print(needed, needed_text), hr_bytes_print(room.left_bytes, left_text),
                   hr_bytes_print(room.whole_bytes, whole_text), room.name,
                   budgeted ? ", or lower memory.budget" : "; no budget reduces this");
}

/* Maps whole pages, aligned to `align` (a multiple of the page size): maps more and unmaps both
 * ends. */
static hr_status map_pages(const char *name, int64_t bytes, int64_t align, int advice, void **base,
                           hr_error *err)
{
    const int64_t spare = align - hr_page_bytes();
    int64_t whole;
    if (!hr_checked_add(bytes, spare, &whole)) return refuse(name, bytes, hr_room_address(), err);
    uint8_t *first = mmap(0, (size_t)whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                          0);
    if (first == MAP_FAILED) {
        const hr_room address = hr_room_address(), memory = hr_room_memory();
        return refuse(name, whole, address.left_bytes < whole ? address : memory, err);
    }
    const int64_t place = (int64_t)(uintptr_t)first;
    const int64_t before = hr_round_up(place, align) - place;
    if (before > 0) munmap(first, (size_t)before);
    if (spare > before) munmap(first + before + bytes, (size_t)(spare - before));
    *base = first + before;
    madvise(*base, (size_t)bytes, advice); /* fails only on systems without huge pages */
    return HR_OK;
}

static hr_status make_resident(const hr_memory *memory, hr_error *err)
{
    hr_status status = hr_process_stack_touch(memory->main_stack_bytes, err);
    return status ? status : hr_process_populate(err);
}

/* Populates all mappings now and not only at the seal, so that the peak of planning and the peak of
 * the run include the same pages, and the plan can use the larger of the two. */
hr_status hr_memory_open(hr_memory *memory, hr_error *err)
{
    HR_ASSERT(!hr_memory_is_sealed());
    hr_memory fresh = { .state = HR_MEMORY_OPEN,
                        .processor = hr_process_processor(),
                        .main_stack_bytes = hr_process_stack_bytes(),
                        .peak_bytes_before = hr_process_peak_bytes() };
    hr_status status = hr_process_heap_fix(&fresh.heap_bytes, err);
    if (!status) status = make_resident(&fresh, err);
    if (!status) status = hr_process_image_bytes(0, 0, &fresh.image_bytes, err);
    if (status) return status;
    fresh.locale = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    *memory = fresh;
    return HR_OK;
}

hr_process_base hr_memory_process(const hr_memory *memory)
{
    return (hr_process_base){ .page_bytes = hr_page_bytes(),
                              .image_bytes = memory->image_bytes,
                              .main_stack_bytes = memory->main_stack_bytes,
                              .heap_bytes = memory->heap_bytes,
                              .stack_bytes = HR_STACK_BYTES,
                              .counter_bytes = hr_process_counter_bytes() };
}

void hr_memory_account(const hr_memory *memory, int64_t planning_bytes, int64_t tables_bytes,
                       int64_t arena_bytes, hr_account *account)
{
    const hr_process_base base = hr_memory_process(memory);
    hr_account_lines(&base, planning_bytes, tables_bytes, arena_bytes, account);
}

int64_t hr_memory_bytes_with(const hr_memory *memory, int64_t more)
{
    hr_account account = { .threads = 1 };
    const int64_t regions = hr_round_up(memory->regions_bytes, hr_page_bytes()) +
                            memory->stacks.bytes + hr_round_up(more, hr_page_bytes());
    hr_memory_account(memory, 0, regions, 0, &account);
    return account.bytes;
}

hr_status hr_memory_region_open(hr_memory *memory, const char *name, int64_t bytes,
                                hr_region *region, hr_error *err)
{
    HR_ASSERT(memory->state == HR_MEMORY_OPEN && memory->region_count < HR_MEMORY_REGIONS_MAX);
    HR_ASSERT(bytes >= 0);
    const int64_t page = hr_page_bytes();
    const hr_room room = hr_room_memory();
    if (bytes > room.left_bytes || bytes > INT64_MAX - page) return refuse(name, bytes, room, err);
    const int64_t mapped = hr_max(page, hr_round_up(bytes, page));
    void *base;
    hr_status status = map_pages(name, mapped, page, MADV_NOHUGEPAGE, &base, err);
    if (status) return status;
    memory->regions[memory->region_count++] = (hr_span){ base, mapped };
    memory->regions_bytes += mapped;
    memory->regions_bytes_most = hr_max(memory->regions_bytes_most, memory->regions_bytes);
    *region = hr_region_over(base, mapped);
    return HR_OK;
}

void hr_memory_region_enlarge_pages(const hr_region *region)
{
    madvise(region->base, (size_t)region->bytes, MADV_HUGEPAGE);
}

static hr_span *span_of(hr_memory *memory, const hr_region *region)
{
    HR_ASSERT(memory->state == HR_MEMORY_OPEN);
    for (int32_t i = 0; i < memory->region_count; i++)
        if (memory->regions[i].base == region->base) return &memory->regions[i];
    HR_ASSERT(!"a region of this memory");
    return 0;
}

void hr_memory_region_trim(hr_memory *memory, hr_region *region)
{
    hr_span *span = span_of(memory, region);
    const int64_t page = hr_page_bytes();
    const int64_t kept = hr_max(page, hr_round_up(region->used, page));
    hr_span rest = { region->base + kept, span->bytes - kept };
    if (rest.bytes > 0) hr_process_unmap(&rest, memory->processor);
    memory->regions_bytes -= span->bytes - kept;
    span->bytes = region->bytes = kept;
}

void hr_memory_region_close(hr_memory *memory, hr_region *region)
{
    if (!region->base) return;
    hr_span *span = span_of(memory, region);
    memory->regions_bytes -= span->bytes;
    hr_process_unmap(span, memory->processor);
    *span = memory->regions[--memory->region_count];
    *region = (hr_region){ 0 };
}

hr_status hr_memory_stacks_open(hr_memory *memory, int64_t bytes, void **stacks, hr_error *err)
{
    HR_ASSERT(memory->state == HR_MEMORY_OPEN && !memory->stacks.base);
    void *base = 0;
    const int64_t page = hr_page_bytes();
    HR_ASSERT(bytes % page == 0);
    hr_status status = bytes ? map_pages("stacks", bytes, page, MADV_NOHUGEPAGE, &base, err)
                             : HR_OK;
    if (status) return status;
    memory->stacks = (hr_span){ base, bytes };
    *stacks = base;
    return HR_OK;
}

/* Beyond a cgroup limit, the kernel does not return an error but kills the process. */
hr_status hr_memory_check_room(const hr_account *account, hr_error *err)
{
    const hr_room room = hr_room_memory();
    const int64_t own = room.own_bytes ? room.own_bytes : hr_max(0, hr_process_now_bytes());
    const int64_t needed = account->bytes - own +
                           hr_process_kernel_bytes(account->bytes, account->threads,
                                                   account->has_file);
    return needed > room.left_bytes ? refuse("run", needed, room, err) : HR_OK;
}

static hr_status populate(uint8_t *base, int64_t bytes, const volatile sig_atomic_t *interrupts,
                          hr_error *err)
{
    for (int64_t done = 0; done < bytes; done += PIECE_BYTES) {
        const int64_t piece = hr_min(PIECE_BYTES, bytes - done);
        if (interrupts && *interrupts > 0)
            return hr_fail(err, HR_INTERRUPTED, "interrupted while allocating the arena");
        if (madvise(base + done, (size_t)piece, MADV_POPULATE_WRITE) == 0) continue;
        if (errno == ENOMEM) return refuse("arena", bytes, hr_room_memory(), err);
        return hr_fail(err, HR_FAILURE, "arena: its pages cannot be allocated: %s",
                       strerror(errno));
    }
    return HR_OK;
}

hr_status hr_memory_arena_open(hr_memory *memory, const hr_account *account, int64_t arena_bytes,
                               const volatile sig_atomic_t *interrupts, hr_error *err)
{
    HR_ASSERT(memory->state == HR_MEMORY_OPEN && !memory->arena);
    HR_ASSERT(arena_bytes > 0 && account->line_count > 0);
    const int64_t mapped = hr_round_up(arena_bytes, hr_page_bytes());
    void *base;
    hr_status status = hr_memory_check_room(account, err);
    if (!status) status = map_pages("arena", mapped, HUGE_BYTES, MADV_HUGEPAGE, &base, err);
    if (status) return status;
    status = populate(base, mapped, interrupts, err);
    if (status) {
        munmap(base, (size_t)mapped);
        return status;
    }
    memory->arena = base;
    memory->arena_bytes = arena_bytes;
    memory->arena_bytes_used = 0;
    return HR_OK;
}

/* Bytes mapped now: the image from /proc, the rest from our own counters. */
static hr_status mapped_bytes(const hr_memory *memory, int64_t *bytes, hr_error *err)
{
    hr_span own[HR_MEMORY_REGIONS_MAX + 2];
    int64_t image_bytes, arena = hr_round_up(memory->arena_bytes, hr_page_bytes());
    memcpy(own, memory->regions, sizeof memory->regions);
    own[memory->region_count] = memory->stacks;
    own[memory->region_count + 1] = (hr_span){ memory->arena, arena };
    hr_status status = hr_process_image_bytes(own, memory->region_count + 2, &image_bytes, err);
    if (status) return status;
    if (image_bytes != memory->image_bytes)
        return hr_fail(err, HR_BROKEN, "image: %lld bytes at the start, %lld after allocation",
                       (long long)memory->image_bytes, (long long)image_bytes);
    *bytes = image_bytes + memory->main_stack_bytes + memory->stacks.bytes + memory->heap_bytes +
             memory->regions_bytes + arena;
    return HR_OK;
}

static hr_status check(const hr_memory *memory, const hr_account *account, hr_error *err)
{
    int64_t mapped;
    hr_status status = mapped_bytes(memory, &mapped, err);
    if (status) return status;
    int64_t heap;
    status = hr_process_heap_bytes(&heap, err);
    if (status) return status;
    const int64_t peak = hr_memory_peak_bytes(memory);
    if (heap > memory->heap_bytes)
        return hr_fail(err, HR_BROKEN, "heap: limited to %lld bytes, grew to %lld",
                       (long long)memory->heap_bytes, (long long)heap);
    if (hr_max(mapped, peak) <= account->bytes) return HR_OK;
    return hr_fail(err, HR_BROKEN,
                   "process: planned %lld bytes, %lld mapped after allocation, peak %lld",
                   (long long)account->bytes, (long long)mapped, (long long)peak);
}

hr_status hr_memory_seal(hr_memory *memory, const hr_account *account, hr_error *err)
{
    HR_ASSERT(memory->state == HR_MEMORY_OPEN);
    hr_status status = make_resident(memory, err);
    if (!status && hr_process_is_exact()) status = check(memory, account, err);
    if (status) return status;
    memory->state = HR_MEMORY_SEALED;
    atomic_fetch_add(&sealed_count, 1);
    return HR_OK;
}

int64_t hr_memory_peak_bytes(const hr_memory *memory)
{
    const int64_t peak = hr_process_peak_bytes();
    return peak > memory->peak_bytes_before ? peak : hr_process_now_bytes();
}

void hr_memory_close(hr_memory *memory)
{
    if (!memory || memory->state == HR_MEMORY_CLOSED) return;
    if (memory->state == HR_MEMORY_SEALED) atomic_fetch_sub(&sealed_count, 1);
    for (int32_t i = 0; i < memory->region_count; i++)
        hr_process_unmap(&memory->regions[i], memory->processor);
    hr_process_unmap(&memory->stacks, memory->processor);
    hr_span arena = { memory->arena, hr_round_up(memory->arena_bytes, hr_page_bytes()) };
    /* A later mapping may get the same addresses. */
    if (memory->arena) hr_arena_unpoison(memory->arena, arena.bytes);
    hr_process_unmap(&arena, memory->processor);
    uselocale(memory->locale);
    *memory = (hr_memory){ 0 };
}
