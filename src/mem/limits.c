/* SPDX-License-Identifier: Apache-2.0 */
/* mem/limits.c - walks from the cgroup of this process to the root, in version 1 or 2 of cgroups.
 *
 * A container often sees its own group as the root while /proc names the path outside: files that
 * are missing on the way are passed over. */
#define _GNU_SOURCE
#include "mem/limits.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/checked.h"
#include "base/small_file.h"
#include "mem/proc.h"

enum { TEXT_BYTES = 8192 };

/* A group and, step by step, those above it. */
typedef struct {
    bool unified; /* version 2 */
    size_t root_bytes;
    char path[PATH_MAX];
} cgroup;

/* Lines of /proc/self/cgroup are "4:memory:/path" in version 1 and "0::/path" in version 2. Where
 * version 1 has the controller, version 2 has it not. */
static bool cgroup_find(cgroup *group)
{
    char text[TEXT_BYTES];
    if (hr_small_file_read("/proc/self/cgroup", text, sizeof text) < 0) return false;
    const char *found = strstr(text, ":memory:");
    group->unified = !found;
    if (!found) found = strstr(text, "0::");
    if (!found) return false;
    const char *root = group->unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const char *below = strchrnul(found, '/');
    group->root_bytes = strlen(root);
    const int bytes = snprintf(group->path, sizeof group->path, "%s%.*s", root,
                               (int)strcspn(below, "\n"), below);
    return bytes < (int)sizeof group->path;
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
    hr_small_file_read(path, text, TEXT_BYTES);
}

static int64_t cgroup_number(const cgroup *group, const char *file)
{
    char text[TEXT_BYTES];
    cgroup_text(group, file, text);
    return hr_proc_number(text, "");
}

static int64_t cgroup_reclaimable(const cgroup *group)
{
    static const char *const keys[2][3] = { { "total_inactive_file ", "total_active_file ",
                                              "total_mapped_file " },
                                            { "inactive_file ", "active_file ", "file_mapped " } };
    char text[TEXT_BYTES];
    int64_t bytes[3];
    cgroup_text(group, "memory.stat", text);
    for (int i = 0; i < 3; i++) bytes[i] = hr_max(0, hr_proc_number(text, keys[group->unified][i]));
    return hr_max(0, bytes[0] + bytes[1] - bytes[2]);
}

static hr_room least(hr_room a, hr_room b)
{
    return b.left_bytes < a.left_bytes ? b : a;
}

hr_room hr_room_memory(void)
{
    char text[TEXT_BYTES];
    hr_room room = { INT64_MAX, INT64_MAX, "the memory of this machine" };
    hr_small_file_read("/proc/meminfo", text, sizeof text);
    const int64_t available = hr_proc_number(text, "MemAvailable:");
    if (available >= 0) {
        room.left_bytes = available * 1024;
        room.whole_bytes = hr_proc_number(text, "MemTotal:") * 1024;
    }
    cgroup group;
    if (!cgroup_find(&group)) return room;
    do {
        const int64_t limit = cgroup_number(&group,
                                            group.unified ? "memory.max" : "memory.limit_in_bytes");
        const int64_t used = cgroup_number(&group, group.unified ? "memory.current"
                                                                 : "memory.usage_in_bytes");
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
    hr_small_file_read("/proc/self/status", text, sizeof text);
    const int64_t size = hr_proc_number(text, "VmSize:") * 1024;
    const int64_t data = hr_proc_number(text, "VmData:") * 1024;
    return least(room_of_ulimit(RLIMIT_AS, size, "the address space (ulimit -v)"),
                 room_of_ulimit(RLIMIT_DATA, data, "the data size (ulimit -d)"));
}
