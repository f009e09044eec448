/* SPDX-License-Identifier: Apache-2.0 */
/* io_thread_test.c - the I/O thread runs each function once, in order, and both sides see each
 * other's writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "dev/io_thread.h"

enum { TURNS = 200 };

typedef struct {
    int64_t given[TURNS], made[TURNS];
    int32_t done;
    pthread_t thread;
    atomic_bool held;         /* the function runs until this is false, */
    hr_io_thread *to_closing; /* and until this thread is being closed; null: it does not wait */
} work;

static bool is_closing(hr_io_thread *io_thread)
{
    pthread_mutex_lock(&io_thread->mutex);
    const bool closing = io_thread->closing;
    pthread_mutex_unlock(&io_thread->mutex);
    return closing;
}

static void make(void *context)
{
    work *w = context;
    while (w->held || (w->to_closing && !is_closing(w->to_closing))) sched_yield();
    w->thread = pthread_self();
    w->made[w->done] = 3 * w->given[w->done];
    w->done++;
}

static void *take_stack(void)
{
    void *stack = mmap(0, HR_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                       0);
    assert_true(stack != MAP_FAILED);
    return stack;
}

static void each_function_runs_once(void **state)
{
    (void)state;
    hr_io_thread io_thread;
    hr_error err;
    work w = { .done = 0 };
    void *stack = take_stack();
    assert_int_equal(hr_io_thread_open(&io_thread, stack, &err), HR_OK);
    assert_false(hr_io_thread_is_busy(&io_thread));
    for (int32_t i = 0; i < TURNS; i++) {
        w.given[i] = 7 * i + 1;
        hr_io_thread_run(&io_thread, make, &w);
        if (i % 3 == 0) hr_io_thread_wait(&io_thread);
        if (i % 3 == 1)
            while (hr_io_thread_is_busy(&io_thread)) continue;
        if (i % 3 < 2) assert_int_equal(w.made[i], 3 * (7 * i + 1));
    }
    hr_io_thread_wait(&io_thread);
    assert_int_equal(w.done, TURNS);
    assert_false(pthread_equal(w.thread, pthread_self()));
    for (int32_t i = 0; i < TURNS; i++) assert_int_equal(w.made[i], 3 * (7 * i + 1));
    hr_io_thread_close(&io_thread);
    hr_io_thread_close(&io_thread);                   /* already closed */
    assert_int_equal(((volatile char *)stack)[0], 0); /* restored: readable from its start */
    munmap(stack, HR_STACK_BYTES);
}

static void closing_waits_for_the_running_function(void **state)
{
    (void)state;
    hr_io_thread io_thread;
    hr_error err;
    work w = { .given = { 5 }, .to_closing = &io_thread };
    void *stack = take_stack();
    assert_int_equal(hr_io_thread_open(&io_thread, stack, &err), HR_OK);
    hr_io_thread_run(&io_thread, make, &w);
    assert_true(hr_io_thread_is_busy(&io_thread));
    hr_io_thread_close(&io_thread);
    assert_int_equal(w.made[0], 15);
    munmap(stack, HR_STACK_BYTES);
}

static void waiting_ends_with_the_work_or_at_the_deadline(void **state)
{
    (void)state;
    hr_io_thread io_thread;
    hr_error err;
    work w = { .given = { 5, 6 }, .held = true };
    void *stack = take_stack();
    assert_int_equal(hr_io_thread_open(&io_thread, stack, &err), HR_OK);
    hr_io_thread_run(&io_thread, make, &w);
    hr_io_thread_wait_until(&io_thread, hr_clock_ns() + 1000000);
    assert_true(hr_io_thread_is_busy(&io_thread));
    const int64_t late = hr_clock_ns() + 600000000000;
    w.held = false;
    hr_io_thread_wait_until(&io_thread, late);
    assert_false(hr_io_thread_is_busy(&io_thread));
    assert_true(hr_clock_ns() < late);
    assert_int_equal(w.made[0], 15);
    hr_io_thread_wait_until(&io_thread, 0);
    hr_io_thread_close(&io_thread);
    munmap(stack, HR_STACK_BYTES);
}

static void a_zeroed_io_thread_is_idle(void **state)
{
    (void)state;
    hr_io_thread io_thread = { 0 };
    assert_false(hr_io_thread_is_busy(&io_thread));
    hr_io_thread_wait(&io_thread);
    hr_io_thread_wait_until(&io_thread, hr_clock_ns() + 600000000000);
    hr_io_thread_close(&io_thread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_function_runs_once),
        cmocka_unit_test(closing_waits_for_the_running_function),
        cmocka_unit_test(waiting_ends_with_the_work_or_at_the_deadline),
        cmocka_unit_test(a_zeroed_io_thread_is_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
