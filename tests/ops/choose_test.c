/* SPDX-License-Identifier: Apache-2.0 */
/* The best blocks, and their scores: every instruction set has the bits of the reference, with
 * scores that are equal, zero or in order too. nsa_test compares whole choices with an oracle. */
#include <stdlib.h>

#include "ops/choose/choose_kernels.h"
#include "ops/passes.h"

enum { SEED = 1130, BLOCKS_MOST = 3000, KEYS_MOST = 4 * BLOCKS_MOST };

static hr_choose_kernels kernels_of(uint32_t mask)
{
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    return kernels.choose;
}

/* Of few or of many values, or rising, or falling. */
static void draw_scores(float *scores, int64_t count, int64_t turn, uint64_t *state)
{
    const double values = turn % 3 ? 1e6 : 1 + (double)(turn % 5);
    for (int64_t j = 0; j < count; j++) {
        scores[j] = (float)floor(values * fabs(draw(state)));
        if (turn % 7 == 4) scores[j] = (float)j;
        if (turn % 7 == 5) scores[j] = (float)(count - j);
    }
}

static void the_best_are_those_of_a_sorted_list(uint32_t mask)
{
    const hr_choose_kernels fast = kernels_of(mask), plain = kernels_of(0);
    uint64_t state = start(SEED);
    for (int64_t turn = 0; turn < 400; turn++) {
        const int64_t last = (int64_t)(fabs(draw(&state)) * (turn % 2 ? BLOCKS_MOST : 90));
        const int64_t first = hr_min(last, turn % 4);
        const int64_t room = turn % 11 == 0 ? HR_CHOOSE_COUNT_MOST : turn % 40;
        float *scores = take(last * 4);
        uint16_t expected[HR_CHOOSE_COUNT_MOST], got[HR_CHOOSE_COUNT_MOST];
        draw_scores(scores, last, turn, &state);
        const int64_t count = plain.best(scores, first, last, room, expected);
        assert_int_equal(count, hr_min(room, last - first));
        assert_int_equal(fast.best(scores, first, last, room, got), count);
        assert_memory_equal(got, expected, (size_t)count * sizeof *got);
        release_all();
    }
}

static void scores_have_one_order(uint32_t mask)
{
    static const int64_t shapes[][2] = {
        { 4, 2 }, { 4, 2 }, { 1, 1 }, { 4, 1 }, { 2, 3 }, { 8, 2 }
    };
    const hr_choose_kernels fast = kernels_of(mask), plain = kernels_of(0);
    uint64_t state = start(SEED);
    for (int64_t turn = 0; turn < 300; turn++) {
        const int64_t *shape = shapes[turn % 6];
        const int64_t keys = (int64_t)(fabs(draw(&state)) * (turn % 2 ? KEYS_MOST : 100));
        const int64_t count = hr_min(keys / shape[0] + 1, BLOCKS_MOST);
        float weights[16];
        for (int32_t k = 0; k < 16; k++) weights[k] = (float)(1 + k % 3);
        const hr_choose_sum sum = { shape[0], shape[1], weights };
        float *p = take_random(keys, HR_F32, 1, &state);
        float *expected = take(count * 4), *got = take_poisoned(count * 4);
        plain.score(&sum, p, keys, count, expected);
        fast.score(&sum, p, keys, count, got);
        assert_same_bits(got, expected, count * 4);
        release_all();
    }
}

ON_RUNGS(the_best_are_those_of_a_sorted_list)
ON_RUNGS(scores_have_one_order)

int main(void)
{
    print_message("seed %d\n", SEED);
    const struct CMUnitTest tests[] = {
        TEST_RUNGS(the_best_are_those_of_a_sorted_list),
        TEST_RUNGS(scores_have_one_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
