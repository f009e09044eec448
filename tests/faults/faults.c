/* SPDX-License-Identifier: Apache-2.0 */
/* tests/faults/faults.c - a preloaded library: traces the calls that change files, and makes the
 * n-th call of a kind fail.
 *
 *   HR_FAULTS_TRACE=FILE           the trace of changes to files below the start directory of the
 *                                  program, in order; tools/lost-power reads it
 *   HR_FAULTS=KIND:N:ERROR[:on]    the n-th call of that kind fails, or with :on every call from
 *                                  the n-th on. A write with ENOSPC first writes half of its
 *                                  bytes. The error KILL kills the program at that call
 *   HR_FAULTS_TOLD=FILE            created when the first call fails, with the name of the call
 *
 * File kinds count only files below that directory: `write`, `flush`, `rename`, `link`, `make` (an
 * open that creates a file), `folder`, `size`, `remove`; `change`, which is all of these, and
 * `grow`, all except `remove`. `memory`, `map` and `open` count all calls before the seal, which is
 * detected as in tests/mem/trap.c. Nothing here allocates memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern bool hr_memory_is_sealed(void) __attribute__((weak));

/* The glibc allocator under its internal names. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);

enum {
    WRITE = 1,
    FLUSH = 2,
    RENAME = 4,
    LINK = 8,
    MAKE = 16,
    FOLDER = 32,
    SIZE = 64,
    REMOVE = 128,
    CHANGE = 255,
    GROW = CHANGE & ~REMOVE,
    MEMORY = 256,
    MAP = 512,
    OPEN = 1024
};

static struct {
    int kinds, code;
    long nth;
    bool on;
    const char *told;
} fault;

static atomic_long counted;
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static int trace = -1;
static int torn = -1; /* its last write was partial, and the next one fails */

/* ---- options */

enum { KILL = -1 }; /* as an error: kills the program at that call */

static int kind_of(const char *word, size_t length)
{
    static const struct {
        const char *word;
        int kinds;
    } known[] = { { "write", WRITE }, { "flush", FLUSH },   { "rename", RENAME },
                  { "link", LINK },   { "make", MAKE },     { "folder", FOLDER },
                  { "size", SIZE },   { "remove", REMOVE }, { "change", CHANGE },
                  { "grow", GROW },   { "memory", MEMORY }, { "map", MAP },
                  { "open", OPEN } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].word) == length && !memcmp(known[i].word, word, length))
            return known[i].kinds;
    return 0;
}

static int code_of(const char *word)
{
    static const int codes[] = { ENOSPC, EIO, ENOMEM, EMFILE, EACCES, EROFS };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        const char *name = strerrorname_np(codes[i]);
        if (!strncmp(word, name, strlen(name))) return codes[i];
    }
    return strncmp(word, "KILL", 4) ? 0 : KILL;
}

static __attribute__((constructor)) void begin(void)
{
    const char *option = getenv("HR_FAULTS"), *file = getenv("HR_FAULTS_TRACE");
    if (syscall(SYS_getcwd, root, sizeof root) < 0) abort();
    fault.told = getenv("HR_FAULTS_TOLD");
    if (file && *file) {
        const long made = syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        trace = made < 0 ? -1 : fcntl((int)made, F_DUPFD_CLOEXEC, 200);
        syscall(SYS_close, made);
        if (trace < 0) abort();
    }
    if (!option || !*option) return;
    char *end;
    const size_t length = strcspn(option, ":");
    if (!option[length]) abort();
    fault.nth = strtol(option + length + 1, &end, 10);
    fault.code = *end ? code_of(end + 1) : 0;
    fault.on = strstr(option, ":on");
    if (fault.nth < 1 || !fault.code) abort();
    fault.kinds = kind_of(option, length);
    if (!fault.kinds) abort();
}

/* ---- failing calls */

static void report_fault(const char *call, const char *path)
{
    static char text[PATH_MAX + 64]; /* static: stack sizes are planned */
    if (!fault.told) return;
    const long file = syscall(SYS_openat, AT_FDCWD, fault.told, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (file < 0) return;
    const int length = snprintf(text, sizeof text, "%s %s\n", call, path);
    syscall(SYS_write, file, text, (size_t)length);
    syscall(SYS_close, file);
}

static bool fails(int kind, const char *call, const char *path)
{
    if (!(fault.kinds & kind)) return false;
    const long number = atomic_fetch_add(&counted, 1) + 1;
    if (number < fault.nth || (number > fault.nth && !fault.on)) return false;
    if (number == fault.nth) report_fault(call, path);
    if (fault.code == KILL) syscall(SYS_kill, getpid(), SIGKILL);
    errno = fault.code;
    return true;
}

static bool fails_early(int kind, const char *call, const char *path)
{
    if (!(fault.kinds & kind) || (hr_memory_is_sealed && hr_memory_is_sealed())) return false;
    return fails(kind, call, path);
}

/* ---- paths */

static bool is_inside(const char *path)
{
    const size_t length = strlen(root);
    return !strncmp(path, root, length) && (path[length] == '/' || !path[length]);
}

static const char *path_of(int file, char path[PATH_MAX])
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", file);
    const long length = syscall(SYS_readlink, self, path, (size_t)PATH_MAX - 1);
    path[length > 0 ? length : 0] = 0;
    return path;
}

