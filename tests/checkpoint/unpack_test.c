/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_test.c - every dtype of a file into every layout in memory, compared element by element
 * through the layout's index, between guard pages; for the portable and the AVX2 variant. */
#include <math.h>
#include <stdio.h>

#include "base/bf16.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "base/random.h"
#include "checkpoint/unpack.h"
#include "guard.h"
#include "require.h"
#include "support/e4m3.h"
#include "support/half.h"

enum { SEED = 5 };

/* Of E4M3 columns 0 to 127 and 128 to 255. */
static const float scales[] = { 0.0123f, 3e5f };

static int64_t bytes_of(hr_stored_kind kind)
{
    return kind == HR_STORED_F32 ? 4 : kind == HR_STORED_E4M3 ? 1 : 2;
}

/* Whether the bf16 of an fp32 value is finite: half a step above the largest number rounds up. */
static bool is_finite_in_bf16(uint32_t word)
{
    return (word & 0x7fffffff) < 0x7f7f8000;
}

/* Random bits that are finite in both dtypes. */
static void fill(void *source, hr_stored_kind kind, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        const uint64_t draw = hr_random_mix(seed + (uint64_t)i);
        uint32_t word = (uint32_t)draw;
        uint16_t half = (uint16_t)draw;
        if (!is_finite_in_bf16(word)) word &= 0xbfffffff;
        if (kind == HR_STORED_F16 && (half & 0x7c00) == 0x7c00) half &= 0xbfff;
        if (kind == HR_STORED_BF16 && (half & 0x7f80) == 0x7f80) half &= 0xbfff;
        if (kind == HR_STORED_F32) ((uint32_t *)source)[i] = word;
        else if (kind == HR_STORED_E4M3)
            ((uint8_t *)source)[i] = (uint8_t)(half % 128 == 127 ? half & 0xf0 : half);
        else ((uint16_t *)source)[i] = half;
    }
}

static float value_of(const void *source, hr_stored_kind kind, int64_t i, int64_t column)
{
    if (kind == HR_STORED_F32) return ((const float *)source)[i];
    if (kind == HR_STORED_E4M3)
        return e4m3_value(((const uint8_t *)source)[i]) * scales[column / 128];
    const uint16_t half = ((const uint16_t *)source)[i];
    return kind == HR_STORED_F16 ? half_value(half) : hr_bf16_to_f32(half);
}

static uint16_t bf16_of(const void *source, hr_stored_kind kind, int64_t i, int64_t column)
{
    if (kind == HR_STORED_BF16) return ((const uint16_t *)source)[i];
    return hr_bf16_from_f32(value_of(source, kind, i, column));
}

/* Converts rows in chunks of `most`, from memory that ends at a guard page. */
static bool take(const hr_unpack *u, const void *whole, int64_t most)
{
    bool finite = true;
    const int64_t rows = hr_unpack_rows(u), row_bytes = hr_unpack_width(u) * bytes_of(u->kind);
    for (int64_t first = 0; first < rows; first += most) {
        hr_guard guard;
        const int64_t count = hr_min(most, rows - first);
        void *source = hr_guard_open(&guard, count * row_bytes);
        memcpy(source, (const char *)whole + first * row_bytes, (size_t)(count * row_bytes));
        finite &= hr_unpack_take(u, first, count, source);
        hr_guard_close(&guard);
    }
    return finite;
}

static void check(const hr_unpack *u, const void *source)
{
    for (int64_t k = 0; k < u->K; k++)
        for (int64_t n = 0; n < u->N; n++) {
            const int64_t to = hr_layout_index(u->layout, u->K, u->N, k, n);
            const int64_t from = u->transposed ? n * u->K + k : k * u->N + n;
            const int64_t column = from % hr_unpack_width(u);
            const float value = value_of(source, u->kind, from, column);
            if (u->master && memcmp(&u->master[to], &value, sizeof value))
                fail_msg("(%d, %d) is %g, not %g", (int)k, (int)n, u->master[to], value);
            if (u->weight) assert_int_equal(u->weight[to], bf16_of(source, u->kind, from, column));
        }
}

