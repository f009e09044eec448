/* SPDX-License-Identifier: Apache-2.0 */
/* random_test.c - Philox against published values, draws against their definition, and statistics:
 * bits are fair and independent of their neighbors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/random.h"

enum { SEED = 5, ROWS = 256, ELEMENTS = 256 };

static uint32_t bits_at(uint64_t position, uint32_t element)
{
    const hr_random_row row = hr_random_row_of(hr_random_stream_of(SEED, 0, 0, 0), 0,
                                               (uint32_t)position);
    return hr_random_element(&row, element);
}

static void assert_block(hr_random_block block, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    assert_int_equal(block.word[0], a);
    assert_int_equal(block.word[1], b);
    assert_int_equal(block.word[2], c);
    assert_int_equal(block.word[3], d);
}

/* The vectors of Random123's kat_vectors for philox4x32 with 10 rounds. */
static void philox_gives_the_published_values_of_random123(void **state)
{
    (void)state;
    const uint32_t zeros[4] = { 0 }, ones[4] = { ~0u, ~0u, ~0u, ~0u };
    const uint32_t pi[6] = {
        0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0
    };
    assert_block(hr_philox(zeros, zeros), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
    assert_block(hr_philox(ones, ones), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
    assert_block(hr_philox(pi + 4, pi), 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1);
}

/* The mixer is that of SplitMix64: mixed multiples of its constant are its outputs for seed 0. */
static void the_mixer_gives_the_published_values_of_splitmix64(void **state)
{
    (void)state;
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    assert_true(hr_random_mix(golden) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(hr_random_mix(2 * golden) == UINT64_C(0x6e789e6aa1b965f4));
    assert_true(hr_random_mix(3 * golden) == UINT64_C(0x06c45d188009454f));
}

/* The definition in the file head of base/random.h, using only hr_philox. */
static void a_draw_is_the_word_at_its_coordinates(void **state)
{
    (void)state;
    const uint64_t seed = UINT64_C(0x0123456789abcdef), step = UINT64_C(0xfedcba9876543210);
    const uint64_t element = (UINT64_C(1) << 34) - 2; /* word 2 of the last block */
    const uint32_t site = 77, lane = 88, sequence = 99, position = 111;
    const uint32_t outer[2] = { 0x89abcdef, 0x01234567 };
    const uint32_t use[4] = { 0x76543210, 0xfedcba98, site, lane };
    const hr_random_block stream = hr_philox(outer, use);
    const uint32_t place[4] = { UINT32_MAX, position, sequence, stream.word[2] };
    const hr_random_block drawn = hr_philox(stream.word, place);
    const hr_random_row row = hr_random_row_of(hr_random_stream_of(seed, step, site, lane),
                                               sequence, position);
    assert_int_equal(hr_random_element(&row, element), drawn.word[2]);
    assert_int_equal(hr_random_element(&row, element + 1), drawn.word[3]);
    assert_true(hr_random_wide(&row, element / 2) ==
                ((uint64_t)drawn.word[3] << 32 | drawn.word[2]));
}

/* Computed independently (Python), so that later versions draw the same numbers. */
static void elements_have_their_known_values(void **state)
{
    (void)state;
    const hr_random_row zero = hr_random_row_of(hr_random_stream_of(0, 0, 0, 0), 0, 0);
    const hr_random_row some = hr_random_row_of(hr_random_stream_of(1, 2, 3, 4), 5, 6);
    assert_int_equal(hr_random_element(&zero, 0), 0x038fd38c);
    assert_int_equal(hr_random_element(&zero, 1), 0xe9ce5743);
    assert_int_equal(hr_random_element(&some, 0), 0xbb3d83e8);
    assert_int_equal(hr_random_element(&some, (UINT64_C(1) << 34) - 1), 0x06606945);
}

/* Changing one bit of one coordinate gives another block. */
static void every_bit_of_every_coordinate_changes_the_block(void **state)
{
    (void)state;
    const hr_random_row row = hr_random_row_of(hr_random_stream_of(1, 2, 3, 4), 5, 6);
    const uint32_t here = hr_random_element(&row, 8);
    for (uint32_t bit = 0; bit < 64; bit++) {
        const uint64_t wide = UINT64_C(1) << bit;
        const uint32_t word = (uint32_t)(wide >> (bit & 32)), high = bit >= 32;
        const hr_random_row others[] = {
            hr_random_row_of(hr_random_stream_of(1 ^ wide, 2, 3, 4), 5, 6),
            hr_random_row_of(hr_random_stream_of(1, 2 ^ wide, 3, 4), 5, 6),
            hr_random_row_of(hr_random_stream_of(1, 2, high ? 3 : 3 ^ word, high ? 4 ^ word : 4), 5,
                             6),
            hr_random_row_of(hr_random_stream_of(1, 2, 3, 4), high ? 5 : 5 ^ word,
                             high ? 6 ^ word : 6),
        };
        for (int i = 0; i < 4; i++) assert_int_not_equal(hr_random_element(&others[i], 8), here);
        if (bit < 34) assert_int_not_equal(hr_random_element(&row, 8 ^ wide), here);
    }
}

static void units_and_bounds_cover_their_ranges(void **state)
{
    (void)state;
    assert_true(hr_random_unit(0) == 0);
    assert_true(hr_random_unit(UINT64_MAX) == 1 - 0x1p-53);
    assert_int_equal(hr_random_below(UINT64_MAX, 1), 0);
    assert_int_equal(hr_random_below(0, 50257), 0);
    assert_int_equal(hr_random_below(UINT64_MAX, 50257), 50256);
    int64_t counts[6] = { 0 };
    for (uint32_t i = 0; i < 60000; i++) {
        const hr_random_row row = hr_random_row_of(hr_random_stream_of(SEED, 0, 0, 0), 1, i);
        counts[hr_random_below(hr_random_wide(&row, 0), 6)]++;
    }
    for (int i = 0; i < 6; i++) assert_in_range(counts[i], 10000 - 460, 10000 + 460); /* 5 sigma */
}

/* Each bit of `draw` is 1 half of the time, within five standard deviations. */
static void assert_fair(uint32_t (*draw)(uint64_t position, uint32_t element))
{
    int64_t ones[32] = { 0 };
    for (uint64_t row = 0; row < ROWS; row++)
        for (uint32_t i = 0; i < ELEMENTS; i++) {
            const uint32_t bits = draw(row, i);
            for (int bit = 0; bit < 32; bit++) ones[bit] += bits >> bit & 1;
        }
    const double count = ROWS * ELEMENTS, deviation = sqrt(count) / 2;
    for (int bit = 0; bit < 32; bit++)
        assert_true(fabs((double)ones[bit] - count / 2) < 5 * deviation);
}

static uint32_t against_the_next_element(uint64_t position, uint32_t element)
{
    return bits_at(position, element) ^ bits_at(position, element + 1);
}

static uint32_t against_the_next_row(uint64_t position, uint32_t element)
{
    return bits_at(position, element) ^ bits_at(position + 1, element);
}

static uint32_t against_its_own_neighbor_bits(uint64_t position, uint32_t element)
{
    const uint32_t bits = bits_at(position, element);
    return bits ^ (bits >> 1 | bits << 31);
}

static void bits_are_fair(void **state)
{
    (void)state;
    assert_fair(bits_at);
}

static void bits_are_independent_of_their_neighbors(void **state)
{
    (void)state;
    assert_fair(against_the_next_element);
    assert_fair(against_the_next_row);
    assert_fair(against_its_own_neighbor_bits);
}

static void a_threshold_drops_the_requested_share(void **state)
{
    (void)state;
    assert_int_equal(hr_random_threshold(0), 0);
    assert_int_equal(hr_random_threshold(0.5), 0x80000000u);
    assert_int_equal(hr_random_threshold(1 - 0x1p-40), UINT32_MAX);
    const double shares[] = { 0.01, 0.1, 0.5, 0.9 };
    for (int i = 0; i < 4; i++) {
        const uint32_t threshold = hr_random_threshold(shares[i]);
        int64_t dropped = 0;
        for (uint64_t row = 0; row < ROWS; row++)
            for (uint32_t element = 0; element < ELEMENTS; element++)
                dropped += bits_at(row, element) < threshold;
        const double count = ROWS * ELEMENTS, deviation = sqrt(count * shares[i] * (1 - shares[i]));
        assert_true(fabs((double)dropped - count * shares[i]) < 5 * deviation);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mixer_gives_the_published_values_of_splitmix64),
        cmocka_unit_test(philox_gives_the_published_values_of_random123),
        cmocka_unit_test(a_draw_is_the_word_at_its_coordinates),
        cmocka_unit_test(elements_have_their_known_values),
        cmocka_unit_test(every_bit_of_every_coordinate_changes_the_block),
        cmocka_unit_test(units_and_bounds_cover_their_ranges),
        cmocka_unit_test(bits_are_fair),
        cmocka_unit_test(bits_are_independent_of_their_neighbors),
        cmocka_unit_test(a_threshold_drops_the_requested_share),
    };
    printf("seed %d\n", SEED);
    return cmocka_run_group_tests(tests, 0, 0);
}
