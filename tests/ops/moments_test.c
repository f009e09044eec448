/* SPDX-License-Identifier: Apache-2.0 */
/* Stored moments: the maps against their construction and against bitsandbytes; codes against a
 * search of the whole map and against bitsandbytes; rounding of bf16 against its definition;
 * updates in pieces and on several threads; all with every instruction set. */
#include <stdlib.h>

#include "ops/passes.h"
#include "ops/update/moments.h"
#include "ops/update/update.h"
#include "oracles/moments.h"

enum { SEED = 707, BLOCK = HR_MOMENT_BLOCK, CODES = HR_MOMENT_CODES };

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The construction: for each decade the centers of equal parts of [0.1, 1], in fp32. */
static void construct(bool is_signed, float map[CODES])
{
    int32_t count = 0;
    for (int32_t decade = 0; decade < 7; decade++) {
        const int32_t parts = 1 << (decade + !is_signed);
        const float step = (1 - 0.1f) / (float)parts, power = (float)pow(10, decade - 6);
        float border[129];
        for (int32_t i = 0; i <= parts; i++)
            border[i] = i < (parts + 1) / 2 ? fmaf((float)i, step, 0.1f)
                                            : fmaf((float)(i - parts), step, 1);
        for (int32_t i = 0; i < parts; i++) {
            const float center = power * ((border[i] + border[i + 1]) / 2);
            map[count++] = center;
            if (is_signed) map[count++] = -center;
        }
    }
    map[count++] = 0;
    map[count++] = 1;
    assert_int_equal(count, CODES);
    qsort(map, CODES, sizeof *map, ascending);
}

static void the_maps_are_those_of_their_construction(void **unused)
{
    (void)unused;
    for (int32_t is_signed = 0; is_signed < 2; is_signed++) {
        const hr_moment_map *map = hr_moment_map_of(is_signed);
        float expected[CODES];
        construct(is_signed, expected);
        assert_memory_equal(map->values, expected, sizeof expected);
        assert_memory_equal(map->values, is_signed ? oracle_map_signed : oracle_map_unsigned,
                            sizeof expected);
        assert_int_equal(map->zero, is_signed ? HR_ZERO_CODE_SIGNED : HR_ZERO_CODE_UNSIGNED);
        assert_true(map->values[map->zero] == 0);
    }
}

static void check_oracle(const hr_kernels *kernels, bool is_signed)
{
    const float *from = (const void *)(is_signed ? oracle_moments_signed : oracle_moments_unsigned);
    const uint8_t *codes = is_signed ? oracle_codes_signed : oracle_codes_unsigned;
    const uint32_t *scales = is_signed ? oracle_scales_signed : oracle_scales_unsigned;
    const hr_moment_map *map = hr_moment_map_of(is_signed);
    for (int64_t i = 0; i < ORACLE_MOMENTS; i += BLOCK) {
        const int64_t count = hr_min(BLOCK, ORACLE_MOMENTS - i);
        uint8_t *packed = take_poisoned(count);
        float *values = take_poisoned(count * 4);
        const float scale = kernels->update.pack_codes(from + i, map, packed, count);
        assert_true(scale == float_of(scales[i / BLOCK]));
        assert_memory_equal(packed, codes + i, (size_t)count);
        kernels->update.unpack_codes(packed, map, scale, values, count);
        for (int64_t j = 0; j < count; j++)
            assert_true(values[j] == map->values[packed[j]] * scale);
    }
    release_all();
}

static void codes_are_those_of_bitsandbytes(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    check_oracle(&kernels, true);
    check_oracle(&kernels, false);
}

static uint8_t nearest(const float map[CODES], float x)
{
    int32_t best = 0;
    for (int32_t c = 1; c < CODES; c++)
        if (fabsf(x - map[c]) < fabsf(x - map[best])) best = c;
    return (uint8_t)best;
}

/* Codes of a block whose largest magnitude is 1. */
static void check_codes(const hr_kernels *kernels, bool is_signed, float values[BLOCK])
{
    const hr_moment_map *map = hr_moment_map_of(is_signed);
    uint8_t codes[BLOCK];
    values[0] = 1;
    assert_true(kernels->update.pack_codes(values, map, codes, BLOCK) == 1);
    for (int32_t i = 0; i < BLOCK; i++)
        if (codes[i] != nearest(map->values, values[i]))
            fail_msg("%.9g: code %d, not %d", (double)values[i], codes[i],
                     nearest(map->values, values[i]));
}

/* 40 numbers beyond: more than the kernels take for near a limit. */
static void codes_are_nearest_beside_every_limit(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    uint64_t state = start(SEED);
    for (int32_t is_signed = 0; is_signed < 2; is_signed++) {
        const hr_moment_map *map = hr_moment_map_of(is_signed);
        float values[BLOCK];
        for (int32_t away = -40; away <= 40; away++) {
            for (int32_t i = 0; i < BLOCK; i++) {
                float x = i < CODES - 1 ? (map->values[i] + map->values[i + 1]) / 2 : 0;
                for (int32_t k = 0; k < abs(away); k++) x = nextafterf(x, away < 0 ? -2 : 2);
                values[i] = x;
            }
            check_codes(&kernels, is_signed, values);
        }
        for (int32_t round = 0; round < 100; round++) {
            for (int32_t i = 0; i < BLOCK; i++) {
                const double size = pow(10, -8 * fabs(draw(&state)));
                values[i] = (float)(is_signed && i % 2 ? -size : size);
            }
            check_codes(&kernels, is_signed, values);
        }
    }
}

