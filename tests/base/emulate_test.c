/* SPDX-License-Identifier: Apache-2.0 */
/* emulate_test.c - the emulated instructions equal the real ones bit for bit, where the machine has
 * them. Layout, order of sums and denormals are checked on every machine. */
#include "require.h"

#include <stdio.h>

#include <immintrin.h>

#include "base/random.h"
#include "emulate/amx.h"

/* The following needs the instructions; the rest of this file runs on any machine. */
#ifdef __clang__
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")
#endif

#include "emulate/bf16.h"

static void multiply_both(const uint32_t acc[16], const uint16_t a[32], const uint16_t b[32],
                          uint32_t real[16], uint32_t emulated[16])
{
    const __m512 sum = _mm512_loadu_ps(acc);
    const __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
    _mm512_storeu_ps(real, _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)y));
    _mm512_storeu_ps(emulated, hr_dpbf16(sum, x, y));
}

static void convert_both(const uint32_t bits[32], uint16_t real[32], uint16_t emulated[32])
{
    const __m512 low = _mm512_loadu_ps(bits), high = _mm512_loadu_ps(bits + 16);
    _mm512_storeu_si512(real, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    _mm512_storeu_si512(emulated, hr_to_bf16x32(low, high));
    assert_memory_equal(real, emulated, 64);
    _mm256_storeu_si256((__m256i *)real, (__m256i)_mm512_cvtneps_pbh(high));
    _mm256_storeu_si256((__m256i *)emulated, hr_to_bf16x16(high));
}

static void tiles_real(float c[16][16], const uint16_t a[16][32], const uint16_t b[16][32])
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = { 1, 0, { 0 }, { 64, 64, 64 }, { 16, 16, 16 } };
    __asm__ volatile("" : : "r"(&config), "r"(a), "r"(b) : "memory");
    _tile_loadconfig(&config);
    _tile_loadd(0, c, 64);
    _tile_loadd(1, a, 64);
    _tile_loadd(2, b, 64);
    _tile_dpbf16ps(0, 1, 2);
    _tile_stored(0, c, 64);
    _tile_release();
    __asm__ volatile("" : : : "memory");
}

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

enum { KINDS = 4, SEED = 20 };

static uint32_t draw(uint64_t index)
{
    return (uint32_t)(hr_random_mix(index * 2 + SEED) >> 16);
}

/* Bits of an fp32 number of one of four kinds: any pattern, a corner case of the format, near one
 * (where sums cancel and round), or so small that products and sums are denormal. */
static uint32_t draw_f32(int kind, uint64_t index)
{
    static const uint32_t corners[10] = {
        0,          1,          0x7fffff,   0x800000,   0x800001,
        0x3f800000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00123
    };
    const uint32_t bits = draw(index), sign = bits & 0x80000000u;
    switch (kind) {
    case 0: return bits;
    case 1: return sign | corners[bits % 10];
    case 2: return sign | (0x3f000000 + (bits & 0x00ffffff));
    default: return sign | (bits & 0x01ffffff);
    }
}

/* Same for bf16; small ones make products around the smallest normal number. */
static uint16_t draw_bf16(int kind, uint64_t index)
{
    if (kind < 3) return (uint16_t)(draw_f32(kind, index) >> 16);
    const uint32_t bits = draw(index);
    return (uint16_t)((bits & 0x81ff) + (bits >> 31 ? 30 << 7 : 95 << 7));
}

static void emulated_pair_products_equal_the_instruction(void **state)
{
    (void)state;
    hr_test_require("avx512bf16");
    const unsigned own = _mm_getcsr();
    for (uint64_t i = 0; i < UINT64_C(20000) * HR_COUNT; i++) {
        uint32_t acc[16], real[16], emulated[16];
        uint16_t a[32], b[32];
        const int kind = (int)(i % KINDS);
        for (uint64_t lane = 0; lane < 16; lane++) acc[lane] = draw_f32(kind, i * 80 + lane);
        for (uint64_t j = 0; j < 32; j++) {
            a[j] = draw_bf16(kind, i * 80 + 16 + j);
            b[j] = draw_bf16(kind, i * 80 + 48 + j);
        }
        multiply_both(acc, a, b, real, emulated);
        assert_memory_equal(real, emulated, 64);
    }
    assert_int_equal(own, _mm_getcsr());
}

static void emulated_conversions_equal_the_instruction(void **state)
{
    (void)state;
    hr_test_require("avx512bf16");
    for (uint64_t i = 0; i < UINT64_C(20000) * HR_COUNT; i++) {
        uint32_t bits[32];
        uint16_t real[32] = { 0 }, emulated[32] = { 0 };
        for (uint64_t j = 0; j < 32; j++) bits[j] = draw_f32((int)(i % KINDS), i * 32 + j);
        convert_both(bits, real, emulated);
        assert_memory_equal(real, emulated, 64);
    }
}

