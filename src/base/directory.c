/* SPDX-License-Identifier: Apache-2.0 */
/* base/directory.c - lists directories with getdents64, because opendir allocates; creates and
 * checks them. */
#define _GNU_SOURCE
#include "base/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/path.h"

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
    close(directory);
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
    close(directory);
    if (status == HR_OK && rmdir(path) != 0 && errno != ENOENT)
        status = refuse(path, "the directory", err);
    return status;
}

/* Some file systems do not support fsync on directories and return EINVAL; this is not an error. */
static int flush(int directory)
{
    return fsync(directory) == 0 || errno == EINVAL ? 0 : errno;
}

hr_status hr_directory_flush(const char *path, hr_error *err)
{
    const int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int code = directory >= 0 ? flush(directory) : errno;
    if (directory >= 0) close(directory);
    if (!code) return HR_OK;
    return hr_fail(err, HR_FAILURE, "%s: the directory cannot be flushed: %s", path,
                   hr_reason(code));
}

hr_status hr_directory_flush_name(const char *path, hr_error *err)
{
    char directory[PATH_MAX];
    const char *name;
    const hr_status status = hr_path_split(path, directory, &name, err);
    if (status != HR_OK) return status;
    const int around = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int code = around >= 0 ? flush(around) : errno == EACCES ? 0 : errno;
    if (around >= 0) close(around);
    if (!code) return HR_OK;
    return hr_fail(err, HR_FAILURE, "%s: its directory cannot be flushed: %s", path,
                   hr_reason(code));
}

/* Creates one directory. Its name must be flushed too: losing it in a crash loses everything below
 * it. */
static hr_status make_directory(const char *path, hr_error *err)
{
    struct stat there;
    if (mkdir(path, 0777) == 0) return hr_directory_flush_name(path, err);
    const int code = errno;
    const bool found = stat(path, &there) == 0;
    if (!found && code == EEXIST)
        return hr_fail(err, HR_USAGE, "%s: is a link to nothing, a directory is needed", path);
    if (!found)
        return hr_fail(err, HR_FAILURE, "%s: the directory cannot be created: %s", path,
                       hr_reason(code));
    if (!S_ISDIR(there.st_mode))
        return hr_fail(err, HR_USAGE, "%s: is a file, a directory is needed", path);
    return HR_OK;
}

hr_status hr_directory_make(const char *path, hr_error *err)
{
    char part[PATH_MAX];
    hr_status status = hr_path_join(path, "", part, sizeof part, err);
    for (char *slash = strchr(part + 1, '/'); slash && status == HR_OK;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        status = make_directory(part, err);
        *slash = '/';
    }
    return status;
}

hr_status hr_directory_find(const char *path, hr_error *err)
{
    struct stat there;
    const int code = stat(path, &there) == 0 ? 0 : errno;
    if (code == ENOENT) return hr_fail(err, HR_USAGE, "%s: no such directory", path);
    if (code)
        return hr_fail(err, HR_USAGE, "%s: cannot be opened as a directory: %s", path,
                       hr_reason(code));
    if (S_ISDIR(there.st_mode)) return HR_OK;
    return hr_fail(err, HR_USAGE, "%s: is a %s, a directory is needed", path,
                   S_ISREG(there.st_mode) ? "file" : "device or pipe");
}

hr_status hr_directory_check_writable(const char *directory, hr_error *err)
{
    if (access(directory, F_OK) != 0 && errno == ENOENT)
        return hr_fail(err, HR_USAGE, "%s: no such directory; create it, or give another",
                       directory);
    const hr_status status = hr_directory_find(directory, err);
    if (status != HR_OK) return status;
    if (faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0) return HR_OK;
    return hr_fail(err, HR_FAILURE,
                   "%s: directory is not writable: %s; change its permissions, or give another",
                   directory, hr_reason(errno));
}

/* Only the deepest existing directory of the path is checked: the others would be created in it. */
hr_status hr_directory_check(const char *path, hr_error *err)
{
    char part[PATH_MAX];
    struct stat there;
    hr_status status = hr_path_join(path, "", part, sizeof part, err);
    if (status == HR_OK && stat(part, &there) != 0 && errno == ENOENT)
        status = hr_path_check_links(path, err);
    if (status != HR_OK) return status;
    hr_path_strip_slashes(part, (int64_t)strlen(part));
    while (stat(part, &there) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        const char *slash = strrchr(part, '/');
        if (!slash) return hr_directory_check_writable(".", err);
        hr_path_strip_slashes(part, slash - part + 1);
    }
    return hr_directory_check_writable(part, err);
}
