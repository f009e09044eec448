/* SPDX-License-Identifier: Apache-2.0 */
/* visits_test.c - of times that were taken at several paces those are kept that hold together. All
 * paces here are invented. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "calibrate/sampling.h"
#include "ops/list.h"

/* Alone; who shares the core uses its matrix unit, or only its vectors; memory alone is slow. */
static const hr_speed quick = { .ns = { 5000, 1900, 1500 } };
static const hr_speed slow = { .ns = { 11500, 2100, 2000 } };
static const hr_speed thirsty = { .ns = { 5100, 3800, 1550 } };

static void see(hr_time_samples *samples, int32_t recipe, hr_speed before, hr_speed after)
{
    samples->of[samples->count++] = (hr_time_sample){ .recipe = recipe,
                                                      .before = before,
                                                      .after = after };
}

static void a_part_that_moves_alone_is_another_pace(void **state)
{
    (void)state;
    hr_speed near = quick;
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++) {
        hr_speed far = quick;
        near.ns[i] *= 1.09;
        far.ns[i] /= 1.11;
        assert_true(hr_speed_like(&near, &quick) && hr_speed_like(&quick, &near));
        assert_false(hr_speed_like(&far, &quick) || hr_speed_like(&quick, &far));
    }
    /* Together the parts are within a tenth here. */
    const hr_speed products = { .ns = { 5600, 1900, 1500 } };
    assert_false(hr_speed_like(&products, &quick));
    assert_true(fabs(hr_speed_ratio(&slow, &quick) - 5000.0 / 11500) < 1e-12);
    assert_true(fabs(hr_speed_ratio(&quick, &slow) - 11500.0 / 5000) < 1e-12);
    const hr_speed both = hr_speed_slower(&slow, &thirsty);
    assert_true(both.ns[HR_SPEED_PRODUCTS] == 11500 && both.ns[HR_SPEED_UPDATES] == 3800 &&
                both.ns[HR_SPEED_PASSES] == 2000);
}

static void every_operation_moves_with_a_part(void **state)
{
    (void)state;
    assert_int_equal(hr_speed_part(HR_OP_linear_dw), HR_SPEED_PRODUCTS);
    assert_int_equal(hr_speed_part(HR_OP_adamw), HR_SPEED_UPDATES);
    assert_int_equal(hr_speed_part(HR_OP_norm), HR_SPEED_PASSES);
}

static void all_are_visited_once_and_then_who_was_seen_least(void **state)
{
    (void)state;
    static hr_time_samples v = { .recipes = 3 };
    for (int32_t r = 0; r < 3; r++) {
        assert_int_equal(hr_time_samples_next(&v, &quick), r);
        see(&v, r, r == 1 ? slow : quick, quick);
    }
    assert_int_equal(hr_time_samples_next(&v, &quick), 1);
    assert_int_equal(hr_time_samples_next(&v, &slow), 0);
    see(&v, 0, slow, slow);
    assert_int_equal(hr_time_samples_next(&v, &slow), 2);
}

/* A machine on which opening a recipe takes a while, and each of its steps. */
typedef struct {
    hr_time_samples samples;
    double now, open, steps[HR_RECIPES_LEARNED_MOST];
    int32_t fails_at; /* this opening, counted from 1 */
    int32_t opened[HR_RECIPES_LEARNED_MOST], openings;
} invented;

static double invented_clock(void *context)
{
    return ((invented *)context)->now;
}

/* As calibrate.c does: a step at least, then until there was enough. */
static hr_status invented_open(void *context, int32_t recipe, const hr_time_samples_turn *turn,
                               hr_error *err)
{
    (void)err;
    invented *m = context;
    const double begin = m->now;
    assert_true(turn->enough >= 0 && turn->enough <= turn->most);
    if (++m->openings == m->fails_at) return HR_FAILURE;
    m->opened[recipe]++;
    m->now += m->open;
    do m->now += m->steps[recipe];
    while (m->now < begin + turn->enough);
    see(&m->samples, recipe, quick, quick);
    return HR_OK;
}

static hr_status tour(invented *m, int32_t recipes, double open, double step)
{
    const hr_time_samples_tour plan = { 50, invented_clock, invented_open, m };
    hr_error err;
    *m = (invented){ .samples = { .recipes = recipes }, .open = open, .fails_at = m->fails_at };
    for (int32_t r = 0; r < recipes; r++) m->steps[r] = step * (1 + r % 3);
    return hr_time_samples_make(&m->samples, &plan, &quick, &err);
}

