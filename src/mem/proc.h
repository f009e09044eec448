/* SPDX-License-Identifier: Apache-2.0 */
/* mem/proc.h - reads what the system writes about this process. Nothing here allocates, so that
 * measuring the process does not change it. */
#ifndef HR_MEM_PROC_H
#define HR_MEM_PROC_H

#include <stdbool.h>
#include <stdint.h>

/* One line of /proc/self/maps. */
typedef struct {
    uintptr_t first, end;
    bool readable, writable, shared;
    char name[16]; /* as much of the path or of "[heap]" as goes in; may be empty */
} hr_mapping;

/* A walk over the mappings of this process. Fields are the walk's own. */
typedef struct {
    int file;
    int64_t first, last; /* the part of `text` that is not yet walked */
    char text[8192];     /* one line at least: a path is at most 4,096 bytes */
} hr_mappings;

bool hr_mappings_open(hr_mappings *mappings);
bool hr_mappings_next(hr_mappings *mappings, hr_mapping *mapping);
void hr_mappings_close(hr_mappings *mappings);

#endif
