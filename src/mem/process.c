/* SPDX-License-Identifier: Apache-2.0 */
/* mem/process.c - iterates over the mappings of the process, sums them and touches their pages. */
#define _GNU_SOURCE
#include "mem/process.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/account.h"
#include "base/checked.h"
#include "base/small_file.h"
#include "headroom/doctor.h"
#include "mem/proc.h"

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

bool hr_process_is_exact(void)
{
    return !HR_ADDRESS_SANITIZER && !HR_THREAD_SANITIZER;
}

int64_t hr_page_bytes(void)
{
    return sysconf(_SC_PAGESIZE);
}

static hr_status unreadable(hr_error *err)
{
    return hr_fail(err, HR_FAILURE, "/proc/self/maps: cannot be read: %s", strerror(errno));
}

/* Returns true for kernel pages that the RSS never includes: the clock and vsyscall pages. */
static bool is_kernel(const hr_mapping *mapping)
{
    return !strncmp(mapping->name, "[vvar", 5) || !strcmp(mapping->name, "[vsyscall]");
}

/* With a sanitizer, unnamed mappings are excluded because shadow memory has no name; this also
 * excludes anonymous pages of the program. */
static bool is_image(const hr_mapping *mapping)
{
    if (!mapping->readable || is_kernel(mapping)) return false;
    if (!strcmp(mapping->name, "[heap]") || !strcmp(mapping->name, "[stack]")) return false;
    return hr_process_is_exact() || mapping->name[0] == '/';
}

static int64_t bytes_inside(const hr_mapping *mapping, const hr_span *span)
{
    const int64_t base = (int64_t)(uintptr_t)span->base;
    return hr_max(0, hr_min((int64_t)mapping->end, base + span->bytes) -
                         hr_max((int64_t)mapping->first, base));
}

hr_status hr_process_image_bytes(const hr_span *others, int32_t count, int64_t *bytes,
                                 hr_error *err)
{
    hr_mappings mappings;
    hr_mapping mapping;
    if (!hr_mappings_open(&mappings)) return unreadable(err);
    int64_t sum = 0;
    while (hr_mappings_next(&mappings, &mapping)) {
        if (!is_image(&mapping)) continue;
        sum += (int64_t)(mapping.end - mapping.first);
        for (int32_t i = 0; i < count; i++) sum -= bytes_inside(&mapping, &others[i]);
    }
    hr_mappings_close(&mappings);
    *bytes = sum;
    return HR_OK;
}

