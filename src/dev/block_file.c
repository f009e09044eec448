/* SPDX-License-Identifier: Apache-2.0 */
/* dev/block_file.c - a header of one block, then the data. The header identifies the kind of the
 * file. Writing and reading it back through direct I/O shows whether the file system supports
 * that. */
#define _GNU_SOURCE
#include "dev/block_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/path.h"
#include "headroom/config.h"

enum {
    HEADER_BYTES = HR_BLOCK_BYTES,
    BATCH_BLOCKS = 256, /* of checksums on the stack */
    STALLS_MOST = 16,   /* calls in a row that move less than a block */
    OPENINGS_MOST = 8   /* of a file that other processes remove */
};

static const char kind[] = "headroom scratch file ";

static bool is_aligned(const void *memory, int64_t offset, int64_t bytes)
{
    return ((uintptr_t)memory | (uint64_t)offset | (uint64_t)bytes) % HR_BLOCK_BYTES == 0;
}

int64_t hr_block_file_bytes(const hr_block_file_options *options)
{
    HR_ASSERT(options->bytes > 0 && is_aligned(NULL, 0, options->bytes));
    return hr_round_up(options->bytes / HR_BLOCK_BYTES * (int64_t)sizeof(uint32_t), 64);
}

/* One call that is not interrupted. It may stop short. */
static ssize_t call(int file, bool writes, void *memory, int64_t bytes, int64_t at)
{
    ssize_t moved;
    do
        moved = writes ? pwrite(file, memory, (size_t)bytes, (off_t)at)
                       : pread(file, memory, (size_t)bytes, (off_t)at);
    while (moved < 0 && errno == EINTR);
    return moved;
}

/* ---- opening */

static const char *name_of(const hr_block_file *file)
{
    return file->path + file->name_at;
}

static hr_status refuse_creation(const hr_block_file *file, int code, hr_error *err)
{
    const bool misplaced = code == ENOENT || code == ENOTDIR || code == EISDIR || code == ELOOP ||
                           code == ENXIO;
    return hr_fail(err, misplaced ? HR_USAGE : HR_FAILURE, "%s: cannot be created: %s", file->path,
                   code == ELOOP ? "it is a symbolic link" : hr_reason(code));
}

/* A descriptor of the directory finds the file even if the directory is moved. */
static hr_status open_directory(hr_block_file *file, const char *path, hr_error *err)
{
    file->directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return file->directory >= 0 ? HR_OK : refuse_creation(file, errno, err);
}

