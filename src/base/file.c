/* SPDX-License-Identifier: Apache-2.0 */
/* base/file.c - files with open, pread, pwrite and rename; the result of every system call is
 * checked. */
#define _GNU_SOURCE
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/directory.h"
#include "base/path.h"
#include "headroom/config.h"

enum { KIND_BYTES = 64 }; /* longest prefix that identifies a file kind */

/* Some file systems do not support fsync on directories and return EINVAL; this is not an error. */
static int flush(int file)
{
    return fsync(file) == 0 || errno == EINVAL ? 0 : errno;
}

bool hr_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

int64_t hr_file_free_bytes(const char *path)
{
    struct statvfs system;
    int64_t bytes;
    if (statvfs(path, &system) != 0 || system.f_blocks == 0 ||
        !hr_checked_mul((int64_t)system.f_bavail, (int64_t)system.f_frsize, &bytes))
        return -1;
    return bytes;
}

hr_status hr_file_open_status(int code)
{
    const bool lacks = code == EMFILE || code == ENFILE || code == ENOMEM || code == EIO;
    return lacks ? HR_FAILURE : HR_USAGE;
}

bool hr_file_is_directory(const char *path)
{
    struct stat what;
    return stat(path, &what) == 0 && S_ISDIR(what.st_mode);
}

hr_status hr_file_open(const char *path, int *file, int64_t *bytes, hr_error *err)
{
    struct stat what;
    /* Without O_NONBLOCK, opening a named pipe would wait for a writer. */
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (opened < 0 && errno == ENOENT) {
        const hr_status status = hr_path_check_links(path, err);
        return status == HR_OK ? hr_fail(err, HR_USAGE, "%s: no such file", path) : status;
    }
    if (opened < 0)
        return hr_fail(err, hr_file_open_status(errno), "%s: cannot be read: %s", path,
                       hr_reason(errno));
    const int code = fstat(opened, &what) == 0 ? 0 : errno;
    if (code == 0 && S_ISREG(what.st_mode)) {
        *file = opened;
        *bytes = what.st_size;
        return HR_OK;
    }
    hr_file_close(&opened);
    if (code) return hr_fail(err, HR_FAILURE, "%s: cannot be examined: %s", path, hr_reason(code));
    return hr_fail(err, HR_USAGE, "%s: is %s, a file is needed", path,
                   S_ISDIR(what.st_mode) ? "a directory" : "a device or pipe");
}

void hr_file_close(int *file)
{
    if (*file >= 0) close(*file);
    *file = -1;
}

/* The error of a read up to `needed` that met the end of the file. */
static hr_status fail_short(int file, const char *path, int64_t needed, hr_error *err)
{
    struct stat there = { 0 };
    (void)fstat(file, &there);
    return hr_fail(err, HR_CORRUPT, "%s: has %lld bytes, %lld are needed", path,
                   (long long)there.st_size, (long long)needed);
}

