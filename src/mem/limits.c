/* SPDX-License-Identifier: Apache-2.0 */
/* mem/limits.c - walks from the cgroup of this process to the root, in version 1 or 2 of cgroups.
 *
 * A container often sees its own group as the root while /proc names the path outside: files that
 * are missing on the way are passed over. */
#define _GNU_SOURCE
#include "mem/limits.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/checked.h"
#include "mem/proc.h"

enum { TEXT_BYTES = 8192 };

/* A group and, step by step, those above it. */
typedef struct {
    bool unified; /* version 2 */
    size_t root_bytes;
    char path[PATH_MAX];
} cgroup;

/* Lines of /proc/self/cgroup are "4:memory:/path" in version 1 and "0::/path" in version 2. A
 * controller that version 1 has is not in version 2. */
static bool cgroup_find(const char *controller, cgroup *group)
{
    char text[TEXT_BYTES], key[32];
    if (hr_proc_text("/proc/self/cgroup", text, sizeof text) < 0) return false;
    snprintf(key, sizeof key, ":%s:", controller);
    const char *found = strstr(text, key);
    group->unified = !found;
    if (!found) {
        snprintf(key, sizeof key, "0::");
        found = strstr(text, key);
    }
    if (!found) return false;
    found += strlen(key);
    const int root_bytes = snprintf(group->path, sizeof group->path, "/sys/fs/cgroup%s%s",
                                    group->unified ? "" : "/", group->unified ? "" : controller);
    const size_t bytes = strcspn(found, "\n");
    group->root_bytes = (size_t)root_bytes;
    if (bytes >= sizeof group->path - (size_t)root_bytes) return false;
    memcpy(group->path + root_bytes, found, bytes);
    group->path[(size_t)root_bytes + bytes] = 0;
    return true;
}

static bool cgroup_up(cgroup *group)
{
    char *slash = strrchr(group->path, '/');
    if ((size_t)(slash - group->path) < group->root_bytes) return false;
    *slash = 0;
    return true;
}

static void cgroup_text(const cgroup *group, const char *file, char text[TEXT_BYTES])
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", group->path, file);
    hr_proc_text(path, text, TEXT_BYTES);
}

static int64_t cgroup_number(const cgroup *group, const char *file)
{
    char text[TEXT_BYTES];
    cgroup_text(group, file, text);
    return hr_proc_number(text, "");
}

static int64_t cgroup_reclaimable(const cgroup *group)
{
    char text[TEXT_BYTES];
    cgroup_text(group, "memory.stat", text);
    const bool v2 = group->unified;
    const int64_t cached = hr_max(0, hr_proc_number(text, v2 ? "inactive_file " : "total_inactive_file ")) +
                           hr_max(0, hr_proc_number(text, v2 ? "active_file " : "total_active_file "));
    const int64_t mapped = hr_proc_number(text, v2 ? "file_mapped " : "total_mapped_file ");
    return hr_max(0, cached - hr_max(0, mapped));
}

static hr_room least(hr_room a, hr_room b)
{
    return b.left_bytes < a.left_bytes ? b : a;
}

hr_room hr_room_memory(void)
{
    char text[TEXT_BYTES];
    hr_room room = { INT64_MAX, INT64_MAX, "the memory of this machine" };
    hr_proc_text("/proc/meminfo", text, sizeof text);
    const int64_t available = hr_proc_number(text, "MemAvailable:");
    if (available >= 0) {
        room.left_bytes = available * 1024;
        room.whole_bytes = hr_proc_number(text, "MemTotal:") * 1024;
    }
    cgroup group;
    if (!cgroup_find("memory", &group)) return room;
    do {
        const int64_t limit =
            cgroup_number(&group, group.unified ? "memory.max" : "memory.limit_in_bytes");
        const int64_t used =
            cgroup_number(&group, group.unified ? "memory.current" : "memory.usage_in_bytes");
        if (limit < 0 || used < 0) continue;
        const int64_t left = hr_max(0, limit - used + cgroup_reclaimable(&group));
        room = least(room, (hr_room){ left, limit, "the memory limit of this cgroup" });
    } while (cgroup_up(&group));
    return room;
}

static hr_room room_of_ulimit(int resource, int64_t used, const char *name)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) || limit.rlim_cur >= INT64_MAX)
        return (hr_room){ INT64_MAX, INT64_MAX, "the address space" };
    const int64_t whole = (int64_t)limit.rlim_cur;
    return (hr_room){ hr_max(0, whole - used), whole, name };
}

hr_room hr_room_address(void)
{
    char text[TEXT_BYTES];
    hr_proc_text("/proc/self/status", text, sizeof text);
    const int64_t size = hr_proc_number(text, "VmSize:") * 1024;
    const int64_t data = hr_proc_number(text, "VmData:") * 1024;
    return least(room_of_ulimit(RLIMIT_AS, size, "the address space (ulimit -v)"),
                 room_of_ulimit(RLIMIT_DATA, data, "the data size (ulimit -d)"));
}

/* "200000 100000": two cores, in microseconds of every period; "max 100000": no quota. */
static int64_t cgroup_cores(const cgroup *group)
{
    char text[TEXT_BYTES];
    if (!group->unified) {
        const int64_t quota = cgroup_number(group, "cpu.cfs_quota_us");
        const int64_t period = cgroup_number(group, "cpu.cfs_period_us");
        return quota > 0 && period > 0 ? quota / period : INT32_MAX;
    }
    cgroup_text(group, "cpu.max", text);
    char *end;
    const int64_t quota = strtoll(text, &end, 10), period = strtoll(end, 0, 10);
    return quota > 0 && period > 0 ? quota / period : INT32_MAX;
}

int32_t hr_room_threads(void)
{
    cpu_set_t set;
    int64_t cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    cgroup group;
    if (cgroup_find("cpu", &group)) {
        do {
            cores = hr_min(cores, cgroup_cores(&group));
        } while (cgroup_up(&group));
    }
    return (int32_t)hr_max(1, cores);
}
