/* SPDX-License-Identifier: Apache-2.0 */
/* mem/limits.c - compares the limits of machine, cgroups and ulimit. */
#include "mem/limits.h"

#include <sys/resource.h>

#include "base/cgroup.h"
#include "base/checked.h"
#include "base/small_file.h"

enum { TEXT_BYTES = 8192 };

static hr_room least(hr_room a, hr_room b)
{
    return b.left_bytes < a.left_bytes ? b : a;
}

hr_room hr_room_memory(void)
{
    char text[TEXT_BYTES];
    hr_room room = { INT64_MAX, INT64_MAX, 0, "the memory of this machine" };
    hr_small_file_read("/proc/meminfo", text, sizeof text);
    const int64_t available = hr_small_file_number(text, "MemAvailable:");
    if (available >= 0) {
        room.left_bytes = available * 1024;
        room.whole_bytes = hr_small_file_number(text, "MemTotal:") * 1024;
    }
    const hr_cgroup group = hr_cgroup_read("");
    if (group.memory_left < 0) return room;
    return least(room, (hr_room){ group.memory_left, group.memory_left_of,
                                  hr_max(0, group.memory_own), "the memory limit of this cgroup" });
}

/* Page cache is not added: the file pages of this process may be charged to other processes, and
 * then freeing them returns nothing. */
int64_t hr_room_process_bytes(void)
{
    char text[TEXT_BYTES];
    int64_t bytes = INT64_MAX;
    const hr_room room = hr_room_memory();
    hr_small_file_read("/proc/self/status", text, sizeof text);
    const int64_t anonymous = hr_max(0, hr_small_file_number(text, "RssAnon:")) * 1024;
    const int64_t own = room.own_bytes ? room.own_bytes : anonymous;
    return hr_checked_add(room.left_bytes, own, &bytes) ? bytes : INT64_MAX;
}

int64_t hr_room_available(int64_t budget)
{
    return budget ? budget : hr_room_process_bytes();
}

static hr_room room_of_ulimit(int resource, int64_t used, const char *name)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) || limit.rlim_cur >= INT64_MAX)
        return (hr_room){ INT64_MAX, INT64_MAX, 0, "the address space" };
    const int64_t whole = (int64_t)limit.rlim_cur;
    return (hr_room){ hr_max(0, whole - used), whole, 0, name };
}

hr_room hr_room_address(void)
{
    char text[TEXT_BYTES];
    hr_small_file_read("/proc/self/status", text, sizeof text);
    const int64_t size = hr_small_file_number(text, "VmSize:") * 1024;
    const int64_t data = hr_small_file_number(text, "VmData:") * 1024;
    return least(room_of_ulimit(RLIMIT_AS, size, "the address space (ulimit -v)"),
                 room_of_ulimit(RLIMIT_DATA, data, "the data size (ulimit -d)"));
}
