/* SPDX-License-Identifier: Apache-2.0 */
/* base/number.h - numbers as text that reads back to the same bits. */
#ifndef HR_BASE_NUMBER_H
#define HR_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

enum { HR_REAL_BYTES = 32 };

/* The shortest of 15, 16 and 17 digits that reads back as the same double. Returns text.
 * Threads  any; takes no memory from the system. */
const char *hr_real_print(double value, char text[HR_REAL_BYTES]);

/* A finite decimal number ("3e-4", "-.5") that fills the whole text; false for anything else, with
 * *value as it was. */
bool hr_real_parse(const char *text, double *value);

/* A decimal whole number that fills the whole text and an int64; false for anything else. */
bool hr_integer_parse(const char *text, int64_t *value);

#endif
