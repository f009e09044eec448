/* SPDX-License-Identifier: Apache-2.0 */
/* base/path.c - joins, splits and follows paths. */
#define _GNU_SOURCE /* strerrordesc_np: the text of strerror without its allocation */
#include "base/path.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"

const char *hr_reason(int code)
{
    const char *text = strerrordesc_np(code);
    return text ? text : "unknown error";
}

hr_status hr_path_join(const char *directory, const char *name, char *path, int64_t bytes,
                       hr_error *err)
{
    const size_t length = strlen(directory);
    const char *slash = length && directory[length - 1] != '/' ? "/" : "";
    const int64_t needed = (int64_t)(length + strlen(slash) + strlen(name)) + 1;
    if (needed > bytes)
        return hr_fail(err, HR_USAGE, "the path %.80s... needs %lld bytes, the limit is %lld",
                       directory, (long long)needed, (long long)bytes);
    snprintf(path, (size_t)bytes, "%s%s%s", directory, slash, name);
    return HR_OK;
}

hr_status hr_path_split(const char *path, char directory[PATH_MAX], const char **name,
                        hr_error *err)
{
    const char *slash = strrchr(path, '/');
    const int64_t bytes = slash ? slash - path + (slash == path) : 1;
    if (bytes >= PATH_MAX) return hr_fail(err, HR_USAGE, "%.80s...: the path is too long", path);
    snprintf(directory, PATH_MAX, "%.*s", (int)bytes, slash ? path : ".");
    *name = slash ? slash + 1 : path;
    return HR_OK;
}

void hr_path_strip_slashes(char *path, int64_t bytes)
{
    while (bytes > 1 && path[bytes - 1] == '/') bytes--;
    path[bytes] = 0;
}

/* Not inlined into callers with paths of their own: paths are long, and the stack is planned. */
hr_status hr_path_check_links(const char *path, hr_error *err)
{
    char part[PATH_MAX], target[PATH_MAX];
    struct stat there;
    hr_status status = hr_path_join(path, "", part, sizeof part, err);
    if (status != HR_OK) return status;
    hr_path_strip_slashes(part, (int64_t)strlen(part));
    while (stat(part, &there) != 0) {
        const ssize_t length = readlink(part, target, sizeof target - 1);
        if (length >= 0)
            return hr_fail(err, HR_USAGE,
                           "%.300s: is a symbolic link to %.*s, which does not exist", part,
                           (int)hr_min(length, 200), target);
        const char *slash = strrchr(part, '/');
        if (!slash) break;
        hr_path_strip_slashes(part, slash - part + 1);
    }
    return HR_OK;
}
