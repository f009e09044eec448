/* SPDX-License-Identifier: Apache-2.0 */
/* base/cgroup.h - the limits that cgroups (version 1 and 2) set for this process.
 *
 * The limits of a group and of every group above it apply: the smallest one counts. */
#ifndef HR_BASE_CGROUP_H
#define HR_BASE_CGROUP_H

#include <stdint.h>

typedef struct {
    int64_t cpu_thousandths; /* CPU quota in thousandths of a core; -1: no quota */
    int64_t memory_max;      /* bytes; -1: no limit */
    int64_t memory_left;     /* bytes that can still be charged; -1: no limit. Unmapped page cache
                              * counts as free, because the kernel reclaims it under pressure */
    int64_t memory_left_of;  /* limit of the group with the least bytes left */
    int64_t memory_own;      /* bytes that this process alone is charged for in that group, page
                              * tables included; -1: the group contains other processes */
} hr_cgroup;

/* Reads <root>/proc/self/cgroup and the groups below <root>/sys/fs/cgroup. A file that cannot be
 * read sets no limit.
 *
 *   root  "" for this machine; tests pass a directory
 *
 * Threads  any; allocates nothing. */
hr_cgroup hr_cgroup_read(const char *root);

#endif
