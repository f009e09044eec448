/* SPDX-License-Identifier: Apache-2.0 */
/* tests/mem/trap.c - a preloaded library that ends a program which allocates after its seal.
 *
 * It detects the seal with hr_memory_is_sealed, which the program exports. Library calls are
 * intercepted by name and reported with their address; system calls of libc are intercepted with
 * seccomp. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* its inline functions have the names of what is intercepted */
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern bool hr_memory_is_sealed(void) __attribute__((weak));

/* The allocator of glibc under names that are not intercepted. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);

static atomic_flag filtered = ATOMIC_FLAG_INIT;
static atomic_bool watched;

static bool is_sealed(void)
{
    return hr_memory_is_sealed && hr_memory_is_sealed();
}

static void say(const char *text, int bytes)
{
    if (bytes > 0) syscall(SYS_write, 2, text, (size_t)bytes);
}

static void check(const char *call, size_t bytes, const void *caller)
{
    if (!is_sealed()) return;
    char text[512];
    Dl_info place = { 0 };
    dladdr(caller, &place);
    say(text, snprintf(text, sizeof text, "trap: %s(%zu) after the seal, from %s+0x%tx\n", call,
                       bytes, place.dli_fname ? place.dli_fname : "?",
                       (const char *)caller - (const char *)place.dli_fbase));
    abort();
}

#define CHECK(bytes) check(__func__, bytes, __builtin_return_address(0))

/* mmap, mremap and brk end the process, from any code and on any thread, until it exits. */
static void filter_calls(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_brk, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof rules / sizeof *rules, rules };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

/* Runs read data and the clock: the first of these calls after the seal installs the filter. */
static void watch(void)
{
    if (!is_sealed() || atomic_flag_test_and_set(&filtered)) return;
    atomic_store(&watched, true);
    filter_calls();
}

/* Reports at exit, so that a test can tell that the trap was active. */
static __attribute__((destructor)) void report(void)
{
    static const char text[] = "trap: no allocation after the seal\n";
    if (atomic_load(&watched)) say(text, sizeof text - 1);
}

void *malloc(size_t bytes)
{
    CHECK(bytes);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    CHECK(bytes);
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    CHECK(bytes);
    return __libc_realloc(block, bytes);
}

void *memalign(size_t align, size_t bytes)
{
    CHECK(bytes);
    return __libc_memalign(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    CHECK(bytes);
    return __libc_memalign(align, bytes);
}

int posix_memalign(void **block, size_t align, size_t bytes)
{
    CHECK(bytes);
    void *found = __libc_memalign(align, bytes);
    if (!found) return ENOMEM;
    *block = found;
    return 0;
}

void *mmap(void *place, size_t bytes, int protection, int flags, int file, off_t offset)
{
    CHECK(bytes);
    return (void *)syscall(SYS_mmap, place, bytes, protection, flags, file, offset);
}

void *mmap64(void *place, size_t bytes, int protection, int flags, int file, off64_t offset)
{
    CHECK(bytes);
    return (void *)syscall(SYS_mmap, place, bytes, protection, flags, file, offset);
}

void *mremap(void *place, size_t bytes, size_t bytes_after, int flags, ...)
{
    CHECK(bytes_after);
    return (void *)syscall(SYS_mremap, place, bytes, bytes_after, flags, 0);
}

void *sbrk(intptr_t bytes)
{
    CHECK((size_t)bytes);
    void *(*next)(intptr_t) = (void *(*)(intptr_t))dlsym(RTLD_NEXT, "sbrk");
    return next(bytes);
}

ssize_t pread(int file, void *bytes, size_t count, off_t offset)
{
    watch();
    return syscall(SYS_pread64, file, bytes, count, offset);
}

ssize_t pread64(int file, void *bytes, size_t count, off64_t offset)
{
    watch();
    return syscall(SYS_pread64, file, bytes, count, offset);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    watch();
    return (int)syscall(SYS_clock_gettime, clock, time);
}
