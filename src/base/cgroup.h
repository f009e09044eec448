/* SPDX-License-Identifier: Apache-2.0 */
/* base/cgroup.h - what the control group of this process allows it, in version 1 and 2.
 *
 * A group is bounded by its own files and by those of every group above it: the least counts. */
#ifndef HR_BASE_CGROUP_H
#define HR_BASE_CGROUP_H

#include <stdint.h>

typedef struct {
    int64_t cpu_thousandths; /* of a core, -1: no quota */
    int64_t memory_max;      /* bytes, -1: no bound */
    int64_t memory_left;     /* bytes that can still be charged, -1: no bound. Page cache that is
                              * not mapped counts as free: the kernel takes it back at need */
    int64_t memory_left_of;  /* the bound of the group that has the least left */
    int64_t memory_own;      /* of what that group is charged for, what this process is, tables and
                              * all, where it is the only one in there; -1: it is not */
} hr_cgroup;

/* Reads <root>/proc/self/cgroup and the groups below <root>/sys/fs/cgroup. What cannot be read
 * bounds nothing.
 *
 *   root  "" for this machine; a test gives a folder
 *
 * Threads  any; takes no memory from the system. */
hr_cgroup hr_cgroup_read(const char *root);

#endif
