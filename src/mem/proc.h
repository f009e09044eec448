/* SPDX-License-Identifier: Apache-2.0 */
/* mem/proc.h - reads /proc/self/maps. Allocates nothing, so that measuring the process does not
 * change it. */
#ifndef HR_MEM_PROC_H
#define HR_MEM_PROC_H

#include <stdbool.h>
#include <stdint.h>

/* One line of /proc/self/maps. */
typedef struct {
    uintptr_t first, end;
    bool readable, writable, shared;
    char name[16]; /* the path or "[heap]", truncated; may be empty */
} hr_mapping;

/* An iterator over the mappings of this process. Private fields. */
typedef struct {
    int file;
    int64_t first, last; /* unread part of `text` */
    char text[8192];     /* holds at least one line: a path has at most 4,096 bytes */
} hr_mappings;

bool hr_mappings_open(hr_mappings *mappings);
bool hr_mappings_next(hr_mappings *mappings, hr_mapping *mapping);
void hr_mappings_close(hr_mappings *mappings);

#endif
