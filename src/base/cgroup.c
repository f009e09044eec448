/* SPDX-License-Identifier: Apache-2.0 */
/* base/cgroup.c - walks from the process's groups up to the roots of their hierarchies.
 *
 * In a container the path that /proc names often starts above what is mounted; the parts of the
 * path that do not exist are passed over, and the mount itself is asked last. */
#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/small_file.h"

enum { PATH_BYTES = 1024, LIST_BYTES = 8192, VALUE_BYTES = 64 };

static void tighten(int64_t *bound, int64_t value)
{
    if (*bound < 0 || value < *bound) *bound = value;
}

/* First word of a group's file; false when there is no such file or its path is too long. */
static bool read_value(const char *group, const char *file, char text[VALUE_BYTES])
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/%s", group, file) >= (int)sizeof path) return false;
    return hr_small_file_read(path, text, VALUE_BYTES) > 0;
}

static bool read_number(const char *group, const char *file, int64_t *value)
{
    char text[VALUE_BYTES];
    if (!read_value(group, file, text)) return false;
    text[strcspn(text, " \n")] = 0;
    return hr_integer_parse(text, value);
}

/* Thousandths of a core, rounded up: 1 when the quota is smaller. */
static void take_quota(hr_cgroup *bounds, int64_t quota, int64_t period)
{
    if (quota <= 0 || period <= 0 || quota > INT64_MAX / 2000) return;
    tighten(&bounds->cpu_thousandths, (quota * 1000 + period - 1) / period);
}

static void read_group_v1(const char *group, hr_cgroup *bounds)
{
    const int64_t unlimited = INT64_C(1) << 60; /* version 1 writes a number near 2^63 for "none" */
    int64_t quota, period, bytes;
    if (read_number(group, "cpu.cfs_quota_us", &quota) &&
        read_number(group, "cpu.cfs_period_us", &period))
        take_quota(bounds, quota, period);
    if (read_number(group, "memory.limit_in_bytes", &bytes) && bytes < unlimited)
        tighten(&bounds->memory_max, bytes);
}

static void read_group_v2(const char *group, hr_cgroup *bounds)
{
    char text[VALUE_BYTES];
    long long quota, period;
    int64_t bytes;
    if (read_value(group, "cpu.max", text) && sscanf(text, "%lld %lld", &quota, &period) == 2)
        take_quota(bounds, quota, period);
    if (read_number(group, "memory.max", &bytes)) tighten(&bounds->memory_max, bytes);
}

/* The group at <mount><path> and every one above it, the mount included. */
static void walk_up(const char *mount, const char *path, bool v2, hr_cgroup *bounds)
{
    char group[PATH_BYTES];
    const int length = snprintf(group, sizeof group, "%s%s", mount, path);
    const size_t mount_length = strlen(mount);
    if (length >= (int)sizeof group) return;
    for (int i = length; i >= (int)mount_length; i--) {
        if (i < length && group[i] != '/') continue;
        group[i] = 0;
        if (v2) read_group_v2(group, bounds);
        else read_group_v1(group, bounds);
    }
}

/* One line of /proc/self/cgroup, "4:cpu,cpuacct:/path"; version 2 has no controllers. */
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
        if (length < (int)sizeof mount) walk_up(mount, path, v2, bounds);
    }
}

hr_cgroup hr_cgroup_read(const char *root)
{
    hr_cgroup bounds = { .cpu_thousandths = -1, .memory_max = -1 };
    char path[PATH_BYTES], list[LIST_BYTES];
    if (snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= (int)sizeof path) return bounds;
    if (hr_small_file_read(path, list, sizeof list) < 0) return bounds;
    char *rest = list;
    for (char *line = strtok_r(list, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        read_line(root, line, &bounds);
    return bounds;
}
