/* SPDX-License-Identifier: Apache-2.0 */
/* mem/proc.c - reads a /proc file line by line; the file may be longer than the buffer. */
#define _GNU_SOURCE
#include "mem/proc.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool hr_mappings_open(hr_mappings *mappings)
{
    mappings->first = mappings->last = 0;
    mappings->file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    return mappings->file >= 0;
}

void hr_mappings_close(hr_mappings *mappings)
{
    close(mappings->file);
    mappings->file = -1;
}

/* Returns the next line, null-terminated in place; null at the end. */
static char *next_line(hr_mappings *mappings)
{
    char *text = mappings->text;
    for (;;) {
        const int64_t held = mappings->last - mappings->first;
        char *line = text + mappings->first;
        char *end = memchr(line, '\n', (size_t)held);
        if (end) {
            *end = 0;
            mappings->first = end + 1 - text;
            return line;
        }
        memmove(text, line, (size_t)held);
        const ssize_t got = read(mappings->file, text + held, sizeof mappings->text - (size_t)held);
        mappings->first = 0;
        mappings->last = held + (got > 0 ? got : 0);
        if (got <= 0) return 0;
    }
}

/* "7f12-7f34 rw-p 00000000 fe:00 1234     /usr/lib/libc.so.6": five fields, then the name. */
bool hr_mappings_next(hr_mappings *mappings, hr_mapping *mapping)
{
    const char *line = next_line(mappings);
    if (!line) return false;
    char *end;
    mapping->first = (uintptr_t)strtoull(line, &end, 16);
    mapping->end = (uintptr_t)strtoull(end + 1, &end, 16);
    mapping->readable = end[1] == 'r';
    mapping->writable = end[2] == 'w';
    mapping->shared = end[4] == 's';
    const char *name = end + 1;
    for (int field = 0; field < 4; field++) {
        name += strcspn(name, " ");
        name += strspn(name, " ");
    }
    strncpy(mapping->name, name, sizeof mapping->name - 1);
    mapping->name[sizeof mapping->name - 1] = 0;
    return true;
}
