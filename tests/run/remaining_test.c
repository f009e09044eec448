/* SPDX-License-Identifier: Apache-2.0 */
/* remaining_test.c - the remaining time of a run, including the work between its steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "run/remaining.h"

static const int64_t none = HR_EVERY_NONE;

static double left(int64_t step, int64_t steps, int64_t evaluation, int64_t sample, int64_t save,
                   const hr_run_times *times)
{
    const hr_remaining remaining = { .step = step,
                                     .steps = steps,
                                     .every = { 0, evaluation, sample, save },
                                     .in_steps = { 0, 50, 20, 0 },
                                     .in_seconds = { [HR_WORK_SAVE] = 3 },
                                     .end_seconds = 7 };
    return hr_remaining_seconds(&remaining, times);
}

static void the_time_left_includes_work_after_the_last_step(void **state)
{
    (void)state;
    hr_run_times times = { { 0 }, { 0 } };
    assert_true(left(0, 100, none, none, none, &times) < 0);
    for (int32_t i = 0; i < 10; i++) hr_run_times_add(&times, HR_WORK_STEP, 0.5);
    assert_true(left(10, 100, none, none, none, &times) == 45);
    assert_true(left(100, 100, none, none, none, &times) == 0);
    /* Not measured yet: an evaluation takes as long as 50 steps, a sample as 20, a checkpoint 3
     * seconds. */
    assert_true(left(100, 100, 0, none, none, &times) == 25);
    assert_true(left(100, 100, 0, 0, 0, &times) == 25 + 10 + 3 + 7);
    hr_run_times_add(&times, HR_WORK_EVALUATION, 60);
    hr_run_times_add(&times, HR_WORK_EVALUATION, 20);
    assert_true(left(100, 100, 0, none, none, &times) == 40);
}

static void work_between_steps_counts_each_time_it_is_due(void **state)
{
    (void)state;
    hr_run_times times = { { 0 }, { 0 } };
    hr_run_times_add(&times, HR_WORK_STEP, 1);
    hr_run_times_add(&times, HR_WORK_EVALUATION, 1000);
    /* After steps 40, 60, 80, 100 and 105; that of the current step is still due. */
    assert_true(left(40, 105, 20, none, none, &times) == 65 + 5 * 1000);
    assert_true(left(41, 105, 20, none, none, &times) == 64 + 4 * 1000);
    assert_true(left(100, 100, 20, none, none, &times) == 1000);
    assert_true(left(1, 3, 1, none, none, &times) == 2 + 3 * 1000);
    /* A run whose number of steps was reduced below the completed ones has no work left. */
    assert_true(left(9, 9, none, none, none, &times) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_left_includes_work_after_the_last_step),
        cmocka_unit_test(work_between_steps_counts_each_time_it_is_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
