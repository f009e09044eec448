/* SPDX-License-Identifier: Apache-2.0 */
/* base/small_file.h - small text files of the kernel, in /proc and /sys. */
#ifndef HR_BASE_SMALL_FILE_H
#define HR_BASE_SMALL_FILE_H

#include <stdint.h>

/* Reads at most bytes - 1 bytes of a file into text [bytes] and appends a null byte. Returns the
 * length, or -1 (and an empty text) when the file cannot be read. Allocates nothing. */
int64_t hr_small_file_read(const char *path, char *text, int64_t bytes);

/* Returns the number that follows `key` and blanks at the start of a line; -1 when there is none.
 * Pure. */
int64_t hr_small_file_number(const char *text, const char *key);

#endif
