/* SPDX-License-Identifier: Apache-2.0 */
/* repack_test.c - elements of stored weights between the order of a file and that of memory, in
 * pieces, between guard pages; and which of them are finite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/random.h"
#include "checkpoint/repack.h"
#include "guard.h"

enum { SEED = 12 };

static uint8_t byte_of(uint64_t seed, int64_t i)
{
    return (uint8_t)(hr_random_mix(seed + (uint64_t)i) % 255 + 1);
}

/* Takes a matrix in pieces of `piece` rows, checks every element, and gives it back. */
static void check(hr_repack r, int64_t piece, uint64_t seed)
{
    const int64_t size = r.element_bytes, rows = r.transposed ? r.N : r.K;
    const int64_t width = r.transposed ? r.K : r.N;
    const int64_t stored = hr_layout_elements(r.layout, r.K, r.N) * size;
    hr_guard guards[3];
    uint8_t *weight = memset(hr_guard_open(&guards[0], stored), 0xff, (size_t)stored);
    for (int64_t first = 0; first < rows; first += piece) {
        const int64_t count = hr_min(piece, rows - first), bytes = count * width * size;
        uint8_t *part = hr_guard_open(&guards[1], bytes);
        for (int64_t i = 0; i < bytes; i++) part[i] = byte_of(seed, first * width * size + i);
        hr_repack_take(&r, first, count, part, weight);
        hr_guard_close(&guards[1]);
    }
    int64_t others = stored;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < width; i++) {
            const int64_t k = r.transposed ? i : row, n = r.transposed ? row : i;
            const int64_t at = hr_layout_index(r.layout, r.K, r.N, k, n);
            for (int64_t b = 0; b < size; b++, others--)
                assert_int_equal(weight[at * size + b],
                                 byte_of(seed, (row * width + i) * size + b));
        }
    for (int64_t i = 0; i < stored; i++) others -= weight[i] == 0;
    assert_int_equal(others, 0); /* the padding is zero, and no other byte is */
    for (int64_t first = 0; first < rows; first += piece) {
        const int64_t count = hr_min(piece, rows - first), bytes = count * width * size;
        uint8_t *part = hr_guard_open(&guards[2], bytes);
        hr_repack_give(&r, first, count, weight, part);
        for (int64_t i = 0; i < bytes; i++)
            assert_int_equal(part[i], byte_of(seed, first * width * size + i));
        hr_guard_close(&guards[2]);
    }
    hr_guard_close(&guards[0]);
}

static void every_element_has_its_place_and_returns(void **state)
{
    static const int64_t shapes[][2] = { { 1, 1 },   { 2, 16 },   { 5, 7 },     { 16, 16 },
                                         { 33, 17 }, { 64, 128 }, { 129, 200 }, { 300, 31 } };
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int32_t mode = 0; mode < 8; mode++) {
            const hr_repack r = { .layout = mode & 1 ? HR_PANEL_PAIR : HR_PANEL,
                                  .K = shapes[s][0],
                                  .N = shapes[s][1],
                                  .transposed = mode & 2,
                                  .element_bytes = mode & 4 ? 2 : 1 };
            const int64_t pieces[] = { 1, 2, 16, 128, 1000 };
            for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
                check(r, pieces[p], SEED + 100 * s + (uint64_t)mode);
        }
}

static bool e4m3_is_finite(uint8_t code, float scale, uint32_t most)
{
    uint8_t row[200] = { 0 };
    const float scales[] = { 1, scale };
    row[199] = code;
    return hr_repack_is_finite(hr_weight_format_of(HR_WEIGHTS_F8_E4M3), row, 1, 200, scales, most);
}

static bool f16_is_finite(uint16_t half)
{
    uint16_t rows[2][40] = { 0 };
    rows[1][39] = half;
    return hr_repack_is_finite(hr_weight_format_of(HR_WEIGHTS_F16), rows, 2, 40, NULL, 0x7f7fffff);
}

static void elements_that_are_not_finite_are_found(void **state)
{
    (void)state;
    assert_true(f16_is_finite(0x7bff) && f16_is_finite(0xfbff) && f16_is_finite(0x8000));
    assert_false(f16_is_finite(0x7c00) || f16_is_finite(0xfc00) || f16_is_finite(0x7e01));
    assert_true(e4m3_is_finite(0x7e, 1, 0x7f7fffff) && e4m3_is_finite(0xfe, 1, 0x7f7fffff));
    assert_false(e4m3_is_finite(0x7f, 1, 0x7f7fffff) || e4m3_is_finite(0xff, 0, 0x7f7fffff));
    /* 448 x 7.6e35 is above the largest bf16 number, and below the largest fp32 number. */
    assert_true(e4m3_is_finite(0x7e, 7.59e35f, 0x7f7fffff));
    assert_false(e4m3_is_finite(0x7e, 7.59e35f, 0x7f7f7fff));
    assert_false(e4m3_is_finite(0xfe, 7.6e35f, 0x7f7fffff));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_has_its_place_and_returns),
        cmocka_unit_test(elements_that_are_not_finite_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