/* Marks the elements of the matrix; the unmarked rest must be zero padding. */
static void check_padding(const hr_unpack *u)
{
    const int64_t stored = hr_layout_elements(u->layout, u->K, u->N);
    uint8_t *inside = calloc(1, (size_t)stored);
    for (int64_t k = 0; k < u->K; k++)
        for (int64_t n = 0; n < u->N; n++) inside[hr_layout_index(u->layout, u->K, u->N, k, n)] = 1;
    for (int64_t i = 0; i < stored; i++) {
        if (inside[i]) continue;
        if (u->master) assert_true(u->master[i] == 0);
        if (u->weight) assert_int_equal(u->weight[i], 0);
    }
    free(inside);
}

/* Which 1: the features of this machine; 0: none. */
static uint32_t mask_of(int32_t which)
{
    return which ? hr_cpu_detect() : 0;
}

static void one_case(uint32_t cpu_mask, hr_stored_kind kind, hr_layout layout, bool transposed,
                     int64_t K, int64_t N, int32_t outputs, int64_t most)
{
    const int64_t stored = hr_layout_elements(layout, K, N);
    hr_guard masters = { 0 }, weights = { 0 };
    hr_unpack u = { kind, layout, K, N, transposed, NULL, NULL, cpu_mask, scales };
    void *source = malloc((size_t)(K * N * 4));
    fill(source, kind, K * N, SEED + (uint64_t)(K * 31 + N));
    if (outputs & 1) u.master = hr_guard_open(&masters, stored * 4);
    if (outputs & 2) u.weight = hr_guard_open(&weights, stored * 2);
    if (u.master) memset(u.master, 0xff, (size_t)stored * 4);
    if (u.weight) memset(u.weight, 0xff, (size_t)stored * 2);
    assert_true(take(&u, source, most));
    check(&u, source);
    check_padding(&u);
    if (u.master) hr_guard_close(&masters);
    if (u.weight) hr_guard_close(&weights);
    free(source);
}

static void every_dtype_converts_to_every_layout(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 1, 2, 3, 15, 16, 17, 33, 64, 66, 131 };
    enum { SIZES = sizeof sizes / sizeof *sizes };
    static const int64_t pieces[] = { 1000, 16, 48, 5 };
    print_message("seed %d\n", SEED);
    int32_t turn = 0;
    for (int32_t kind = HR_STORED_F32; kind <= HR_STORED_E4M3; kind++)
        for (int32_t layout = HR_ROWS; layout <= HR_PANEL_PAIR; layout++)
            for (int32_t transposed = 0; transposed < 2; transposed++)
                for (int32_t i = 0; i < 2 * SIZES * SIZES; i++, turn++)
                    one_case(mask_of(i % 2), (hr_stored_kind)kind, (hr_layout)layout, transposed,
                             sizes[i / 2 / SIZES], sizes[i / 2 % SIZES], 1 + turn % 3,
                             pieces[turn / 3 % 4]);
}

/* All 65,536 f16 values convert exactly, including subnormals; non-finite ones are detected. */
static void every_f16_converts_exactly(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2 * 65536; i++) {
        const uint16_t half = (uint16_t)(i / 2);
        float out = 7;
        const hr_unpack u = { HR_STORED_F16,           HR_ROWS, 1, 1, false, &out, NULL,
                              mask_of((int32_t)i % 2), NULL };
        const float value = half_value(half);
        assert_int_equal(hr_unpack_take(&u, 0, 1, &half), isfinite(value) != 0);
        if (!isnan(value)) assert_memory_equal(&out, &value, sizeof value);
        else assert_true(isnan(out));
    }
}

