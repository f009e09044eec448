/* SPDX-License-Identifier: Apache-2.0 */
/* base/crc32c.h - CRC-32C (Castagnoli polynomial), the checksum of TensorBoard event records. */
#ifndef HR_BASE_CRC32C_H
#define HR_BASE_CRC32C_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true when this machine has the CRC-32C instruction. */
bool hr_crc32c_has_instruction(void);

/* Returns the checksum of memory [bytes]. The instruction and the table give the same result.
 *
 *   instruction  true: use the instruction, which the machine must have
 *
 * Threads  any. Source  RFC 3720, section 12.1. */
uint32_t hr_crc32c(const void *memory, int64_t bytes, bool instruction);

#endif
