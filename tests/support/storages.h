/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/storages.h - generates storages to pack, typical of plans and harder ones, and
 * checks their placement by brute force. */
#ifndef HR_TESTS_SUPPORT_STORAGES_H
#define HR_TESTS_SUPPORT_STORAGES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "plan/pack/pack.h"

enum { SEED = 20241, STORAGES_MAX = 20000 };
enum { STAGE = 1 << 20 }; /* the packer's first stage for few items */

static uint64_t draws;

/* A number in [low, high]. */
static inline int64_t draw(int64_t low, int64_t high)
{
    return low + (int64_t)(hr_random_mix(SEED + ++draws) % (uint64_t)(high - low + 1));
}

static hr_storage storages[STORAGES_MAX];
static uint8_t *memory;
static int64_t memory_bytes;

static inline int set_up(void **state)
{
    (void)state;
    memory_bytes = hr_pack_scratch_bytes(STORAGES_MAX);
    memory = aligned_alloc(64, (size_t)(memory_bytes + 63) / 64 * 64);
    printf("seed %d\n", SEED);
    return memory ? 0 : 1;
}

static inline int tear_down(void **state)
{
    (void)state;
    free(memory);
    return 0;
}

static inline hr_pack_result pack(int32_t count, int64_t work)
{
    hr_region scratch = hr_region_over(memory, hr_pack_scratch_bytes(count));
    hr_pack_result result;
    hr_error err = { HR_OK, "" };
    assert_int_equal(hr_pack(storages, count, work, &scratch, &result, &err), HR_OK);
    assert_int_equal(scratch.used, 0);
    return result;
}

/* Checks every pair of storages at every step: simple but slow. */
static inline void check(int32_t count, const hr_pack_result *result)
{
    int64_t end = 0, floor = 0;
    for (int32_t a = 0; a < count; a++) {
        const hr_storage *one = &storages[a];
        int64_t alive = 0;
        assert_true(one->offset >= 0 && one->offset % HR_ARENA_ALIGN == 0);
        if (one->offset + one->bytes > end) end = one->offset + one->bytes;
        for (int32_t b = 0; b < count; b++) {
            const hr_storage *two = &storages[b];
            if (two->step_first <= one->step_first && one->step_first <= two->step_last)
                alive += two->bytes;
            if (b <= a || two->step_first > one->step_last || one->step_first > two->step_last)
                continue;
            assert_true(two->offset >= one->offset + one->bytes ||
                        one->offset >= two->offset + two->bytes);
        }
        if (alive > floor) floor = alive;
    }
    assert_int_equal(result->arena_bytes, end);
    assert_int_equal(result->floor_bytes, floor);
    assert_true(result->bound_bytes >= floor && result->bound_bytes <= end);
    assert_true((result->proof == HR_PACK_AT_FLOOR) == (end == floor));
    assert_true((result->proof == HR_PACK_OPEN) == (end > result->bound_bytes));
}

static inline void add(int32_t *count, int64_t first, int64_t last, int64_t units)
{
    storages[(*count)++] = (hr_storage){ units * HR_ARENA_ALIGN, -1, (int32_t)first,
                                         (int32_t)last };
}

/* Unstructured lifetimes: the hardest kind. */
static inline int32_t make_random(int32_t most)
{
    const int32_t steps = (int32_t)draw(1, 40);
    const int64_t size_most = draw(0, 1) ? 8 : 4000, life_most = draw(0, 2) ? 6 : steps;
    int32_t count = 0;
    for (int64_t left = draw(1, most); left > 0; left--) {
        const int64_t first = draw(0, steps - 1), last = first + draw(0, life_most - 1);
        add(&count, first, last < steps ? last : steps - 1, draw(1, size_most));
    }
    return count;
}

/* A training step: persistent state, activations saved for backward, and temporaries. */
static inline int32_t make_training(int32_t layers, int32_t loss_steps)
{
    enum { FORWARD = 12, BACKWARD = 24, KEPT = 8 };
    const int32_t back = layers * FORWARD + loss_steps, end = back + layers * BACKWARD;
    const int64_t width = 16 * draw(1, 40), wide = width * draw(2, 4);
    int32_t count = 0;
    for (int32_t l = 0; l < layers; l++) {
        const int32_t forward = l * FORWARD, backward = back + (layers - 1 - l) * BACKWARD;
        for (int32_t k = 0; k < 4; k++) add(&count, 0, end - 1, draw(1, 9) * width);
        for (int32_t k = 0; k < KEPT; k++)
            add(&count, forward + draw(0, FORWARD - 1), backward + draw(0, BACKWARD - 1),
                draw(0, 3) ? width : wide);
        for (int32_t k = 0; k < FORWARD - 1; k++)
            add(&count, forward + k, forward + k + draw(0, 1), draw(0, 2) ? width : wide);
        for (int32_t k = 0; k < BACKWARD - 2; k++)
            add(&count, backward + k, backward + k + draw(0, 2), draw(0, 2) ? width : wide);
    }
    for (int32_t k = 0; k + 1 < loss_steps; k++)
        add(&count, layers * FORWARD + k, layers * FORWARD + k + 1, wide * draw(1, 6));
    return count;
}

