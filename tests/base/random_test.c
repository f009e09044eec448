/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers keyed by place: known answers (so that a run of today can be repeated tomorrow),
 * and bits that are fair and do not follow their neighbours. */
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
    return hr_random_element(hr_random_row_key(SEED, 0, 0, 0, position), element);
}

/* The mixer is SplitMix64's: mixed multiples of its constant are its outputs for seed 0. */
static void the_mixer_gives_the_published_values_of_splitmix64(void **state)
{
    (void)state;
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    assert_true(hr_random_mix(golden) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(hr_random_mix(2 * golden) == UINT64_C(0x6e789e6aa1b965f4));
    assert_true(hr_random_mix(3 * golden) == UINT64_C(0x06c45d188009454f));
}

/* Computed apart from this code, from the definition in base/random.h. */
static void keys_and_elements_have_their_known_values(void **state)
{
    (void)state;
    const uint64_t zero = hr_random_row_key(0, 0, 0, 0, 0), some = hr_random_row_key(1, 2, 3, 4, 5);
    assert_true(zero == UINT64_C(0x7564aca7cb8f9e9a));
    assert_true(some == UINT64_C(0x65ef7d4eb5178a4d));
    assert_int_equal(hr_random_element(zero, 0), 0x73f1a783);
    assert_int_equal(hr_random_element(zero, 1), 0xe956c2dc);
    assert_int_equal(hr_random_element(zero, UINT32_MAX), 0x85529a51);
    assert_int_equal(hr_random_element(some, 0), 0x313f7354);
    assert_int_equal(hr_random_element(some, UINT32_MAX), 0x7967995e);
}

static void every_part_of_the_key_counts(void **state)
{
    (void)state;
    const uint64_t key = hr_random_row_key(1, 1, 1, 1, 1);
    assert_true(key != hr_random_row_key(2, 1, 1, 1, 1));
    assert_true(key != hr_random_row_key(1, 2, 1, 1, 1));
    assert_true(key != hr_random_row_key(1, 1, 2, 1, 1));
    assert_true(key != hr_random_row_key(1, 1, 1, 2, 1));
    assert_true(key != hr_random_row_key(1, 1, 1, 1, 2));
    assert_true(hr_random_row_key(1, 2, 1, 1, 1) != hr_random_row_key(2, 1, 1, 1, 1));
}

/* Each bit of what `draw` gives is 1 half of the time, within five standard deviations. */
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

static uint32_t against_its_own_neighbour_bits(uint64_t position, uint32_t element)
{
    const uint32_t bits = bits_at(position, element);
    return bits ^ (bits >> 1 | bits << 31);
}

static void bits_are_fair(void **state)
{
    (void)state;
    assert_fair(bits_at);
}

static void bits_do_not_follow_their_neighbours(void **state)
{
    (void)state;
    assert_fair(against_the_next_element);
    assert_fair(against_the_next_row);
    assert_fair(against_its_own_neighbour_bits);
}

static void a_threshold_drops_the_share_it_is_asked_for(void **state)
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
        cmocka_unit_test(keys_and_elements_have_their_known_values),
        cmocka_unit_test(every_part_of_the_key_counts),
        cmocka_unit_test(bits_are_fair),
        cmocka_unit_test(bits_do_not_follow_their_neighbours),
        cmocka_unit_test(a_threshold_drops_the_share_it_is_asked_for),
    };
    printf("seed %d\n", SEED);
    return cmocka_run_group_tests(tests, 0, 0);
}
