/* SPDX-License-Identifier: Apache-2.0 */
/* requests_test.c - what signals and the time limit ask of a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "run/requests.h"

static void a_request_is_taken_once(void **state)
{
    volatile sig_atomic_t saves = 0, reports = 0;
    const hr_train_options options = { .size = sizeof options,
                                       .saves = &saves,
                                       .reports = &reports };
    hr_requests requests = { .options = &options, .begun_ns = hr_clock_ns() };
    (void)state;
    assert_false(hr_requests_save(&requests));
    saves++;
    assert_false(hr_requests_report(&requests));
    assert_true(hr_requests_save(&requests));
    assert_false(hr_requests_save(&requests));
    saves += 2; /* two signals between two steps ask for one checkpoint */
    reports++;
    assert_true(hr_requests_save(&requests));
    assert_true(hr_requests_report(&requests));
    assert_false(hr_requests_save(&requests));
    assert_false(hr_requests_report(&requests));
}

static void a_run_without_counts_is_asked_for_nothing(void **state)
{
    const hr_train_options options = { .size = sizeof options, .fresh = false };
    hr_requests requests = { .options = &options };
    (void)state;
    assert_false(hr_requests_stop(&requests));
    assert_false(hr_requests_save(&requests));
    assert_false(hr_requests_report(&requests));
}

static void a_signal_or_the_time_limit_stops_the_run(void **state)
{
    volatile sig_atomic_t interrupts = 0;
    const hr_train_options options = { .size = sizeof options, .interrupts = &interrupts };
    const int64_t now = hr_clock_ns(), second = 1000000000;
    hr_requests requests = { .options = &options, .begun_ns = now - 20 * second };
    (void)state;
    assert_false(hr_requests_stop(&requests));
    requests.most_seconds = 20;
    assert_true(hr_requests_stop(&requests));
    requests.most_seconds = 86400;
    assert_false(hr_requests_stop(&requests));
    interrupts = 1;
    assert_true(hr_requests_stop(&requests));
    assert_true(hr_requests_stop(&requests));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_taken_once),
        cmocka_unit_test(a_run_without_counts_is_asked_for_nothing),
        cmocka_unit_test(a_signal_or_the_time_limit_stops_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
