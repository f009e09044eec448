/* SPDX-License-Identifier: Apache-2.0 */
/* base/crc32c.c - computes CRC-32C eight bytes at a time with the SSE 4.2 instruction, or four bits
 * at a time with a small table. */
#include "base/crc32c.h"

#include <cpuid.h>
#include <string.h>

#include "base/assert.h"

/* The remainder after shifting four zero bits into remainder i, with the bit-reversed polynomial
 * 0x82f63b78. */
static const uint32_t after_four[16] = { 0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                         0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                         0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                         0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75 };

bool hr_crc32c_has_instruction(void)
{
    uint32_t a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & 1u << 20); /* SSE 4.2 */
}

static uint32_t by_table(uint32_t crc, const uint8_t *at, const uint8_t *end)
{
    for (; at < end; at++) {
        crc ^= *at;
        crc = crc >> 4 ^ after_four[crc & 15];
        crc = crc >> 4 ^ after_four[crc & 15];
    }
    return crc;
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *at,
                                                                 const uint8_t *end)
{
    uint64_t wide = crc;
    for (; end - at >= 8; at += 8) {
        uint64_t eight;
        memcpy(&eight, at, sizeof eight);
        wide = __builtin_ia32_crc32di(wide, eight);
    }
    crc = (uint32_t)wide;
    for (; at < end; at++) crc = __builtin_ia32_crc32qi(crc, *at);
    return crc;
}

uint32_t hr_crc32c(const void *memory, int64_t bytes, bool instruction)
{
    const uint8_t *at = memory;
    const uint32_t first = UINT32_MAX;
    return ~(instruction ? by_instruction(first, at, at + bytes) : by_table(first, at, at + bytes));
}

/* The instruction takes three cycles, but one can start in every cycle: chains of several blocks
 * overlap. */
__attribute__((target("sse4.2"))) static void four_blocks(const uint8_t *memory,
                                                          int64_t block_bytes, uint32_t *checksums)
{
    uint64_t wide[4] = { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX };
    for (int64_t i = 0; i < block_bytes; i += 8) {
#pragma GCC unroll 4
        for (int64_t k = 0; k < 4; k++) {
            uint64_t eight;
            memcpy(&eight, memory + k * block_bytes + i, sizeof eight);
            wide[k] = __builtin_ia32_crc32di(wide[k], eight);
        }
    }
    for (int64_t k = 0; k < 4; k++) checksums[k] = ~(uint32_t)wide[k];
}

void hr_crc32c_blocks(const void *memory, int64_t block_bytes, int64_t count, bool instruction,
                      uint32_t *checksums)
{
    const uint8_t *at = memory;
    int64_t i = 0;
    HR_ASSERT(block_bytes % 8 == 0);
    for (; instruction && count - i >= 4; i += 4)
        four_blocks(at + i * block_bytes, block_bytes, checksums + i);
    for (; i < count; i++) checksums[i] = hr_crc32c(at + i * block_bytes, block_bytes, instruction);
}
