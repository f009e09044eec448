/* SPDX-License-Identifier: Apache-2.0 */
/* sampling_test.c - selects the time samples that belong together. All speeds here are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "calibrate/sampling.h"
#include "ops/list.h"

/* An idle core; a core shared with a user of its matrix unit; a memory-bound neighbor. */
static const hr_speed quick = { .ns = { 5000, 1900, 1500 } };
static const hr_speed slow = { .ns = { 11500, 2100, 2000 } };
static const hr_speed slow_updates = { .ns = { 5100, 3800, 1550 } };

static void add_sample(hr_time_samples *samples, int32_t recipe, hr_speed before, hr_speed after)
{
    samples->of[samples->count++] = (hr_time_sample){ .recipe = recipe,
                                                      .before = before,
                                                      .after = after };
}

static void speeds_differ_when_one_class_differs(void **state)
{
    (void)state;
    hr_speed near = quick;
    for (int32_t i = 0; i < HR_SPEED_PARTS; i++) {
        hr_speed far = quick;
        near.ns[i] *= 1.09;
        far.ns[i] /= 1.11;
        assert_true(hr_speed_is_near(&near, &quick) && hr_speed_is_near(&quick, &near));
        assert_false(hr_speed_is_near(&far, &quick) || hr_speed_is_near(&quick, &far));
    }
    /* The sum over all classes differs by less than a tenth. */
    const hr_speed products = { .ns = { 5600, 1900, 1500 } };
    assert_false(hr_speed_is_near(&products, &quick));
    assert_true(fabs(hr_speed_ratio(&slow, &quick) - 5000.0 / 11500) < 1e-12);
    assert_true(fabs(hr_speed_ratio(&quick, &slow) - 11500.0 / 5000) < 1e-12);
    const hr_speed both = hr_speed_slower(&slow, &slow_updates);
    assert_true(both.ns[HR_SPEED_PRODUCTS] == 11500 && both.ns[HR_SPEED_UPDATES] == 3800 &&
                both.ns[HR_SPEED_OTHERS] == 2000);
}

static void every_operation_has_a_speed_class(void **state)
{
    (void)state;
    assert_int_equal(hr_speed_part(HR_OP_linear_dw), HR_SPEED_PRODUCTS);
    assert_int_equal(hr_speed_part(HR_OP_adamw), HR_SPEED_UPDATES);
    assert_int_equal(hr_speed_part(HR_OP_sgd), HR_SPEED_UPDATES);
    assert_int_equal(hr_speed_part(HR_OP_merge), HR_SPEED_UPDATES);
    assert_int_equal(hr_speed_part(HR_OP_average), HR_SPEED_UPDATES);
    assert_int_equal(hr_speed_part(HR_OP_sumsq), HR_SPEED_UPDATES);
    assert_int_equal(hr_speed_part(HR_OP_recurrence), HR_SPEED_OTHERS);
    assert_int_equal(hr_speed_part(HR_OP_norm), HR_SPEED_OTHERS);
}

static void each_recipe_is_sampled_once_then_the_least_sampled_first(void **state)
{
    (void)state;
    static hr_time_samples v = { .recipes = 3 };
    for (int32_t r = 0; r < 3; r++) {
        assert_int_equal(hr_time_samples_next(&v, &quick), r);
        add_sample(&v, r, r == 1 ? slow : quick, quick);
    }
    assert_int_equal(hr_time_samples_next(&v, &quick), 1);
    assert_int_equal(hr_time_samples_next(&v, &slow), 0);
    add_sample(&v, 0, slow, slow);
    assert_int_equal(hr_time_samples_next(&v, &slow), 2);
}

/* A machine with a fixed time to open a recipe and for each of its steps. */
typedef struct {
    hr_time_samples samples;
    double now, open_seconds, step_seconds[HR_RECIPES_MAX];
    int32_t fails_at; /* the number of the run that fails, counted from 1 */
    int32_t run_count[HR_RECIPES_MAX], runs;
} fake_machine;

static double fake_clock(void *context)
{
    return ((fake_machine *)context)->now;
}

/* Behaves as calibrate.c: at least one step, then more until the soft limit. */
static hr_status fake_run(void *context, int32_t recipe, const hr_sampling_limits *limits,
                          hr_error *err)
{
    (void)err;
    fake_machine *m = context;
    const double begin = m->now;
    assert_true(limits->soft_seconds >= 0 && limits->soft_seconds <= limits->hard_seconds);
    if (++m->runs == m->fails_at) return HR_FAILURE;
    m->run_count[recipe]++;
    m->now += m->open_seconds;
    do m->now += m->step_seconds[recipe];
    while (m->now < begin + limits->soft_seconds);
    add_sample(&m->samples, recipe, quick, quick);
    return HR_OK;
}

static hr_status collect(fake_machine *m, int32_t recipes, double open_seconds, double step)
{
    const hr_sampling_schedule schedule = { 50, fake_clock, fake_run, m };
    hr_error err;
    *m = (fake_machine){ .samples = { .recipes = recipes },
                         .open_seconds = open_seconds,
                         .fails_at = m->fails_at };
    for (int32_t r = 0; r < recipes; r++) m->step_seconds[r] = step * (1 + r % 3);
    return hr_time_samples_collect(&m->samples, &schedule, &quick, &err);
}

/* Sampling ends in time on a slow machine. On a fast one it uses the time, equally for all
 * recipes. */
