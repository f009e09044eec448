/* SPDX-License-Identifier: Apache-2.0 */
/* base/cgroup.c - reads the limits from the cgroups of the process up to the root of each
 * hierarchy.
 *
 * In a container the path in /proc often starts above the mount point. Parts of the path that do
 * not exist are skipped, and the mount point itself is read last. */
#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/small_file.h"

enum { PATH_BYTES = 1024, LIST_BYTES = 8192, VALUE_BYTES = 64 };

/* File names and keys of cgroup version 1 and version 2. */
static const char *const memory_max_files[2] = { "memory.limit_in_bytes", "memory.max" };
static const char *const memory_used_files[2] = { "memory.usage_in_bytes", "memory.current" };
static const char *const cache_keys[2][3] = {
    { "total_inactive_file ", "total_active_file ", "total_mapped_file " },
    { "inactive_file ", "active_file ", "file_mapped " }
};
static const char *const shared_keys[2] = { "total_shmem ", "shmem " };

static void lower_limit(int64_t *bound, int64_t value)
{
    if (*bound < 0 || value < *bound) *bound = value;
}

/* Reads a file of a group. Returns false when the file is missing or empty, or its path is too
 * long. */
static bool read_file(const char *group, const char *file, char *text, int64_t bytes)
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/%s", group, file) >= (int)sizeof path) return false;
    return hr_small_file_read(path, text, bytes) > 0;
}

static bool read_number(const char *group, const char *file, int64_t *value)
{
    char text[VALUE_BYTES];
    if (!read_file(group, file, text, sizeof text)) return false;
    text[strcspn(text, " \n")] = 0;
    return hr_integer_parse(text, value);
}

/* Converts the quota to thousandths of a core, rounded up, so that a tiny quota becomes 1 and not
 * 0. */
static void apply_quota(hr_cgroup *bounds, int64_t quota, int64_t period)
{
    if (quota <= 0 || period <= 0 || quota > INT64_MAX / 2000) return;
    lower_limit(&bounds->cpu_thousandths, (quota * 1000 + period - 1) / period);
}

/* Returns true when the group contains no other process and no child group. */
static bool is_alone(const char *group)
{
    struct stat there;
    char text[VALUE_BYTES], own[VALUE_BYTES];
    snprintf(own, sizeof own, "%d\n", (int)getpid());
    return stat(group, &there) == 0 && there.st_nlink <= 2 &&
           read_file(group, "cgroup.procs", text, sizeof text) && !strcmp(text, own);
}

/* Reads the unmapped page cache and the shared memory (tmpfs) of a group. */
static void read_stat(const char *group, bool v2, int64_t *cache, int64_t *shared)
{
    char text[LIST_BYTES];
    int64_t bytes[3];
    *cache = *shared = 0;
    if (!read_file(group, "memory.stat", text, sizeof text)) return;
    for (int i = 0; i < 3; i++) bytes[i] = hr_max(0, hr_small_file_number(text, cache_keys[v2][i]));
    *cache = hr_max(0, bytes[0] + bytes[1] - bytes[2]);
    *shared = hr_max(0, hr_small_file_number(text, shared_keys[v2]));
}

static void apply_memory(const char *group, bool v2, hr_cgroup *bounds)
{
    const int64_t unlimited = INT64_C(1) << 60; /* version 1 writes a number near 2^63 for "none" */
    int64_t bytes, used, cache, shared;
    if (!read_number(group, memory_max_files[v2], &bytes) || bytes < 0 || bytes >= unlimited)
        return;
    lower_limit(&bounds->memory_max, bytes);
    if (!read_number(group, memory_used_files[v2], &used) || used < 0) return;
    read_stat(group, v2, &cache, &shared);
    const int64_t left = hr_max(0, bytes - used + cache);
    if (bounds->memory_left >= 0 && left >= bounds->memory_left) return;
    bounds->memory_left = left;
    bounds->memory_left_of = bytes;
    bounds->memory_own = is_alone(group) ? hr_max(0, used - cache - shared) : -1;
}

static void read_group(const char *group, bool v2, hr_cgroup *bounds)
{
    char text[VALUE_BYTES];
    int64_t quota, period;
    long long of_v2[2];
    if (v2 && read_file(group, "cpu.max", text, sizeof text) &&
        sscanf(text, "%lld %lld", &of_v2[0], &of_v2[1]) == 2)
        apply_quota(bounds, of_v2[0], of_v2[1]);
    if (!v2 && read_number(group, "cpu.cfs_quota_us", &quota) &&
        read_number(group, "cpu.cfs_period_us", &period))
        apply_quota(bounds, quota, period);
    apply_memory(group, v2, bounds);
}

/* Reads the group at <mount><path> and every group above it, including the mount point. */
static void read_group_and_parents(const char *mount, const char *path, bool v2, hr_cgroup *bounds)
{
    char group[PATH_BYTES];
    const int length = snprintf(group, sizeof group, "%s%s", mount, path);
    const size_t mount_length = strlen(mount);
    if (length >= (int)sizeof group) return;
    for (int i = length; i >= (int)mount_length; i--) {
        if (i < length && group[i] != '/') continue;
        group[i] = 0;
        read_group(group, v2, bounds);
    }
}

/* Parses one line of /proc/self/cgroup, such as "4:cpu,cpuacct:/path". Version 2 lists no
 * controllers. */
static void read_line(const char *root, char *line, hr_cgroup *bounds)
{
    char *controllers = strchr(line, ':');
    if (!controllers) return;
    char *path = strchr(++controllers, ':');
    if (!path) return;
    *path++ = 0;
    const bool v2 = !*controllers;
    char mount[PATH_BYTES];
    const char *names[] = { controllers, v2 ? "unified" : "cpu" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int length = snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s%s", root,
                                    *names[i] ? "/" : "", names[i]);
        if (length < (int)sizeof mount) read_group_and_parents(mount, path, v2, bounds);
    }
}

hr_cgroup hr_cgroup_read(const char *root)
{
    hr_cgroup bounds = { -1, -1, -1, -1, -1 };
    char path[PATH_BYTES], list[LIST_BYTES];
    if (snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= (int)sizeof path) return bounds;
    if (hr_small_file_read(path, list, sizeof list) < 0) return bounds;
    char *rest = list;
    for (char *line = strtok_r(list, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        read_line(root, line, &bounds);
    return bounds;
}
