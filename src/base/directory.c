/* SPDX-License-Identifier: Apache-2.0 */
/* base/directory.c - lists directories with getdents64, because opendir allocates. */
#define _GNU_SOURCE
#include "base/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

enum { LIST_BYTES = 4096 };

/* struct dirent64 has the same layout as the kernel's directory entry. */
static hr_status list_open(int directory, const char *path, hr_directory_fn *fn, void *context,
                           hr_error *err)
{
    _Alignas(struct dirent64) char entries[LIST_BYTES];
    for (;;) {
        const long bytes = syscall(SYS_getdents64, directory, entries, sizeof entries);
        if (bytes < 0)
            return hr_fail(err, HR_FAILURE, "%s: the directory cannot be listed: %s", path,
                           hr_reason(errno));
        if (bytes == 0) return HR_OK;
        for (long at = 0; at < bytes;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(entries + at);
            at += entry->d_reclen;
            if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
            if (!fn(context, entry->d_name)) return HR_OK;
        }
    }
}

hr_status hr_directory_list(const char *path, hr_directory_fn *fn, void *context, hr_error *err)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 && errno == ENOENT) return HR_OK;
    if (directory < 0)
        return hr_fail(err, errno == ENOTDIR ? HR_USAGE : HR_FAILURE,
                       "%s: cannot be opened as a directory: %s", path, hr_reason(errno));
    const hr_status status = list_open(directory, path, fn, context, err);
    hr_file_close(&directory);
    return status;
}

typedef struct {
    char name[NAME_MAX + 1];
    bool found;
} first_name;

static bool take_first(void *context, const char *name)
{
    first_name *first = context;
    snprintf(first->name, sizeof first->name, "%s", name);
    first->found = true;
    return false;
}

static hr_status refuse(const char *path, const char *name, hr_error *err)
{
    return hr_fail(err, HR_FAILURE, "%s: %.80s cannot be removed: %s", path, name,
                   hr_reason(errno));
}

/* Lists the directory again after every removal, so that no entry is missed when the order
 * changes. */
hr_status hr_directory_remove(const char *path, const char *keystone, hr_error *err)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (directory < 0 && errno == ENOENT) return HR_OK;
    if (directory < 0) return refuse(path, "the existing file", err);
    hr_status status = HR_OK;
    if (keystone && unlinkat(directory, keystone, 0) != 0 && errno != ENOENT)
        status = refuse(path, keystone, err);
    for (first_name first = { .found = true }; status == HR_OK && first.found;) {
        first.found = false;
        if (lseek(directory, 0, SEEK_SET) < 0) status = refuse(path, "a file", err);
        if (status == HR_OK) status = list_open(directory, path, take_first, &first, err);
        if (status == HR_OK && first.found && unlinkat(directory, first.name, 0) != 0 &&
            errno != ENOENT)
            status = refuse(path, first.name, err);
    }
    hr_file_close(&directory);
    if (status == HR_OK && rmdir(path) != 0 && errno != ENOENT)
        status = refuse(path, "the directory", err);
    return status;
}

hr_status hr_directory_flush(const char *path, hr_error *err)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool flushed = directory >= 0 && (fsync(directory) == 0 || errno == EINVAL);
    const int code = errno;
    hr_file_close(&directory);
    return flushed ? HR_OK
                   : hr_fail(err, HR_FAILURE, "%s: the directory cannot be flushed: %s", path,
                             hr_reason(code));
}
