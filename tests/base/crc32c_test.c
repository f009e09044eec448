/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c_test.c - CRC-32C against published values and a bitwise implementation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/random.h"
#include "guard.h"

static uint32_t by_definition(const uint8_t *memory, int64_t bytes)
{
    uint32_t crc = UINT32_MAX;
    for (int64_t i = 0; i < bytes * 8; i++) {
        const uint32_t bit = (crc ^ (uint32_t)(memory[i / 8] >> i % 8)) & 1;
        crc = crc >> 1 ^ (bit ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static void table_and_instruction_give_the_published_values(void **state)
{
    (void)state;
    uint8_t bytes[32];
    for (int32_t way = 0; way <= hr_crc32c_has_instruction(); way++) {
        print_message("%s\n", way ? "by instruction" : "by table");
        memset(bytes, 0, sizeof bytes);
        assert_int_equal(hr_crc32c(bytes, 32, way), 0x8a9136aa);
        memset(bytes, 0xff, sizeof bytes);
        assert_int_equal(hr_crc32c(bytes, 32, way), 0x62a8ab43);
        for (int32_t i = 0; i < 32; i++) bytes[i] = (uint8_t)i;
        assert_int_equal(hr_crc32c(bytes, 32, way), 0x46dd794e);
        for (int32_t i = 0; i < 32; i++) bytes[i] = (uint8_t)(31 - i);
        assert_int_equal(hr_crc32c(bytes, 32, way), 0x113fdb5c);
        assert_int_equal(hr_crc32c("123456789", 9, way), 0xe3069283);
        assert_int_equal(hr_crc32c("", 0, way), 0);
    }
}

static void table_and_instruction_equal_the_definition_at_every_length(void **state)
{
    (void)state;
    uint64_t draw = 3;
    print_message("seed %llu\n", (unsigned long long)draw);
    for (int64_t bytes = 0; bytes < 200; bytes++) {
        hr_guard guard;
        uint8_t *memory = hr_guard_open(&guard, bytes);
        for (int64_t i = 0; i < bytes; i++) memory[i] = (uint8_t)hr_random_mix(++draw);
        for (int32_t way = 0; way <= hr_crc32c_has_instruction(); way++)
            assert_int_equal(hr_crc32c(memory, bytes, way), by_definition(memory, bytes));
        hr_guard_close(&guard);
    }
}

static void blocks_have_the_checksums_of_their_bytes(void **state)
{
    (void)state;
    enum { BLOCKS_MOST = 11 };
    uint64_t draw = 5;
    print_message("seed %llu\n", (unsigned long long)draw);
    for (int64_t block_bytes = 0; block_bytes <= 64; block_bytes += 8)
        for (int64_t count = 0; count <= BLOCKS_MOST; count++) {
            hr_guard guard;
            uint32_t checksums[BLOCKS_MOST + 1];
            uint8_t *memory = hr_guard_open(&guard, count * block_bytes);
            for (int64_t i = 0; i < count * block_bytes; i++)
                memory[i] = (uint8_t)hr_random_mix(++draw);
            for (int32_t way = 0; way <= hr_crc32c_has_instruction(); way++) {
                memset(checksums, 0x5a, sizeof checksums);
                hr_crc32c_blocks(memory, block_bytes, count, way, checksums);
                for (int64_t i = 0; i < count; i++)
                    assert_int_equal(checksums[i],
                                     by_definition(memory + i * block_bytes, block_bytes));
                assert_int_equal(checksums[count], 0x5a5a5a5a); /* nothing beyond the last */
            }
            hr_guard_close(&guard);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_and_instruction_give_the_published_values),
        cmocka_unit_test(table_and_instruction_equal_the_definition_at_every_length),
        cmocka_unit_test(blocks_have_the_checksums_of_their_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