static const char *absolute(int directory, const char *name, char path[PATH_MAX])
{
    if (*name == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return path;
    }
    if (directory == AT_FDCWD) snprintf(path, PATH_MAX, "%s", root);
    else path_of(directory, path);
    const size_t length = strlen(path);
    snprintf(path + length, PATH_MAX - length, "/%s", name);
    return path;
}

/* ---- the trace: tab-separated lines; a write is followed by its bytes */

static __attribute__((format(printf, 1, 2))) void put(const char *format, ...)
{
    static char text[2 * PATH_MAX + 64];
    const int code = errno;
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (trace >= 0 && syscall(SYS_write, trace, text, (size_t)length) != length) abort();
    errno = code;
}

static void put_write(int file, long offset, const void *bytes, long count)
{
    put("write\t%d\t%ld\t%ld\n", file, offset, count);
    if (trace >= 0 && syscall(SYS_write, trace, bytes, (size_t)count) != count) abort();
}

/* A lock serializes threads from counting a call to writing its line. */
static char first_path[PATH_MAX], second_path[PATH_MAX];

static int leave(long result)
{
    const int code = errno;
    pthread_mutex_unlock(&order);
    errno = code;
    return (int)result;
}

static void enter(void)
{
    pthread_mutex_lock(&order);
}

/* ---- opening */

static int open_any(int directory, const char *name, int flags, mode_t mode)
{
    const bool makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
    enter();
    const char *path = absolute(directory, name, first_path);
    const bool inside = is_inside(path);
    if (fails_early(OPEN, "open", path) || (makes && inside && fails(MAKE, "open", path)))
        return leave(-1);
    const long file = syscall(SYS_openat, directory, name, flags, mode);
    if (file >= 0 && inside) put("open\t%ld\t%d\t%s\n", file, flags, path);
    return leave(file);
}

static mode_t mode_of(int flags, va_list list)
{
    const bool has = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
    return has ? va_arg(list, mode_t) : 0;
}

#define OPEN_AT(name) \
    int name(int directory, const char *path, int flags, ...) \
    { \
        va_list list; \
        va_start(list, flags); \
        const mode_t mode = mode_of(flags, list); \
        va_end(list); \
        return open_any(directory, path, flags, mode); \
    }

#define OPEN_PATH(name) \
    int name(const char *path, int flags, ...) \
    { \
        va_list list; \
        va_start(list, flags); \
        const mode_t mode = mode_of(flags, list); \
        va_end(list); \
        return open_any(AT_FDCWD, path, flags, mode); \
    }

OPEN_AT(openat)
OPEN_AT(openat64)
OPEN_PATH(open)
OPEN_PATH(open64)

int close(int file)
{
    enter();
    const long result = syscall(SYS_close, file);
    put("close\t%d\n", file);
    return leave(result);
}

/* ---- file contents */

/* Returns whether a descriptor is a file below the directory: no pipe, and no output of the
 * program. */
static bool is_ours(int file)
{
    struct stat what;
    if (file <= STDERR_FILENO || fstat(file, &what) != 0 || S_ISFIFO(what.st_mode)) return false;
    return is_inside(path_of(file, first_path));
}

/* offset -1: the current position */
static ssize_t write_any(int file, const void *bytes, size_t count, off_t offset)
{
    if (file <= STDERR_FILENO)
        return syscall(SYS_write, file, bytes, count); /* also in signal handlers */
    enter();
    const bool ours = is_ours(file);
    size_t part = count;
    if (ours && torn == file) {
        torn = -1;
        errno = fault.code;
        leave(-1);
        return -1;
    }
    if (ours && fails(WRITE, "write", first_path)) {
        if (fault.code != ENOSPC || count < 2 || fault.on) {
            leave(-1);
            return -1;
        }
        torn = file;
        part = count / 2;
    }
    const ssize_t done = offset < 0 ? syscall(SYS_write, file, bytes, part)
                                    : syscall(SYS_pwrite64, file, bytes, part, offset);
    if (ours && done > 0)
        put_write(file, offset < 0 ? syscall(SYS_lseek, file, 0, SEEK_CUR) - done : offset, bytes,
                  done);
    leave(0);
    return done;
}

