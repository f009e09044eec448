/* SPDX-License-Identifier: Apache-2.0 */
/* base/small_file.h - the short texts in which the kernel says things about itself. */
#ifndef HR_BASE_SMALL_FILE_H
#define HR_BASE_SMALL_FILE_H

#include <stdint.h>

/* Reads a file into text [bytes], at most bytes - 1 of it, with a null behind. Returns the length,
 * -1 (and an empty text) when it cannot be read. Takes no memory from the system. */
int64_t hr_small_file_read(const char *path, char *text, int64_t bytes);

/* The number that follows `key` at the start of a line of such a text, blanks between them passed
 * over; -1 when there is none. Pure. */
int64_t hr_small_file_number(const char *text, const char *key);

#endif