/* A step without micro-batches: the stack of activations shrinks while gradients, which wait for
 * the update, form another, and every product needs a wide temporary between the two. */
static inline int32_t make_whole_batch(int32_t layers)
{
    enum { FORWARD = 8, BACKWARD = 14, KEPT = 6, GRADIENTS = 4 };
    const int32_t back = layers * FORWARD, update = back + layers * BACKWARD;
    const int64_t width = 8 * draw(8, 40), most = layers * width * draw(3, 6) / 4;
    int32_t count = 0;
    for (int32_t l = 0; l < layers; l++) {
        const int32_t forward = l * FORWARD, backward = back + (layers - 1 - l) * BACKWARD;
        for (int32_t k = 0; k < KEPT; k++)
            if (draw(0, 2))
                add(&count, forward + k, backward + BACKWARD - 2 * k - 1, draw(1, 4) * width);
        for (int32_t k = 0; k < GRADIENTS; k++)
            add(&count, backward + 3 * k + draw(0, 2), update + l * GRADIENTS + k,
                draw(1, 9) * width / 2);
        for (int32_t k = 0; k + 1 < FORWARD; k++) {
            add(&count, forward + k, forward + k + draw(0, 1), width);
            if (draw(0, 1)) add(&count, forward + k, forward + k, most + width * draw(0, 2));
        }
        for (int32_t k = 0; k + 3 < BACKWARD; k++) {
            add(&count, backward + k, backward + k + draw(1, 3), width);
            if (draw(0, 1)) add(&count, backward + k, backward + k, most + width * draw(0, 4));
        }
    }
    return count;
}

/* Many lifetimes of random sizes and times: the search does not finish soon. */
static inline int32_t make_crowded(void)
{
    int32_t count = 0;
    for (int64_t left = draw(80, 200); left > 0; left--) {
        const int64_t first = draw(0, 29), last = first + draw(0, 9);
        add(&count, first, last < 30 ? last : 29, draw(1, 4000));
    }
    return count;
}

/* Seven storages with 5 units live at most that need 6. */
static inline int32_t make_unreachable(void)
{
    static const int64_t lives[7][3] = { { 0, 0, 3 }, { 0, 3, 1 }, { 1, 2, 2 }, { 2, 4, 2 },
                                         { 3, 5, 1 }, { 4, 4, 2 }, { 5, 5, 3 } };
    int32_t count = 0;
    for (int32_t i = 0; i < 7; i++) add(&count, lives[i][0], lives[i][1], lives[i][2]);
    return count;
}

/* The minimum height over all orders of stacking the storages. Every placement that cannot be
 * pushed down corresponds to an order. */
static inline int64_t least_height(int32_t count)
{
    int32_t order[8];
    int64_t least = INT64_MAX, permutations = 1;
    for (int32_t i = 2; i <= count; i++) permutations *= i;
    for (int64_t p = 0; p < permutations; p++) {
        int64_t offset[8], height = 0, code = p;
        for (int32_t i = 0; i < count; i++) order[i] = i;
        for (int32_t i = 0; i < count; i++) {
            const int32_t j = i + (int32_t)(code % (count - i)), swap = order[i];
            code /= count - i;
            order[i] = order[j];
            order[j] = swap;
        }
        for (int32_t i = 0; i < count; i++) {
            const hr_storage *one = &storages[order[i]];
            offset[i] = 0;
            for (int32_t j = 0; j < i; j++) {
                const hr_storage *two = &storages[order[j]];
                if (two->step_first > one->step_last || one->step_first > two->step_last) continue;
                if (offset[j] + two->bytes > offset[i]) offset[i] = offset[j] + two->bytes;
            }
            if (offset[i] + one->bytes > height) height = offset[i] + one->bytes;
        }
        if (height < least) least = height;
    }
    return least;
}

#endif