/* Opens or creates the file, without a wait for the writer of a pipe. */
static hr_status open_any(hr_block_file *file, hr_error *err)
{
    file->file = openat(file->directory, name_of(file),
                        O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    return file->file >= 0 ? HR_OK : refuse_creation(file, errno, err);
}

/* Returns whether the open file still has its name. */
static bool has_name(const hr_block_file *file)
{
    struct stat own, there;
    return fstat(file->file, &own) == 0 &&
           fstatat(file->directory, name_of(file), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           own.st_ino == there.st_ino && own.st_dev == there.st_dev;
}

/* Returns 0 or an errno value. */
static int try_lock(const hr_block_file *file)
{
    int code = 0;
    do code = flock(file->file, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    while (code == EINTR);
    return code;
}

/* The lock ends with the process, so the leftover of a killed run is not locked. A run that ends
 * removes its file, perhaps after it was opened here: then it is created again. */
static hr_status open_locked(hr_block_file *file, hr_error *err)
{
    for (int32_t i = 0; i < OPENINGS_MOST; i++) {
        const hr_status status = open_any(file, err);
        if (status != HR_OK) return status;
        const int code = try_lock(file);
        if (code && code != EWOULDBLOCK)
            return hr_fail(err, HR_FAILURE, "%s: cannot be locked: %s", file->path,
                           hr_reason(code));
        if (has_name(file))
            return code ? hr_fail(err, HR_FAILURE, "%s: is in use by another process", file->path)
                        : HR_OK;
        hr_file_close(&file->file);
    }
    return hr_fail(err, HR_FAILURE, "%s: was removed %d times while it was opened", file->path,
                   OPENINGS_MOST);
}

/* Whether an open file has the header. An empty file is one whose run was killed before it wrote
 * it. */
static hr_status find_kind(int file, const char *path, int64_t bytes, bool *found, hr_error *err)
{
    char begin[sizeof kind - 1];
    *found = bytes == 0;
    if (bytes < (int64_t)sizeof begin) return HR_OK;
    const hr_status status = hr_file_read(file, path, 0, begin, sizeof begin, err);
    *found = status == HR_OK && !memcmp(begin, kind, sizeof begin);
    return status;
}

static hr_status check_kind(const hr_block_file *file, hr_error *err)
{
    struct stat what;
    bool found;
    if (fstat(file->file, &what) != 0)
        return hr_fail(err, HR_FAILURE, "%s: cannot be examined: %s", file->path, hr_reason(errno));
    if (!S_ISREG(what.st_mode))
        return hr_fail(err, HR_USAGE, "%s: is a device or pipe, a file is needed", file->path);
    const hr_status status = find_kind(file->file, file->path, what.st_size, &found, err);
    if (status != HR_OK || found) return status;
    return hr_fail(err, HR_USAGE,
                   "%s: exists and is not a scratch file of headroom; remove it or move it away",
                   file->path);
}

bool hr_block_file_is(const char *path)
{
    int file;
    int64_t bytes;
    bool found;
    if (hr_file_open(path, &file, &bytes, NULL) != HR_OK) return false;
    (void)!find_kind(file, path, bytes, &found, NULL);
    hr_file_close(&file);
    return found;
}

static hr_status refuse_bytes(const hr_block_file *file, int64_t needed, int code, hr_error *err)
{
    char needed_text[HR_COUNT_BYTES], free_text[HR_COUNT_BYTES];
    struct statvfs system;
    hr_count_print(needed, needed_text);
    (void)!ftruncate(file->file, 0); /* so that the free bytes include its own */
    if (code == EFBIG)
        return hr_fail(err, HR_NO_FIT,
                       "%s: needs %s bytes, more than the limit of its file system or of this "
                       "process for a file",
                       file->path, needed_text);
    if (fstatvfs(file->file, &system) != 0)
        return hr_fail(err, HR_NO_FIT, "%s: needs %s bytes: %s", file->path, needed_text,
                       hr_reason(code));
    hr_count_print((int64_t)system.f_bavail * (int64_t)system.f_frsize, free_text);
    return hr_fail(err, HR_NO_FIT,
                   "%s: needs %s bytes, %s are free there%s: free some space, or give another "
                   "place",
                   file->path, needed_text, free_text, code == EDQUOT ? " beyond the quota" : "");
}

/* Where the file system cannot reserve space, the free bytes of now decide. */
static hr_status reserve_unsupported(const hr_block_file *file, int64_t bytes, hr_error *err)
{
    struct statvfs system;
    if (fstatvfs(file->file, &system) == 0 && system.f_blocks > 0 &&
        bytes / (int64_t)system.f_frsize >= (int64_t)system.f_bavail)
        return refuse_bytes(file, bytes, ENOSPC, err);
    if (ftruncate(file->file, (off_t)bytes) == 0) return HR_OK;
    const int code = errno;
    if (code == EFBIG) return refuse_bytes(file, bytes, code, err);
    return hr_fail(err, HR_FAILURE, "%s: cannot be extended: %s", file->path, hr_reason(code));
}

static hr_status reserve(const hr_block_file *file, hr_error *err)
{
    const int64_t bytes = HEADER_BYTES + file->bytes;
    int code = ftruncate(file->file, 0) == 0 ? 0 : errno;
    if (!code) {
        do code = fallocate(file->file, 0, 0, (off_t)bytes) == 0 ? 0 : errno;
        while (code == EINTR);
    }
    if (!code) return HR_OK;
    if (code == ENOSPC || code == EDQUOT || code == EFBIG)
        return refuse_bytes(file, bytes, code, err);
    if (code == EOPNOTSUPP || code == ENOSYS) return reserve_unsupported(file, bytes, err);
    return hr_fail(err, HR_FAILURE, "%s: its space cannot be reserved: %s", file->path,
                   hr_reason(code));
}

static bool set_direct(hr_block_file *file, bool direct)
{
    const int flags = fcntl(file->file, F_GETFL);
    if (flags < 0) return false;
    const int wanted = (flags & ~(O_DIRECT | O_NONBLOCK)) | (direct ? O_DIRECT : 0);
    if (fcntl(file->file, F_SETFL, wanted) != 0) return false;
    file->direct = direct;
    return true;
}

/* Returns 0 or an errno value. The second call shows why the first one stopped short. */
static int move_header(const hr_block_file *file, bool writes, uint8_t *block)
{
    ssize_t moved = call(file->file, writes, block, HEADER_BYTES, 0);
    if (moved >= 0 && moved < HEADER_BYTES)
        moved = call(file->file, writes, block, HEADER_BYTES, 0);
    return moved == HEADER_BYTES ? 0 : moved < 0 ? errno : EIO;
}

static int try_header(const hr_block_file *file, uint8_t *block, uint8_t *again)
{
    memset(again, 0, HEADER_BYTES);
    int code = move_header(file, true, block);
    if (!code) code = move_header(file, false, again);
    if (code) return code;
    return memcmp(block, again, HEADER_BYTES) ? EIO : 0;
}

/* File systems without direct I/O refuse the flag or the first transfer, with EINVAL. */
static __attribute__((noinline)) hr_status write_header(hr_block_file *file, const char *run,
                                                        hr_error *err)
{
    _Alignas(HR_BLOCK_BYTES) uint8_t block[HEADER_BYTES] = { 0 }, again[HEADER_BYTES];
    snprintf((char *)block, sizeof block,
             "%s1\nrun %.*s\nbytes %lld\nIt is used while the run is active. After a kill it can "
             "be removed.\n",
             kind, HR_BLOCK_FILE_RUN_BYTES - 1, run, (long long)file->bytes);
    int code = set_direct(file, true) ? try_header(file, block, again) : errno;
    if (code == EINVAL) code = set_direct(file, false) ? try_header(file, block, again) : errno;
    if (!code) return HR_OK;
    return hr_fail(err, HR_FAILURE, "%s: its header cannot be written and read: %s", file->path,
                   hr_reason(code));
}

static void close_both(hr_block_file *file)
{
    hr_file_close(&file->file);
    hr_file_close(&file->directory);
}

hr_status hr_block_file_open(hr_block_file *file, const hr_block_file_options *options,
                             hr_region *region, hr_error *err)
{
    HR_ASSERT(options->bytes > 0 && is_aligned(NULL, 0, options->bytes));
    *file = (hr_block_file){ .file = -1,
                             .directory = -1,
                             .bytes = options->bytes,
                             .has_crc32 = hr_crc32c_has_instruction() };
    hr_status status = hr_path_join(options->directory, options->name, file->path,
                                    sizeof file->path, err);
    if (status != HR_OK) return status;
    file->checksums = hr_region_take(region, options->bytes / HR_BLOCK_BYTES,
                                     sizeof *file->checksums);
    HR_ASSERT(file->checksums);
    file->name_at = (int32_t)(strlen(file->path) - strlen(options->name));
    status = open_directory(file, options->directory, err);
    if (status == HR_OK) status = open_locked(file, err);
    if (status == HR_OK) status = check_kind(file, err);
    if (status != HR_OK) {
        close_both(file);
        return status;
    }
    status = reserve(file, err);
    if (status == HR_OK) status = write_header(file, options->run, err);
    if (status != HR_OK) hr_block_file_close(file);
    return status;
}

void hr_block_file_close(hr_block_file *file)
{
    if (file->file < 0 || !file->bytes) return;
    if (has_name(file)) (void)!unlinkat(file->directory, name_of(file), 0);
    close_both(file);
}

/* ---- transfers */

/* A removed file would still take data, but its disk may be gone or its space needed. */
static hr_status check_file(const hr_block_file *file, hr_error *err)
{
    struct stat now;
    const int64_t needed = HEADER_BYTES + file->bytes;
    if (fstat(file->file, &now) != 0)
        return hr_fail(err, HR_FAILURE, "%s: cannot be examined: %s", file->path, hr_reason(errno));
    if (now.st_nlink == 0)
        return hr_fail(err, HR_CORRUPT, "%s: was removed while the run used it", file->path);
    if (now.st_size >= needed) return HR_OK;
    return hr_fail(err, HR_CORRUPT,
                   "%s: has %lld bytes, %lld are needed: it was truncated while the run used it",
                   file->path, (long long)now.st_size, (long long)needed);
}

static hr_status refuse_transfer(const hr_block_file *file, bool writes, int64_t offset,
                                 const char *reason, hr_error *err)
{
    return hr_fail(err, HR_FAILURE, "%s: cannot be %s at byte %lld: %s", file->path,
                   writes ? "written" : "read", (long long)offset, reason);
}

/* Moves pages to the disk and drops them. The cache then holds one transfer at most. */
static hr_status drop_pages(const hr_block_file *file, bool writes, int64_t offset, int64_t bytes,
                            hr_error *err)
{
    const unsigned flush = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                           SYNC_FILE_RANGE_WAIT_AFTER;
    if (writes && sync_file_range(file->file, (off_t)offset, (off_t)bytes, flush) != 0)
        return refuse_transfer(file, writes, offset, hr_reason(errno), err);
    (void)posix_fadvise(file->file, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
    return HR_OK;
}

/* A short transfer continues at a multiple of the block, as direct I/O needs it. */
static hr_status move(const hr_block_file *file, bool writes, uint8_t *memory, int64_t offset,
                      int64_t bytes, hr_error *err)
{
    int64_t done = 0;
    int32_t stalls = 0;
    hr_status status = check_file(file, err);
    while (status == HR_OK && done < bytes) {
        const int64_t at = offset + done;
        const ssize_t moved = call(file->file, writes, memory + done, bytes - done, at);
        if (moved < 0) return refuse_transfer(file, writes, at, hr_reason(errno), err);
        const int64_t blocks = moved / HR_BLOCK_BYTES;
        done += blocks * HR_BLOCK_BYTES;
        stalls = blocks ? 0 : stalls + 1;
        if (!blocks) status = check_file(file, err); /* perhaps just truncated */
        if (status == HR_OK && stalls > STALLS_MOST)
            return refuse_transfer(file, writes, at, "the system moves no bytes", err);
    }
    if (status == HR_OK && !file->direct) status = drop_pages(file, writes, offset, bytes, err);
    return status;
}

/* Blocks that were never written have checksum 0, so that of the data is never 0. */
static void take_checksums(const hr_block_file *file, const uint8_t *memory, int64_t count,
                           uint32_t *checksums)
{
    hr_crc32c_blocks(memory, HR_BLOCK_BYTES, count, file->has_crc32, checksums);
    for (int64_t i = 0; i < count; i++) checksums[i] += checksums[i] == 0;
}

void hr_block_file_check(const hr_block_file *file, const void *memory, int64_t offset,
                         int64_t bytes)
{
    HR_ASSERT(file->file >= 0 && is_aligned(memory, offset, bytes));
    HR_ASSERT(offset >= 0 && bytes > 0 && bytes <= file->bytes && offset <= file->bytes - bytes);
}

hr_status hr_block_file_write(const hr_block_file *file, const void *memory, int64_t offset,
                              int64_t bytes, hr_error *err)
{
    hr_block_file_check(file, memory, offset, bytes);
    take_checksums(file, memory, bytes / HR_BLOCK_BYTES, file->checksums + offset / HR_BLOCK_BYTES);
    return move(file, true, (uint8_t *)memory, HEADER_BYTES + offset, bytes, err);
}

hr_status hr_block_file_read(const hr_block_file *file, void *memory, int64_t offset, int64_t bytes,
                             hr_error *err)
{
    uint32_t found[BATCH_BLOCKS];
    const int64_t count = bytes / HR_BLOCK_BYTES;
    const uint32_t *expected = file->checksums + offset / HR_BLOCK_BYTES;
    hr_block_file_check(file, memory, offset, bytes);
    for (int64_t i = 0; i < count; i++)
        if (!expected[i])
            return hr_fail(err, HR_CORRUPT, "%s: byte %lld is read but was never written",
                           file->path, (long long)(HEADER_BYTES + offset + i * HR_BLOCK_BYTES));
    const hr_status status = move(file, false, memory, HEADER_BYTES + offset, bytes, err);
    if (status != HR_OK) return status;
    for (int64_t first = 0; first < count; first += BATCH_BLOCKS) {
        const int64_t batch = hr_min(BATCH_BLOCKS, count - first);
        take_checksums(file, (uint8_t *)memory + first * HR_BLOCK_BYTES, batch, found);
        for (int64_t i = 0; i < batch; i++)
            if (found[i] != expected[first + i])
                return hr_fail(err, HR_CORRUPT,
                               "%s: damaged: the block at byte %lld has checksum %08x, it was "
                               "written with %08x",
                               file->path,
                               (long long)(HEADER_BYTES + offset + (first + i) * HR_BLOCK_BYTES),
                               found[i], expected[first + i]);
    }
    return HR_OK;
}