ssize_t write(int file, const void *bytes, size_t count)
{
    return write_any(file, bytes, count, -1);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset)
{
    return write_any(file, bytes, count, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset)
{
    return write_any(file, bytes, count, offset);
}

static int cut_any(int file, off_t length)
{
    enter();
    const bool ours = is_ours(file);
    if (ours && fails(SIZE, "ftruncate", first_path)) return leave(-1);
    const long result = syscall(SYS_ftruncate, file, length);
    if (ours && result == 0) put("cut\t%d\t%ld\n", file, (long)length);
    return leave(result);
}

int ftruncate(int file, off_t length)
{
    return cut_any(file, length);
}

int ftruncate64(int file, off64_t length)
{
    return cut_any(file, length);
}

/* fallocate changes no readable bytes, so it is not traced. */
static int reserve_any(int file, int mode, off_t offset, off_t bytes)
{
    enter();
    const bool fails_now = is_ours(file) && fails(SIZE, "fallocate", first_path);
    return leave(fails_now ? -1 : syscall(SYS_fallocate, file, mode, offset, bytes));
}

int fallocate(int file, int mode, off_t offset, off_t bytes)
{
    return reserve_any(file, mode, offset, bytes);
}

int fallocate64(int file, int mode, off64_t offset, off64_t bytes)
{
    return reserve_any(file, mode, offset, bytes);
}

static int flush_any(long number, int file)
{
    enter();
    const bool ours = is_ours(file);
    if (ours && fails(FLUSH, "fsync", first_path)) return leave(-1);
    const long result = syscall(number, file);
    if (ours && result == 0) put("flush\t%d\n", file);
    return leave(result);
}

int fsync(int file)
{
    return flush_any(SYS_fsync, file);
}

int fdatasync(int file)
{
    return flush_any(SYS_fdatasync, file);
}

/* ---- names */

static int rename_any(int from, const char *old, int to, const char *name, unsigned flags)
{
    enter();
    const char *before = absolute(from, old, first_path), *now = absolute(to, name, second_path);
    if (is_inside(now) && fails(RENAME, "rename", now)) return leave(-1);
    const long result = syscall(SYS_renameat2, from, old, to, name, flags);
    if (result == 0 && is_inside(now))
        put("%s\t%s\t%s\n", flags & RENAME_EXCHANGE ? "exchange" : "rename", before, now);
    return leave(result);
}

int rename(const char *old, const char *name)
{
    return rename_any(AT_FDCWD, old, AT_FDCWD, name, 0);
}

int renameat(int from, const char *old, int to, const char *name)
{
    return rename_any(from, old, to, name, 0);
}

int renameat2(int from, const char *old, int to, const char *name, unsigned flags)
{
    return rename_any(from, old, to, name, flags);
}

/* A file without a name is traced by its descriptor. */
static int link_any(int from, const char *old, int to, const char *name, int flags)
{
    static const char self[] = "/proc/self/fd/";
    enter();
    const char *before = absolute(from, old, first_path), *now = absolute(to, name, second_path);
    const bool inside = is_inside(now);
    if (inside && fails(LINK, "link", now)) return leave(-1);
    const long result = syscall(SYS_linkat, from, old, to, name, flags);
    if (result == 0 && inside && !strncmp(before, self, sizeof self - 1))
        put("name\t%s\t%s\n", before + sizeof self - 1, now);
    else if (result == 0 && inside) put("link\t%s\t%s\n", before, now);
    return leave(result);
}

int link(const char *old, const char *name)
{
    return link_any(AT_FDCWD, old, AT_FDCWD, name, 0);
}

int linkat(int from, const char *old, int to, const char *name, int flags)
{
    return link_any(from, old, to, name, flags);
}

static int remove_any(int directory, const char *name, int flags)
{
    enter();
    const char *path = absolute(directory, name, first_path);
    if (is_inside(path) && fails(REMOVE, "unlink", path)) return leave(-1);
    const long result = syscall(SYS_unlinkat, directory, name, flags);
    if (result == 0 && is_inside(path))
        put("%s\t%s\n", flags & AT_REMOVEDIR ? "rmdir" : "unlink", path);
    return leave(result);
}

int unlink(const char *name)
{
    return remove_any(AT_FDCWD, name, 0);
}

int unlinkat(int directory, const char *name, int flags)
{
    return remove_any(directory, name, flags);
}

int rmdir(const char *name)
{
    return remove_any(AT_FDCWD, name, AT_REMOVEDIR);
}

int mkdir(const char *name, mode_t mode)
{
    enter();
    const char *path = absolute(AT_FDCWD, name, first_path);
    if (is_inside(path) && fails(FOLDER, "mkdir", path)) return leave(-1);
    const long result = syscall(SYS_mkdirat, AT_FDCWD, name, mode);
    if (result == 0 && is_inside(path)) put("mkdir\t%s\n", path);
    return leave(result);
}

/* ---- memory */

void *malloc(size_t bytes)
{
    return fails_early(MEMORY, "malloc", "") ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails_early(MEMORY, "calloc", "") ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    return fails_early(MEMORY, "realloc", "") ? NULL : __libc_realloc(block, bytes);
}

void *memalign(size_t align, size_t bytes)
{
    return fails_early(MEMORY, "memalign", "") ? NULL : __libc_memalign(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return memalign(align, bytes);
}

int posix_memalign(void **block, size_t align, size_t bytes)
{
    void *found = memalign(align, bytes);
    if (!found) return ENOMEM;
    *block = found;
    return 0;
}

void *mmap(void *place, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (fails_early(MAP, "mmap", "")) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, place, bytes, protection, flags, file, offset);
}

void *mmap64(void *place, size_t bytes, int protection, int flags, int file, off64_t offset)
{
    return mmap(place, bytes, protection, flags, file, offset);
}
