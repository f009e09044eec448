/* SPDX-License-Identifier: Apache-2.0 */
/* base/crc32c.h - the checksum of TensorBoard's records: CRC-32 with Castagnoli's polynomial. */
#ifndef HR_BASE_CRC32C_H
#define HR_BASE_CRC32C_H

#include <stdbool.h>
#include <stdint.h>

/* Whether this machine has an instruction for it. */
bool hr_crc32c_has_instruction(void);

/* Of memory [bytes]; both ways give the same.
 *
 *   instruction  take the processor's, which it then must have
 *
 * Threads  any. Source  RFC 3720, section 12.1. */
uint32_t hr_crc32c(const void *memory, int64_t bytes, bool instruction);

#endif
