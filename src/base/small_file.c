/* SPDX-License-Identifier: Apache-2.0 */
/* base/small_file.c - files in /proc and /sys report no size: they are read until their end. */
#include "base/small_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int64_t hr_small_file_read(const char *path, char *text, int64_t bytes)
{
    int64_t length = 0;
    *text = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    while (length < bytes - 1) {
        const ssize_t count = read(fd, text + length, (size_t)(bytes - 1 - length));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) length = -1;
        if (count <= 0) break;
        length += count;
    }
    close(fd);
    text[length < 0 ? 0 : length] = 0;
    return length;
}

int64_t hr_small_file_number(const char *text, const char *key)
{
    const size_t key_bytes = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, key, key_bytes)) continue;
        const char *number = line + key_bytes;
        while (*number == ' ' || *number == '\t') number++;
        return isdigit((unsigned char)*number) ? strtoll(number, 0, 10) : -1;
    }
    return -1;
}
