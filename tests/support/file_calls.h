/* SPDX-License-Identifier: Apache-2.0 */
/* support/file_calls.h - defines the system calls of scratch files for a test program, in place of
 * those of libc, so that the test can make them fail, stop short, or wait. The program defines
 * _GNU_SOURCE before its first header. */
#ifndef HR_TESTS_FILE_CALLS_H
#define HR_TESTS_FILE_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Zeros: all calls do what they are for. */
static struct {
    atomic_long reads, writes;          /* calls so far */
    long read_fails, write_fails;       /* the call of that number, from 1; 0: none */
    int code;                           /* of the call that fails; 0: it moves no bytes */
    atomic_bool interrupts;             /* every second call is interrupted */
    size_t most;                        /* bytes that a call moves; 0: all */
    bool no_direct, no_direct_transfer; /* the flag, or the transfers, are refused */
    int reserve_code, flush_code;       /* of fallocate and sync_file_range */
    int protect_fails;                  /* countdown to a failing mprotect; 0: none */
    bool (*held)(off_t at);             /* null, or: the call waits while it returns true */
    void (*before_lock)(void);          /* null, or: called by flock */
} calls;

/* A call that stops short within a block: direct I/O moves the whole blocks before. */
static ssize_t calls_cut(long number, int file, void *memory, size_t bytes, off_t at)
{
    if (!calls.most || calls.most >= bytes) return syscall(number, file, memory, bytes, at);
    const size_t blocks = calls.most / 4096 * 4096;
    const ssize_t moved = blocks ? syscall(number, file, memory, blocks, at) : 0;
    return moved == (ssize_t)blocks ? (ssize_t)calls.most : moved;
}

static ssize_t calls_move(long number, int file, void *memory, size_t bytes, off_t at)
{
    const bool writes = number == SYS_pwrite64;
    const long nth = 1 + atomic_fetch_add(writes ? &calls.writes : &calls.reads, 1);
    while (calls.held && calls.held(at)) sched_yield();
    if (calls.interrupts && nth % 2) {
        errno = EINTR;
        return -1;
    }
    if (nth == (writes ? calls.write_fails : calls.read_fails)) {
        errno = calls.code;
        return calls.code ? -1 : 0;
    }
    if (calls.no_direct_transfer && (syscall(SYS_fcntl, file, F_GETFL) & O_DIRECT)) {
        errno = EINVAL;
        return -1;
    }
    return calls_cut(number, file, memory, bytes, at);
}

ssize_t pread(int file, void *memory, size_t bytes, off_t at)
{
    return calls_move(SYS_pread64, file, memory, bytes, at);
}

ssize_t pwrite(int file, const void *memory, size_t bytes, off_t at)
{
    return calls_move(SYS_pwrite64, file, (void *)memory, bytes, at);
}

int fcntl(int file, int command, ...)
{
    va_list list;
    va_start(list, command);
    const long argument = va_arg(list, long);
    va_end(list);
    if (calls.no_direct && command == F_SETFL && argument & O_DIRECT) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_fcntl, file, command, argument);
}

int fallocate(int file, int mode, off_t at, off_t bytes)
{
    if (!calls.reserve_code) return (int)syscall(SYS_fallocate, file, mode, at, bytes);
    errno = calls.reserve_code;
    return -1;
}

int sync_file_range(int file, off_t at, off_t bytes, unsigned flags)
{
    if (!calls.flush_code) return (int)syscall(SYS_sync_file_range, file, at, bytes, flags);
    errno = calls.flush_code;
    return -1;
}

int flock(int file, int operation)
{
    if (calls.before_lock) calls.before_lock();
    return (int)syscall(SYS_flock, file, operation);
}

int mprotect(void *memory, size_t bytes, int protection)
{
    if (calls.protect_fails && --calls.protect_fails == 0) {
        errno = ENOMEM;
        return -1;
    }
    return (int)syscall(SYS_mprotect, memory, bytes, protection);
}

#endif
