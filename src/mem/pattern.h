/* SPDX-License-Identifier: Apache-2.0 */
/* mem/pattern.h - detects which bytes of memory a run has written.
 *
 * Before the run, every word is set to a value that depends on its index. A word that still has
 * this value afterwards was not written. A run writes the same value by chance once in 2^64. */
#ifndef HR_MEM_PATTERN_H
#define HR_MEM_PATTERN_H

#include <stdint.h>

/* Fills `memory` [bytes], a multiple of 8. Align: 8. */
void hr_pattern_fill(void *memory, int64_t bytes);

/* End of the last word of `memory` [bytes] that was written; 0 when none was. */
int64_t hr_pattern_end(const void *memory, int64_t bytes);

/* Bytes of unwritten words in [offset, offset + bytes); both multiples of 8. */
int64_t hr_pattern_untouched_bytes(const void *memory, int64_t offset, int64_t bytes);

#endif