hr_status hr_file_read(int file, const char *path, int64_t offset, void *memory, int64_t bytes,
                       hr_error *err)
{
    int64_t done = 0;
    while (done < bytes) {
        const ssize_t got = pread(file, (char *)memory + done, (size_t)(bytes - done),
                                  (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return hr_fail(err, HR_FAILURE, "%s: cannot be read: %s", path, hr_reason(errno));
        if (got == 0) return fail_short(file, path, offset + bytes, err);
        done += got;
    }
    return HR_OK;
}

int hr_file_open_direct(int file)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
}

void *hr_file_read_direct(int file, const char *path, int64_t offset, void *blocks, int64_t bytes,
                          hr_error *err)
{
    const int64_t before = offset % HR_FILE_BLOCK, first = offset - before;
    const int64_t all = (before + bytes + HR_FILE_BLOCK - 1) / HR_FILE_BLOCK * HR_FILE_BLOCK;
    hr_status status = HR_OK;
    for (int64_t done = 0; done < before + bytes && status == HR_OK;) {
        const ssize_t got = pread(file, (char *)blocks + done, (size_t)(all - done),
                                  (off_t)(first + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            status = hr_fail(err, HR_FAILURE, "%s: cannot be read: %s", path, hr_reason(errno));
        /* Only the end of the file is not a whole block. */
        else if (got == 0 || (got % HR_FILE_BLOCK && done + got < before + bytes))
            status = fail_short(file, path, offset + bytes, err);
        else done += got;
    }
    return status == HR_OK ? (char *)blocks + before : NULL;
}

static hr_status check_name(const char *name, hr_error *err)
{
    if (*name && !strchr(name, '/') && strlen(name) < HR_NAME_BYTES - 32) return HR_OK;
    return hr_fail(err, HR_USAGE, "\"%.80s\" is not a file name", name);
}

/* Refuses targets that a rename would destroy. Symbolic links are not followed: /dev/stdout is one,
 * and the rename would replace the link, not the file it points to. */
static hr_status check_replaceable(int directory, const char *path, hr_error *err)
{
    struct stat there;
    if (fstatat(directory, path, &there, AT_SYMLINK_NOFOLLOW) != 0 || S_ISREG(there.st_mode))
        return HR_OK;
    return hr_fail(err, HR_USAGE, "%s: is %s, a file cannot be written there", path,
                   S_ISDIR(there.st_mode)   ? "a directory"
                   : S_ISLNK(there.st_mode) ? "a symbolic link"
                                            : "a device or a pipe");
}

hr_status hr_file_check_place(const char *path, hr_error *err)
{
    char directory[PATH_MAX];
    const char *name;
    hr_status status = hr_path_split(path, directory, &name, err);
    if (status == HR_OK) status = check_name(name, err);
    if (status == HR_OK) status = check_replaceable(AT_FDCWD, path, err);
    return status == HR_OK ? hr_directory_check_writable(directory, err) : status;
}

hr_status hr_file_check_kind_at(const char *path, int64_t at, const char *is, const char *kind,
                                hr_error *err)
{
    char text[KIND_BYTES];
    int file;
    int64_t bytes;
    const int64_t length = (int64_t)strlen(is);
    HR_ASSERT(length <= KIND_BYTES);
    hr_status status = hr_file_check_place(path, err);
    if (status != HR_OK || !hr_file_exists(path)) return status;
    status = hr_file_open(path, &file, &bytes, err);
    if (status != HR_OK) return status;
    const bool fits = bytes >= at + length;
    if (fits) status = hr_file_read(file, path, at, text, length, err);
    hr_file_close(&file);
    if (status != HR_OK || bytes == 0) return status;
    if (fits && !memcmp(text, is, (size_t)length)) return HR_OK;
    return hr_fail(err, HR_USAGE, "%s: exists and is not a %s; give another path", path, kind);
}

hr_status hr_file_check_kind(const char *path, const char *begin, const char *kind, hr_error *err)
{
    return hr_file_check_kind_at(path, 0, begin, kind, err);
}

hr_status hr_file_check_open(const char *path, hr_error *err)
{
    char directory[PATH_MAX];
    const char *name;
    struct stat there;
    hr_status status = hr_path_split(path, directory, &name, err);
    if (status != HR_OK) return status;
    if (stat(path, &there) != 0) {
        status = check_name(name, err);
        return status == HR_OK ? hr_directory_check_writable(directory, err) : status;
    }
    if (S_ISDIR(there.st_mode))
        return hr_fail(err, HR_USAGE, "%s: is a directory, a file cannot be written there", path);
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0) return HR_OK;
    return hr_fail(err, HR_FAILURE, "%s: cannot be written: %s", path, hr_reason(errno));
}

hr_status hr_file_begin_path(hr_file_out *out, const char *path, hr_error *err)
{
    char directory[PATH_MAX];
    const char *name;
    const hr_status status = hr_path_split(path, directory, &name, err);
    if (status == HR_OK) return hr_file_begin(out, directory, name, err);
    *out = (hr_file_out){ .directory = -1, .file = -1 };
    return status;
}

hr_status hr_file_begin(hr_file_out *out, const char *directory, const char *name, hr_error *err)
{
    uint64_t token;
    *out = (hr_file_out){ .directory = -1, .file = -1 };
    hr_status status = check_name(name, err);
    if (status != HR_OK) return status;
    if (getrandom(&token, sizeof token, 0) != sizeof token)
        return hr_fail(err, HR_FAILURE, "cannot get random bytes for a temporary name: %s",
                       hr_reason(errno));
    strcpy(out->name, name);
    snprintf(out->temporary, sizeof out->temporary, "%s.partial-%016llx", name,
             (unsigned long long)token);

    const char *place = *directory ? directory : ".";
    out->directory = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->directory < 0)
        return hr_fail(err, hr_file_open_status(errno), "%s: cannot be opened as a directory: %s",
                       place, hr_reason(errno));
    status = check_replaceable(out->directory, name, err);
    if (status != HR_OK) {
        hr_file_close(&out->directory);
        return status;
    }
    out->file = openat(out->directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (out->file >= 0) return HR_OK;
    out->named = true;
    out->file = openat(out->directory, out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                       0666);
    if (out->file >= 0) return HR_OK;
    const int code = errno;
    hr_file_close(&out->directory);
    return hr_fail(err, HR_FAILURE, "%s: %s cannot be written there: %s", place, name,
                   hr_reason(code));
}

/* Returns where the file was to be, and for a full disk advice, with the free bytes of the file
 * system. */
static const char *advice(const hr_file_out *out, int code, char text[PATH_MAX])
{
    char self[64], place[PATH_MAX] = "its directory", count[HR_COUNT_BYTES];
    struct statvfs system;
    snprintf(self, sizeof self, "/proc/self/fd/%d", out->directory);
    const ssize_t length = readlink(self, place, sizeof place - 1);
    if (length > 0) place[length] = 0;
    if (code != ENOSPC || fstatvfs(out->directory, &system) != 0)
        snprintf(text, PATH_MAX, "; in %.200s", place);
    else
        snprintf(text, PATH_MAX,
                 "; %s bytes are free in %.200s: free some space, or give another place",
                 hr_count_print((int64_t)system.f_bavail * (int64_t)system.f_frsize, count), place);
    return text;
}

/* Removes the partial file first, so that the reported free bytes include the bytes that it used.
 * `what` is the sentence up to the reason. */
static hr_status remove_and_report(hr_file_out *out, const char *what, int code, hr_error *err)
{
    char text[PATH_MAX];
    hr_file_close(&out->file);
    if (out->named) unlinkat(out->directory, out->temporary, 0);
    out->named = false;
    const hr_status status = hr_fail(err, HR_FAILURE, "%s: %s: %s%s", out->name, what,
                                     hr_reason(code), advice(out, code, text));
    hr_file_abort(out);
    return status;
}

/* Reports a write, flush or rename that failed with `code`. */
static hr_status fail_and_close(hr_file_out *out, const char *what, int code, hr_error *err)
{
    char text[96], count[HR_COUNT_BYTES];
    snprintf(text, sizeof text, "cannot be %s after %s bytes, and was removed", what,
             hr_count_print(out->bytes, count));
    return remove_and_report(out, text, code, err);
}

hr_status hr_file_reserve(hr_file_out *out, int64_t bytes, hr_error *err)
{
    char text[96], count[HR_COUNT_BYTES];
    HR_ASSERT(out->file >= 0 && bytes >= 0);
    if (bytes == 0 || fallocate(out->file, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) == 0) return HR_OK;
    const int code = errno;
    if (code != ENOSPC && code != EDQUOT && code != EFBIG)
        return HR_OK; /* not supported by the file system */
    snprintf(text, sizeof text, "needs %s bytes", hr_count_print(bytes, count));
    return remove_and_report(out, text, code, err);
}

hr_status hr_file_rewrite(hr_file_out *out, int64_t offset, const void *memory, int64_t bytes,
                          hr_error *err)
{
    HR_ASSERT(out->file >= 0 && offset >= 0 && bytes >= 0 && offset <= out->bytes);
    int64_t done = 0;
    while (done < bytes) {
        const ssize_t put = pwrite(out->file, (const char *)memory + done, (size_t)(bytes - done),
                                   (off_t)(offset + done));
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return fail_and_close(out, "written", put < 0 ? errno : ENOSPC, err);
        done += put;
        if (offset + done > out->bytes) out->bytes = offset + done;
    }
    return HR_OK;
}

hr_status hr_file_append(hr_file_out *out, const void *memory, int64_t bytes, hr_error *err)
{
    return hr_file_rewrite(out, out->bytes, memory, bytes, err);
}

hr_status hr_file_cut(hr_file_out *out, int64_t bytes, hr_error *err)
{
    HR_ASSERT(out->file >= 0 && bytes >= 0 && bytes <= out->bytes);
    while (ftruncate(out->file, (off_t)bytes) != 0)
        if (errno != EINTR) return fail_and_close(out, "cut", errno, err);
    out->bytes = bytes;
    return HR_OK;
}

/* Linux cannot rename an unnamed file over an existing one, so the file gets its temporary name
 * first. */
static bool give_name(hr_file_out *out)
{
    char self[64];
    if (out->named) return true;
    snprintf(self, sizeof self, "/proc/self/fd/%d", out->file);
    out->named = linkat(AT_FDCWD, self, out->directory, out->temporary, AT_SYMLINK_FOLLOW) == 0;
    return out->named;
}

hr_status hr_file_commit(hr_file_out *out, hr_error *err)
{
    HR_ASSERT(out->file >= 0);
    const int flushed = flush(out->file);
    if (flushed) return fail_and_close(out, "flushed", flushed, err);
    if (!give_name(out)) return fail_and_close(out, "named", errno, err);
    const int file = out->file;
    out->file = -1;
    if (close(file) != 0 && errno != EINTR) return fail_and_close(out, "closed", errno, err);
    if (renameat(out->directory, out->temporary, out->directory, out->name) != 0)
        return fail_and_close(out, "renamed", errno, err);
    const int sync_error = flush(out->directory);
    hr_file_close(&out->directory);
    if (sync_error)
        return hr_fail(err, HR_FAILURE, "%s: was written, but its directory cannot be flushed: %s",
                       out->name, hr_reason(sync_error));
    return HR_OK;
}

void hr_file_abort(hr_file_out *out)
{
    if (out->directory < 0) return;
    hr_file_close(&out->file);
    if (out->named) unlinkat(out->directory, out->temporary, 0);
    hr_file_close(&out->directory);
}

bool hr_file_is_one(const char *path, const char *other)
{
    struct stat a, b;
    return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

hr_status hr_file_copy(const char *from, const char *directory, const char *name, void *buffer,
                       int64_t bytes, hr_error *err)
{
    char place[PATH_MAX];
    int source;
    int64_t length;
    hr_file_out out;
    hr_status status = hr_path_join(directory, name, place, sizeof place, err);
    if (status != HR_OK || hr_file_is_one(from, place)) return status;
    status = hr_file_open(from, &source, &length, err);
    if (status != HR_OK) return status;
    status = hr_file_begin(&out, directory, name, err);
    if (status == HR_OK) status = hr_file_reserve(&out, length, err);
    for (int64_t at = 0; at < length && status == HR_OK; at += bytes) {
        const int64_t part = hr_min(bytes, length - at);
        status = hr_file_read(source, from, at, buffer, part, err);
        if (status == HR_OK) status = hr_file_append(&out, buffer, part, err);
        else hr_file_abort(&out);
    }
    hr_file_close(&source);
    return status == HR_OK ? hr_file_commit(&out, err) : status;
}
