/* SPDX-License-Identifier: Apache-2.0 */
/* base/number.h - numbers as text that parses back to the same bits. */
#ifndef HR_BASE_NUMBER_H
#define HR_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

enum { HR_REAL_BYTES = 32 };

/* Prints the shortest of 15, 16 and 17 digits that parses back to the same double. Returns text.
 * Threads  any; allocates nothing. */
const char *hr_real_print(double value, char text[HR_REAL_BYTES]);

/* Parses a finite decimal number ("3e-4", "-.5") that is the whole text. Returns false for anything
 * else and leaves *value unchanged. */
bool hr_real_parse(const char *text, double *value);

/* Parses a decimal integer that is the whole text and fits an int64. Returns false for anything
 * else. */
bool hr_integer_parse(const char *text, int64_t *value);

#endif
