/* SPDX-License-Identifier: Apache-2.0 */
/* mem/limits.h - the memory limits of this process, queried before memory is allocated.
 *
 * The machine, a cgroup and ulimit each set a limit; the smallest one applies, and has a name. */
#ifndef HR_MEM_LIMITS_H
#define HR_MEM_LIMITS_H

#include <stdint.h>

typedef struct {
    int64_t left_bytes;  /* bytes that can still be allocated; INT64_MAX: no limit */
    int64_t whole_bytes; /* the limit itself */
    int64_t own_bytes;   /* bytes that this process has already allocated, including kernel memory
                          * for it; 0: unknown, because other processes share the limit */
    const char *name;    /* "the memory of this machine"; a constant */
} hr_room;

/* Memory that can be touched without an out-of-memory kill: the smaller of MemAvailable and the
 * bytes left in every cgroup above the process. Unmapped page cache counts as free. */
hr_room hr_room_memory(void);

/* Maximum size of the whole process: what it already uses plus what it can still allocate. Kernel
 * memory for the process must fit into it too. */
int64_t hr_room_process_bytes(void);

/* Bytes that a process may use: its budget; 0: what the machine and its cgroups leave. */
int64_t hr_room_available(int64_t budget);

/* Address space: the smaller of what `ulimit -v` and `ulimit -d` leave. */
hr_room hr_room_address(void);

#endif