/* However slow the machine, it ends; where it is quick, the time is used, by all alike. */
static void a_tour_ends_in_time(void **state)
{
    (void)state;
    static invented m;
    assert_int_equal(tour(&m, 26, 0.1, 0.01), HR_OK);
    assert_true(m.now > 45 && m.now <= 50);
    for (int32_t r = 0; r < 26; r++) assert_true(m.opened[r] >= HR_TIME_SAMPLES_OPENINGS - 1);
    for (int32_t times = 1; times < 64; times++) {
        assert_int_equal(tour(&m, 26, 0.02 * times, 0.01 * times), HR_OK);
        if (hr_time_samples_seen(&m.samples) > HR_RECIPES_FIRST) assert_true(m.now <= 50);
    }
    /* One pass, but no more. */
    assert_int_equal(tour(&m, 26, 0.5, 0.5), HR_OK);
    assert_int_equal(hr_time_samples_seen(&m.samples), 26);
    /* Those at the end are left out. */
    assert_int_equal(tour(&m, 26, 1, 1), HR_OK);
    const int32_t seen = hr_time_samples_seen(&m.samples);
    assert_true(seen >= HR_RECIPES_FIRST && seen < 26 && seen == m.openings && m.now <= 50);
    for (int32_t r = 0; r < 26; r++) assert_int_equal(m.opened[r], r < seen);
}

/* Without them some operations had no time at all. */
static void the_first_recipes_are_run_in_any_case(void **state)
{
    (void)state;
    static invented m;
    assert_int_equal(tour(&m, 26, 100, 100), HR_OK);
    assert_int_equal(hr_time_samples_seen(&m.samples), HR_RECIPES_FIRST);
    assert_int_equal(m.openings, HR_RECIPES_FIRST);
    assert_int_equal(tour(&m, 3, 100, 100), HR_OK);
    assert_int_equal(m.openings, 3);
}

static void what_fails_ends_the_tour(void **state)
{
    (void)state;
    static invented m = { .fails_at = 7 };
    assert_int_equal(tour(&m, 26, 0.1, 0.1), HR_FAILURE);
    assert_int_equal(m.openings, 7);
}

static void expect_products(const hr_time_samples *samples, double ns)
{
    assert_true(fabs(hr_time_samples_speed(samples).ns[HR_SPEED_PRODUCTS] / ns - 1) < 1e-12);
}

/* Half of the recipes seen while the machine was quick are enough; one is luck. */
static void prices_are_of_the_fastest_pace_that_many_were_seen_at(void **state)
{
    (void)state;
    static hr_time_samples v = { .recipes = 8 };
    for (int32_t r = 0; r < 8; r++) see(&v, r, slow, slow);
    see(&v, 0, quick, quick);
    expect_products(&v, 11500);
    for (int32_t r = 1; r < 4; r++) see(&v, r, quick, quick);
    expect_products(&v, 5000);
    /* A visit in which it changed is not of the quick ones. */
    for (int32_t i = 8; i < v.count; i++) v.of[i].after = slow;
    expect_products(&v, 11500);
    /* Of moments that are alike, their middle. */
    v.of[0].before.ns[HR_SPEED_PRODUCTS] = 11500 * 1.05;
    expect_products(&v, exp(log(11500) + log(1.05) / v.count));
}

static void visits_at_the_pace_are_kept_and_else_the_nearest(void **state)
{
    (void)state;
    static hr_time_samples v = { .recipes = 3 };
    see(&v, 0, quick, quick);
    see(&v, 0, quick, thirsty);
    see(&v, 0, quick, quick);
    see(&v, 1, slow, slow);
    see(&v, 1, thirsty, thirsty);
    see(&v, 2, quick, slow);
    hr_time_samples_keep(&v, &quick);
    static const bool kept[] = { true, false, true, false, true, true };
    for (int32_t i = 0; i < v.count; i++) assert_int_equal(v.of[i].kept, kept[i]);
}

/* Each operation by the part it moves with; where the machine changed, low times stay. */
static void times_at_another_pace_are_brought_to_this_one(void **state)
{
    (void)state;
    const hr_time_sample there = { .before = slow, .after = slow };
    const hr_time_sample here = { .before = quick, .after = quick };
    const hr_time_sample mixed = { .before = slow, .after = quick };
    assert_true(fabs(hr_time_samples_scale(&there, &quick, HR_OP_linear) - 5000.0 / 11500) < 1e-12);
    assert_true(fabs(hr_time_samples_scale(&there, &quick, HR_OP_adamw) - 1900.0 / 2100) < 1e-12);
    assert_true(fabs(hr_time_samples_scale(&there, &quick, HR_OP_loss) - 1500.0 / 2000) < 1e-12);
    assert_true(hr_time_samples_scale(&here, &quick, HR_OP_linear) == 1);
    assert_true(hr_time_samples_scale(&mixed, &quick, HR_OP_linear) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_that_moves_alone_is_another_pace),
        cmocka_unit_test(every_operation_moves_with_a_part),
        cmocka_unit_test(all_are_visited_once_and_then_who_was_seen_least),
        cmocka_unit_test(a_tour_ends_in_time),
        cmocka_unit_test(the_first_recipes_are_run_in_any_case),
        cmocka_unit_test(what_fails_ends_the_tour),
        cmocka_unit_test(prices_are_of_the_fastest_pace_that_many_were_seen_at),
        cmocka_unit_test(visits_at_the_pace_are_kept_and_else_the_nearest),
        cmocka_unit_test(times_at_another_pace_are_brought_to_this_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
