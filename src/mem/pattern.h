/* SPDX-License-Identifier: Apache-2.0 */
/* mem/pattern.h - tells by looking at memory which bytes a run has written.
 *
 * Before the run every word gets a value that depends on its place; a word that still has it
 * afterwards was not written. A run writes the same word by chance once in 2^64. */
#ifndef HR_MEM_PATTERN_H
#define HR_MEM_PATTERN_H

#include <stdint.h>

/* Fills `memory` [bytes], a multiple of 8. Align: 8. */
void hr_pattern_fill(void *memory, int64_t bytes);

/* One past the last word of `memory` [bytes] that was written; 0 when none was. */
int64_t hr_pattern_end(const void *memory, int64_t bytes);

/* Bytes in words that were not written, of [offset, offset + bytes); both multiples of 8. */
int64_t hr_pattern_untouched_bytes(const void *memory, int64_t offset, int64_t bytes);

#endif