static void tiles_emulated(float c[16][16], const uint16_t a[16][32], const uint16_t b[16][32])
{
    hr_tile_config();
    hr_tile_load(0, c, 64);
    hr_tile_load(1, a, 64);
    hr_tile_load_stream(2, b, 64);
    hr_tile_dpbf16(0, 1, 2);
    hr_tile_store(0, c, 64);
    hr_tile_release();
}

static void emulated_tile_products_equal_the_instruction(void **state)
{
    (void)state;
    hr_test_require("amx");
    for (uint64_t i = 0; i < UINT64_C(500) * HR_COUNT; i++) {
        uint32_t bits[16][16];
        uint16_t a[16][32], b[16][32];
        float real[16][16], emulated[16][16];
        const int kind = i % 2 ? 2 : 3; /* no NaN: its payload is undefined */
        for (uint64_t j = 0; j < 256; j++) bits[j / 16][j % 16] = draw_f32(kind, i * 2048 + j);
        for (uint64_t j = 0; j < 512; j++) {
            a[j / 32][j % 32] = draw_bf16(kind, i * 2048 + 256 + j);
            b[j / 32][j % 32] = draw_bf16(kind, i * 2048 + 768 + j);
        }
        memcpy(real, bits, sizeof bits);
        memcpy(emulated, bits, sizeof bits);
        tiles_real(real, a, b);
        tiles_emulated(emulated, a, b);
        assert_memory_equal(real, emulated, sizeof real);
    }
}

static void whole_numbers_multiply_as_matrices(void **state)
{
    (void)state;
    uint16_t a[16][32], b[16][32];
    float c[16][16];
    for (int i = 0; i < 512; i++) {
        a[i / 32][i % 32] = hr_bf16_from_f32((float)(i * 7 % 31 - 15));
        b[i / 32][i % 32] = hr_bf16_from_f32((float)(i * 5 % 29 - 14));
    }
    for (int i = 0; i < 256; i++) c[i / 16][i % 16] = (float)i;
    tiles_emulated(c, a, b);
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++) {
            int sum = m * 16 + n;
            for (int k = 0; k < 32; k++) {
                const int at = k / 2 * 32 + n * 2 + k % 2;
                sum += ((m * 32 + k) * 7 % 31 - 15) * (at * 5 % 29 - 14);
            }
            assert_true(c[m][n] == (float)sum);
        }
}

/* 1, then 2^-24 three times. Added one by one, each is rounded away. Here the even chain, 1 +
 * 2^-24, is 1; the odd one is 2^-23, which is not rounded away. */
static void even_and_odd_products_are_summed_separately(void **state)
{
    (void)state;
    uint16_t a[16][32] = { { 0 } }, b[16][32] = { { 0 } };
    float c[16][16] = { { 0 } };
    const uint16_t one = hr_bf16_from_f32(1), tiny = hr_bf16_from_f32(0x1p-24f);
    for (int k = 0; k < 16; k++) b[k][0] = b[k][1] = one;
    a[0][0] = one;
    a[0][2] = a[0][1] = a[0][3] = tiny;
    tiles_emulated(c, a, b);
    assert_true(c[0][0] == 1 + 0x1p-23f);
}

static void tiles_treat_denormals_as_zero(void **state)
{
    (void)state;
    uint16_t a[16][32] = { { 0 } }, b[16][32] = { { 0 } };
    float c[16][16] = { { 0x1p-127f, 0x1p-127f } };
    a[0][0] = 0x0040; /* 2^-127 times 2^127 would be 1, but the first is a denormal */
    b[0][0] = hr_bf16_from_f32(0x1p127f);
    tiles_emulated(c, a, b);
    assert_true(c[0][0] == 0 && c[0][1] == 0);
    a[0][0] = b[0][0] = hr_bf16_from_f32(0x1p-64f);
    tiles_emulated(c, a, b);
    assert_true(c[0][0] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emulated_pair_products_equal_the_instruction),
        cmocka_unit_test(emulated_conversions_equal_the_instruction),
        cmocka_unit_test(emulated_tile_products_equal_the_instruction),
        cmocka_unit_test(whole_numbers_multiply_as_matrices),
        cmocka_unit_test(even_and_odd_products_are_summed_separately),
        cmocka_unit_test(tiles_treat_denormals_as_zero),
    };
    printf("seed %d\n", SEED);
    return cmocka_run_group_tests(tests, 0, 0);
}
