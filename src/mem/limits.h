/* SPDX-License-Identifier: Apache-2.0 */
/* mem/limits.h - what the system grants this process, asked before anything is taken.
 *
 * A machine, a cgroup and ulimit each set a limit; the least of them holds, and has a name. */
#ifndef HR_MEM_LIMITS_H
#define HR_MEM_LIMITS_H

#include <stdint.h>

typedef struct {
    int64_t left_bytes;  /* that can still be taken; INT64_MAX: no limit */
    int64_t whole_bytes; /* of the limit itself */
    int64_t own_bytes;   /* of what is taken already, this process's, with what the kernel keeps for
                          * it; 0: not known, others are under the same limit */
    const char *name;    /* "the memory of this machine"; lives as long as the program */
} hr_room;

/* Memory that can be touched without anything being killed: the least of MemAvailable and what
 * every cgroup above the process has left, page cache that is not mapped being counted as free. */
hr_room hr_room_memory(void);

/* What the whole process may come to: what it holds already and what it can still take. What the
 * kernel keeps beside it has to fit in there too. */
int64_t hr_room_process_bytes(void);

/* Address space: the least that `ulimit -v` and `ulimit -d` leave. */
hr_room hr_room_address(void);

#endif