static void blocks_that_are_zero_tiny_or_broken_have_defined_codes(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    const float broken[] = { NAN, INFINITY, -INFINITY, -NAN };
    for (int32_t is_signed = 0; is_signed < 2; is_signed++) {
        const hr_moment_map *map = hr_moment_map_of(is_signed);
        float values[BLOCK] = { 0 };
        uint8_t codes[BLOCK];
        for (int32_t tiny = 0; tiny < 2; tiny++) {
            values[7] = tiny ? 1e-40f : 0;
            assert_true(kernels.update.pack_codes(values, map, codes, 33) == 0);
            for (int32_t i = 0; i < 33; i++) assert_int_equal(codes[i], map->zero);
        }
        for (size_t k = 0; k < sizeof broken / sizeof *broken; k++) {
            values[7] = broken[k];
            const float scale = kernels.update.pack_codes(values, map, codes, 33);
            assert_true(isnan(scale));
            kernels.update.unpack_codes(codes, map, scale, values, 33);
            for (int32_t i = 0; i < 33; i++) assert_true(isnan(values[i]));
            memset(values, 0, sizeof values);
        }
    }
}

static void bf16_is_rounded_up_with_the_probability_of_the_lost_bits(uint32_t mask)
{
    enum { ROUNDS = 64 };
    hr_kernels fast;
    hr_kernels_fill(&fast, mask);
    const hr_random_stream stream = hr_random_stream_of(SEED, 1, HR_SITE_MOMENTS, 0);
    float values[BLOCK];
    double sum = 0;
    for (int32_t i = 0; i < BLOCK; i++)
        values[i] = 1 + 0x1p-7f / 4; /* a quarter of the last place */
    values[5] = NAN;
    values[6] = INFINITY;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const hr_random_row row = hr_random_row_of(stream, 0, round);
        hr_bf16 packed[BLOCK];
        const int64_t count = round % 2 ? BLOCK : 77;
        fast.update.pack_bf16(values, &row, 256, packed, count);
        for (int64_t i = 0; i < count; i++) {
            const float got = hr_bf16_to_f32(packed[i]);
            const uint32_t random = hr_random_half(&row, 256 + (uint64_t)i);
            if (i == 5) assert_true(isnan(got));
            else if (i == 6) assert_true(isinf(got));
            else assert_true(got == (random >= 0xc000 ? 1 + 0x1p-7f : 1.f));
            if (i > 6 && count == BLOCK) sum += got - 1;
        }
        fast.update.pack_bf16(values, NULL, 0, packed, count);
        for (int64_t i = 0; i < count; i++)
            assert_int_equal(packed[i], hr_bf16_from_f32(values[i]));
    }
    const double mean = sum / (ROUNDS / 2 * (BLOCK - 7)) / 0x1p-7;
    assert_true(fabs(mean - 0.25) < 0.02); /* 4 standard deviations of 7,968 draws */
}

/* Runs one update of `elements` in pieces, and returns the moments and their scales. */
typedef struct {
    float *master, *scales[2];
    uint8_t *stored[2];
    int64_t bytes, scale_bytes, elements;
} updated;

static updated run_pieces(const hr_kernels *kernels, hr_dtype dtype, int64_t elements,
                          int64_t piece, int32_t threads)
{
    uint64_t state = start(SEED);
    double lr = 1e-3;
    updated u = { .bytes = elements * hr_dtype_bytes(dtype),
                  .scale_bytes = (elements + BLOCK - 1) / BLOCK * 4,
                  .elements = elements };
    float *gradient = take_random(elements, HR_F32, 1e-2, &state);
    u.master = take_random(elements, HR_F32, 1, &state);
    for (int32_t i = 0; i < 2; i++) {
        u.stored[i] = take(u.bytes);
        u.scales[i] = take(u.scale_bytes);
    }
    const int64_t width = hr_dtype_bytes(dtype);
    for (int64_t step = 0; step < 3; step++)
        for (int64_t at = 0; at < elements; at += piece) {
            const hr_update_attr attr = {
                hr_min(piece, elements - at), 0.9, 0.999, 1e-8, 0.1, 1, true, (uint8_t)dtype, 3, at
            };
            const bool coded = dtype == HR_U8;
            hr_call call = { .in = { gradient + at, NULL, &lr },
                             .out = { u.master + at, u.stored[0] + at * width,
                                      u.stored[1] + at * width, NULL,
                                      coded ? u.scales[0] + at / BLOCK : NULL,
                                      coded ? u.scales[1] + at / BLOCK : NULL },
                             .attr = &attr,
                             .kernels = kernels,
                             .clock = step,
                             .seed = 5 };
            run_threads(&call, hr_adamw_run, 1, threads);
        }
    return u;
}