/* All 256 E4M3 values times two scales, alone and in a whole panel. */
static void every_e4m3_converts_exactly(void **state)
{
    (void)state;
    enum { SIDE = HR_PANEL_WIDTH };
    static uint8_t source[SIDE * SIDE];
    static float out[SIDE * SIDE];
    for (int32_t i = 0; i < 2 * 2 * 256; i++) {
        const float scale = scales[i / 2 % 2];
        const hr_unpack u = { HR_STORED_E4M3, HR_PANEL,       SIDE,  SIDE, false, out,
                              NULL,           mask_of(i % 2), &scale };
        memset(source, i / 4, sizeof source);
        const float value = e4m3_value((uint8_t)(i / 4)) * scale;
        assert_int_equal(hr_unpack_take(&u, 0, SIDE, source), isfinite(value) != 0);
        for (int32_t k = 0; k < SIDE * SIDE; k++) {
            if (!isnan(value)) assert_memory_equal(&out[k], &value, sizeof value);
            else assert_true(isnan(out[k]));
        }
    }
}

/* Values that bf16 rounds to infinity are detected only if bf16 is written, in full blocks and at
 * the edges of a matrix. */
static void values_that_round_to_infinity_are_detected_if_bf16_is_written(void **state)
{
    (void)state;
    enum { K = 38, N = 37 };
    static const uint32_t words[] = { 0x7f7f7fff, 0x7f7f8000, 0x7f7fc99e, 0x7f7fffff };
    static float master[64 * 64];
    static uint16_t weight[64 * 64];
    static uint32_t source[K * N];
    fill(source, HR_STORED_F32, K * N, SEED);
    for (int32_t way = 0; way < 3 * 2 * 3 * 2; way++) {
        const int32_t outputs = 1 + way / 6 % 3;
        const hr_unpack u = { HR_STORED_F32,
                              (hr_layout)(way % 3),
                              K,
                              N,
                              way / 3 % 2,
                              outputs & 1 ? master : NULL,
                              outputs & 2 ? weight : NULL,
                              mask_of(way / 18),
                              NULL };
        for (int32_t i = 0; i < K * N; i++) {
            const uint32_t kept = source[i], word = words[i / 2 % 4];
            source[i] = i % 2 ? word | 0x80000000 : word;
            const bool finite = !(outputs & 2) || is_finite_in_bf16(word);
            assert_int_equal(hr_unpack_take(&u, 0, hr_unpack_rows(&u), source), finite);
            source[i] = kept;
        }
    }
}

static void non_finite_elements_are_detected_at_every_position(void **state)
{
    (void)state;
    enum { K = 38, N = 37 };
    static const uint32_t bad[][4] = { { 0x7f800000, 0x7c00, 0x7f80, 0x7f },   /* infinite, NaN */
                                       { 0xff800000, 0xfc00, 0xff80, 0xff },   /* -infinity, -NaN */
                                       { 0x7f800001, 0x7c01, 0x7f81, 0x7f },   /* NaN */
                                       { 0xffffffff, 0xffff, 0xffff, 0xff } }; /* -NaN */
    static float master[64 * 64];
    static uint16_t weight[64 * 64];
    static uint32_t source[K * N];
    for (int32_t way = 0; way < 2 * 4 * 3 * 2 * 2; way++) {
        const hr_stored_kind kind = (hr_stored_kind)(way / 2 % 4);
        const hr_unpack u = { kind,         (hr_layout)(way / 8 % 3), K,      N,
                              way / 24 % 2, way / 48 ? master : NULL, weight, mask_of(way % 2),
                              scales };
        for (int32_t i = 0; i < K * N; i++) {
            fill(source, kind, K * N, SEED);
            if (kind == HR_STORED_F32) source[i] = bad[i % 4][0];
            else if (kind == HR_STORED_E4M3) ((uint8_t *)source)[i] = (uint8_t)bad[i % 4][kind];
            else ((uint16_t *)source)[i] = (uint16_t)bad[i % 4][kind];
            assert_false(hr_unpack_take(&u, 0, hr_unpack_rows(&u), source));
        }
        fill(source, kind, K * N, SEED);
        assert_true(hr_unpack_take(&u, 0, hr_unpack_rows(&u), source));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_converts_to_every_layout),
        cmocka_unit_test(every_f16_converts_exactly),
        cmocka_unit_test(every_e4m3_converts_exactly),
        cmocka_unit_test(non_finite_elements_are_detected_at_every_position),
        cmocka_unit_test(values_that_round_to_infinity_are_detected_if_bf16_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