hr_status hr_process_populate(hr_error *err)
{
    if (!hr_process_is_exact()) return HR_OK;
    hr_mappings mappings;
    hr_mapping mapping;
    if (!hr_mappings_open(&mappings)) return unreadable(err);
    int refused = 0;
    while (!refused && hr_mappings_next(&mappings, &mapping)) {
        if (!mapping.readable || is_kernel(&mapping) || !strcmp(mapping.name, "[stack]")) continue;
        const bool own = mapping.writable && !mapping.shared;
        const size_t bytes = mapping.end - mapping.first;
        if (madvise((void *)mapping.first, bytes, own ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
            refused = errno;
    }
    hr_mappings_close(&mappings);
    if (!refused) return HR_OK;
    return hr_fail(err, refused == ENOMEM ? HR_NO_FIT : HR_FAILURE,
                   "mapping %lx-%lx %s: its pages cannot be allocated: %s",
                   (unsigned long)mapping.first, (unsigned long)mapping.end, mapping.name,
                   strerror(refused));
}

/* The heap can be several mappings: in a forked child, the kernel does not merge new heap with the
 * inherited one. */
hr_status hr_process_heap_bytes(int64_t *bytes, hr_error *err)
{
    hr_mappings mappings;
    hr_mapping mapping;
    int64_t sum = 0;
    if (!hr_mappings_open(&mappings)) return unreadable(err);
    while (hr_mappings_next(&mappings, &mapping))
        if (!strcmp(mapping.name, "[heap]")) sum += (int64_t)(mapping.end - mapping.first);
    hr_mappings_close(&mappings);
    *bytes = sum;
    return HR_OK;
}

/* Grows the heap by allocating and freeing one block of the missing size; trimming is off, so the
 * heap keeps its size. The free top of the heap is added, because it is used without growing the
 * heap. libc rounds the end of the heap up to a page.
 *
 * A host program may have a larger heap: what it uses is counted beside HR_HEAP_BYTES, in whole
 * such units, and what it has freed is not, so that all plans of one program are the same. */
hr_status hr_process_heap_fix(int64_t *bytes, hr_error *err)
{
    int64_t heap;
    *bytes = HR_HEAP_BYTES;
    if (!hr_process_is_exact()) return HR_OK;
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    hr_status status = hr_process_heap_bytes(&heap, err);
    if (status == HR_OK && heap > HR_HEAP_BYTES && malloc_trim(0))
        status = hr_process_heap_bytes(&heap, err);
    if (status != HR_OK) return status;
    const int64_t used = (int64_t)mallinfo2().uordblks;
    if (heap > HR_HEAP_BYTES)
        *bytes = hr_round_up(hr_max(heap, used + HR_HEAP_BYTES), HR_HEAP_BYTES);
    const int64_t missing = *bytes - heap;
    if (missing <= hr_page_bytes()) return status;
    mallopt(M_TOP_PAD, 0);
    const size_t top = mallinfo2().keepcost;
    void *volatile block = malloc((size_t)(missing - hr_page_bytes()) + top);
    free(block);
    return HR_OK;
}

static bool find_stack(hr_mapping *stack)
{
    hr_mappings mappings;
    bool found = false;
    if (!hr_mappings_open(&mappings)) return false;
    while (!found && hr_mappings_next(&mappings, stack)) found = !strcmp(stack->name, "[stack]");
    hr_mappings_close(&mappings);
    return found;
}

/* The kernel puts arguments and environment at the top of the stack. The AT_RANDOM bytes are below
 * them, at a random distance of up to 8 KiB. All frames together need less than 27/32 of a stack,
 * so an environment below 32 KiB needs only one stack size, wherever it begins. */
int64_t hr_process_stack_bytes(void)
{
    hr_mapping stack;
    const uintptr_t below = (uintptr_t)getauxval(AT_RANDOM), here = (uintptr_t)&stack;
    int64_t environment = 0;
    if (!find_stack(&stack)) stack = (hr_mapping){ 0 };
    if (below >= stack.first && below < stack.end) environment = (int64_t)(stack.end - below);
    const int64_t frames = HR_STACK_BYTES / 32 * 27;
    const int64_t bytes = hr_round_up(environment + frames, HR_STACK_BYTES);
    const int64_t mapped = (int64_t)(stack.end - stack.first);
    if (mapped <= bytes) return bytes;
    /* A host program has used more, and may call from a deep frame. */
    const bool on_it = here >= stack.first && here < stack.end;
    const int64_t depth = on_it ? (int64_t)(stack.end - here) : 0;
    return hr_round_up(hr_max(mapped, depth + frames), HR_STACK_BYTES);
}

/* The kernel counts the environment towards the limit, like the plan. */
hr_status hr_machine_check_stack(hr_error *err)
{
    struct rlimit limit;
    const int64_t needed = hr_process_stack_bytes();
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return HR_OK;
    if (limit.rlim_cur >= (rlim_t)needed) return HR_OK;
    return hr_fail(err, HR_NO_FIT,
                   "the stack of the main thread needs %lld KiB, and its limit is %lld KiB: type "
                   "ulimit -s %lld",
                   (long long)needed / 1024, (long long)limit.rlim_cur / 1024,
                   (long long)needed / 1024);
}

/* The frame is as deep as what is missing and no deeper, because some compilers touch each page of
 * a frame (-fstack-clash-protection, the default of Ubuntu's). Half a page is left for the rest of
 * the frame; `last` is the first address of a page. */
static __attribute__((noinline)) void touch_down_to(uintptr_t last, int64_t page_bytes)
{
    volatile char here = 0;
    const int64_t missing = (int64_t)((uintptr_t)&here - last) - page_bytes / 2;
    if (missing <= 0) return;
    volatile char *const deep = __builtin_alloca((size_t)missing);
    for (int64_t i = missing - 1; i > 0; i -= page_bytes) deep[i] = here;
    deep[0] = here;
}

hr_status hr_process_stack_touch(int64_t bytes, hr_error *err)
{
    hr_mapping stack;
    const hr_status status = hr_machine_check_stack(err);
    if (status != HR_OK) return status;
    if (!hr_process_is_exact() || !find_stack(&stack)) return HR_OK;
    if ((int64_t)(stack.end - stack.first) > bytes)
        return hr_fail(err, HR_BROKEN, "main stack: planned %lld bytes, grew to %lld",
                       (long long)bytes, (long long)(stack.end - stack.first));
    touch_down_to(stack.end - (uintptr_t)bytes, hr_page_bytes());
    return HR_OK;
}

int32_t hr_process_processor(void)
{
    return sched_getcpu();
}

enum { PROCESSOR_SETS = 16 }; /* 16,384 processors */

/* Moves this thread to a processor within its affinity mask. Stores the old mask in `before`. */
static bool move_to(int32_t processor, cpu_set_t before[PROCESSOR_SETS])
{
    cpu_set_t there[PROCESSOR_SETS];
    const size_t bytes = sizeof there;
    if (processor < 0 || sched_getaffinity(0, bytes, before) != 0) return false;
    if (!CPU_ISSET_S((size_t)processor, bytes, before)) return false;
    CPU_ZERO_S(bytes, there);
    CPU_SET_S((size_t)processor, bytes, there);
    return sched_setaffinity(0, bytes, there) == 0;
}

void hr_process_unmap(hr_span *span, int32_t processor)
{
    cpu_set_t before[PROCESSOR_SETS];
    if (!span->base) return;
    const bool moved = move_to(processor, before);
    munmap((void *)span->base, (size_t)span->bytes);
    if (moved) (void)!sched_setaffinity(0, sizeof before, before);
    *span = (hr_span){ 0 };
}

/* Linux computes the RSS from shared counters (anonymous pages, file pages, shared memory), without
 * the changes that each processor has not added to them yet. Since 6.2 this is less than a batch of
 * max(32, 2 x processors online) pages per processor and counter (percpu_counter,
 * lib/percpu_counter.c; rss_stat of mm_struct); before, at most 64 per task (SPLIT_RSS_COUNTING,
 * mm/memory.c). Pending additions make the RSS too small; only pending removals make it too large.
 * Large numbers of pages are freed in one place only, hr_process_unmap, on one thread and one
 * processor: that is one batch of anonymous pages, not one per processor. The second batch covers
 * file pages that were freed before: pages of data segments that were replaced by copies, and what
 * the loader unmapped, a few dozen in total. Offline processors are counted too, so that one that
 * comes online changes nothing. */
int64_t hr_process_counter_bytes(void)
{
    return 2 * hr_max(64, 2 * sysconf(_SC_NPROCESSORS_CONF)) * hr_page_bytes();
}

int64_t hr_process_kernel_bytes(int64_t process_bytes, int32_t threads, bool has_file)
{
    return hr_account_kernel(hr_page_bytes(), process_bytes, threads, has_file);
}

static int64_t status_bytes(const char *key)
{
    char text[4096];
    hr_small_file_read("/proc/self/status", text, sizeof text);
    const int64_t kilobytes = hr_small_file_number(text, key);
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}

int64_t hr_process_peak_bytes(void)
{
    return status_bytes("VmHWM:");
}

int64_t hr_process_now_bytes(void)
{
    char text[128];
    long long resident = -1;
    hr_small_file_read("/proc/self/statm", text, sizeof text);
    return sscanf(text, "%*s %lld", &resident) == 1 ? resident * hr_page_bytes() : -1;
}