static void updates_do_not_depend_on_pieces_or_threads(uint32_t mask)
{
    enum { RUN = HR_UPDATE_RUN_ELEMENTS, ELEMENTS = 5 * RUN + 300 };
    const hr_dtype dtypes[] = { HR_BF16, HR_U8 };
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    for (int32_t d = 0; d < 2; d++) {
        const updated whole = run_pieces(&kernels, dtypes[d], ELEMENTS, ELEMENTS, 1);
        const updated wide = run_pieces(&kernels, HR_F32, ELEMENTS, ELEMENTS, 1);
        double most = 0;
        for (int64_t i = 0; i < ELEMENTS; i++)
            most = fmax(most, fabs((double)whole.master[i] - wide.master[i]));
        assert_true(most > 0 && most < 3e-3); /* three steps of 1e-3, of the same sign */
        for (int32_t threads = 1; threads <= THREADS_MOST; threads++) {
            const updated parts = run_pieces(&kernels, dtypes[d], ELEMENTS, 2 * RUN, threads);
            assert_same_bits(parts.master, whole.master, ELEMENTS * 4);
            for (int32_t i = 0; i < 2; i++) {
                assert_same_bits(parts.stored[i], whole.stored[i], whole.bytes);
                assert_same_bits(parts.scales[i], whole.scales[i], whole.scale_bytes);
            }
        }
        release_all();
    }
}

/* A block by one function of the kernels and by several. */
static void check_adamw(const hr_update_kernels *kernels, int64_t count, bool copies,
                        uint64_t *state)
{
    const hr_adamw_factors factors = {
        0.5f, 1e-3f, 0.9f, 0.1f, 0.95f, 0.05f, 1e-4f, 1e-2f, 3, 1e-8f
    };
    const int32_t zeros[] = { hr_moment_maps[0].zero, hr_moment_maps[1].zero };
    float *gradient = take_random(count, HR_F32, 1e-2, state), *m = take(count * 4);
    float *master = take_random(count, HR_F32, 1, state), *same = take(count * 4),
          *v = take(count * 4);
    hr_bf16 *weight = copies ? take(count * 2) : NULL, *copy = copies ? take(count * 2) : NULL;
    float scales[2] = { 0 }, parts[2] = { 0 };
    hr_coded_moment moments[2];
    hr_moment stored[2];
    memcpy(same, master, (size_t)count * 4);
    for (int32_t k = 0; k < 2; k++) {
        moments[k] = (hr_coded_moment){ take(count), scales + k, &hr_moment_maps[k] };
        stored[k] = (hr_moment){ take(count), parts + k, &hr_moment_maps[k], .second = k == 1 };
        memset(moments[k].codes, zeros[k], (size_t)count);
        memset(stored[k].stored, zeros[k], (size_t)count);
    }
    for (int32_t step = 0; step < 3; step++) {
        kernels->adamw_codes(gradient, master, moments, weight, count, &factors);
        hr_moment_unpack(kernels, &stored[0], 0, count, m);
        hr_moment_unpack(kernels, &stored[1], 0, count, v);
        kernels->adamw(gradient, same, m, v, copy, count, &factors);
        hr_moment_pack(kernels, &stored[0], 0, count, m);
        hr_moment_pack(kernels, &stored[1], 0, count, v);
    }
    assert_same_bits(master, same, count * 4);
    assert_memory_equal(scales, parts, sizeof scales);
    for (int32_t k = 0; k < 2; k++) assert_same_bits(moments[k].codes, stored[k].stored, count);
    if (copies) assert_same_bits(weight, copy, count * 2);
    release_all();
}

static void a_block_has_the_bits_of_its_parts(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    uint64_t state = start(SEED);
    for (int64_t count = 1; count <= BLOCK; count += count < 40 ? 1 : 27)
        check_adamw(&kernels.update, count, count % 2, &state);
}

ON_RUNGS(codes_are_those_of_bitsandbytes)
ON_RUNGS(codes_are_nearest_beside_every_limit)
ON_RUNGS(blocks_that_are_zero_tiny_or_broken_have_defined_codes)
ON_RUNGS(a_block_has_the_bits_of_its_parts)
ON_RUNGS(bf16_is_rounded_up_with_the_probability_of_the_lost_bits)
ON_RUNGS(updates_do_not_depend_on_pieces_or_threads)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(codes_are_those_of_bitsandbytes),
        TEST_RUNGS(codes_are_nearest_beside_every_limit),
        TEST_RUNGS(blocks_that_are_zero_tiny_or_broken_have_defined_codes),
        TEST_RUNGS(a_block_has_the_bits_of_its_parts),
        TEST_RUNGS(bf16_is_rounded_up_with_the_probability_of_the_lost_bits),
        TEST_RUNGS(updates_do_not_depend_on_pieces_or_threads),
        cmocka_unit_test(the_maps_are_those_of_their_construction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