static void sampling_ends_within_its_time(void **state)
{
    (void)state;
    static fake_machine m;
    assert_int_equal(collect(&m, 26, 0.1, 0.01), HR_OK);
    assert_true(m.now > 45 && m.now <= 50);
    for (int32_t r = 0; r < 26; r++) assert_true(m.run_count[r] >= HR_RUNS_PER_RECIPE - 1);
    for (int32_t times = 1; times < 64; times++) {
        assert_int_equal(collect(&m, 26, 0.02 * times, 0.01 * times), HR_OK);
        if (hr_time_samples_covered(&m.samples) > HR_RECIPES_REQUIRED) assert_true(m.now <= 50);
    }
    /* Time for one run of each recipe. */
    assert_int_equal(collect(&m, 26, 0.5, 0.5), HR_OK);
    assert_int_equal(hr_time_samples_covered(&m.samples), 26);
    /* Recipes at the end are skipped. */
    assert_int_equal(collect(&m, 26, 0.9, 0.9), HR_OK);
    const int32_t covered = hr_time_samples_covered(&m.samples);
    assert_true(covered >= HR_RECIPES_REQUIRED && covered < 26 && covered == m.runs && m.now <= 50);
    for (int32_t r = 0; r < 26; r++) assert_int_equal(m.run_count[r], r < covered);
}

/* Without them, some operations would have no samples. */
static void required_recipes_run_without_time_left(void **state)
{
    (void)state;
    static fake_machine m;
    assert_int_equal(collect(&m, 26, 100, 100), HR_OK);
    assert_int_equal(hr_time_samples_covered(&m.samples), HR_RECIPES_REQUIRED);
    assert_int_equal(m.runs, HR_RECIPES_REQUIRED);
    assert_int_equal(collect(&m, 3, 100, 100), HR_OK);
    assert_int_equal(m.runs, 3);
}

static void sampling_ends_at_the_first_error(void **state)
{
    (void)state;
    static fake_machine m = { .fails_at = 7 };
    assert_int_equal(collect(&m, 26, 0.1, 0.1), HR_FAILURE);
    assert_int_equal(m.runs, 7);
}

static void expect_products(const hr_time_samples *samples, double ns)
{
    assert_true(fabs(hr_time_samples_speed(samples).ns[HR_SPEED_PRODUCTS] / ns - 1) < 1e-12);
}

/* Half of the recipes at the fast speed are enough; one is an outlier. */
static void prices_refer_to_the_fastest_common_speed(void **state)
{
    (void)state;
    static hr_time_samples v = { .recipes = 8 };
    for (int32_t r = 0; r < 8; r++) add_sample(&v, r, slow, slow);
    add_sample(&v, 0, quick, quick);
    expect_products(&v, 11500);
    for (int32_t r = 1; r < 4; r++) add_sample(&v, r, quick, quick);
    expect_products(&v, 5000);
    /* A sample during which the speed changed is not at the fast speed. */
    for (int32_t i = 8; i < v.count; i++) v.of[i].after = slow;
    expect_products(&v, 11500);
    /* The mean of the speeds near each other. */
    v.of[0].before.ns[HR_SPEED_PRODUCTS] = 11500 * 1.05;
    expect_products(&v, exp(log(11500) + log(1.05) / v.count));
}

static void samples_at_the_speed_are_kept_or_else_the_nearest(void **state)
{
    (void)state;
    static hr_time_samples v = { .recipes = 3 };
    add_sample(&v, 0, quick, quick);
    add_sample(&v, 0, quick, slow_updates);
    add_sample(&v, 0, quick, quick);
    add_sample(&v, 1, slow, slow);
    add_sample(&v, 1, slow_updates, slow_updates);
    add_sample(&v, 2, quick, slow);
    hr_time_samples_keep(&v, &quick);
    static const bool kept[] = { true, false, true, false, true, true };
    for (int32_t i = 0; i < v.count; i++) assert_int_equal(v.of[i].kept, kept[i]);
}

/* Each operation is scaled by its class; if the speed changed during the sample, times stay. */
static void times_at_another_speed_are_scaled_to_this_one(void **state)
{
    (void)state;
    const hr_time_sample there = { .before = slow, .after = slow };
    const hr_time_sample here = { .before = quick, .after = quick };
    const hr_time_sample mixed = { .before = slow, .after = quick };
    assert_true(fabs(hr_time_sample_scale(&there, &quick, HR_OP_linear) - 5000.0 / 11500) < 1e-12);
    assert_true(fabs(hr_time_sample_scale(&there, &quick, HR_OP_adamw) - 1900.0 / 2100) < 1e-12);
    assert_true(fabs(hr_time_sample_scale(&there, &quick, HR_OP_loss) - 1500.0 / 2000) < 1e-12);
    assert_true(hr_time_sample_scale(&here, &quick, HR_OP_linear) == 1);
    assert_true(hr_time_sample_scale(&mixed, &quick, HR_OP_linear) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speeds_differ_when_one_class_differs),
        cmocka_unit_test(every_operation_has_a_speed_class),
        cmocka_unit_test(each_recipe_is_sampled_once_then_the_least_sampled_first),
        cmocka_unit_test(sampling_ends_within_its_time),
        cmocka_unit_test(required_recipes_run_without_time_left),
        cmocka_unit_test(sampling_ends_at_the_first_error),
        cmocka_unit_test(prices_refer_to_the_fastest_common_speed),
        cmocka_unit_test(samples_at_the_speed_are_kept_or_else_the_nearest),
        cmocka_unit_test(times_at_another_speed_are_scaled_to_this_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
