/* SPDX-License-Identifier: Apache-2.0 */
/* ticket_lock_test.c - threads get the lock in the order of their tickets, and see the writes of
 * earlier holders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "dev/pool.h"
#include "dev/ticket_lock.h"

enum { THREADS = 4, ROUNDS = 2000 };

typedef struct {
    hr_ticket_lock turns;
    int64_t told[THREADS * ROUNDS], count; /* protected only by the ticket lock */
} listed;

/* The last thread has the first ticket. */
static void wait_backwards(void *context, int32_t thread, int32_t threads)
{
    listed *l = context;
    for (int64_t round = 0; round < ROUNDS; round++) {
        const int64_t number = round * threads + threads - 1 - thread;
        hr_ticket_lock_wait(&l->turns, number);
        l->told[l->count++] = number;
        hr_ticket_lock_pass(&l->turns);
    }
}

static void take_any(void *context, int32_t thread, int32_t threads)
{
    listed *l = context;
    (void)thread, (void)threads;
    for (int64_t round = 0; round < ROUNDS; round++) {
        const int64_t number = hr_ticket_lock_take(&l->turns);
        l->told[l->count++] = number;
        hr_ticket_lock_pass(&l->turns);
    }
}

static void run_threads(hr_pool_fn *fn)
{
    static hr_pool pool;
    static listed l;
    hr_error err;
    const int64_t bytes = hr_pool_bytes(THREADS);
    void *stacks = mmap(0, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                        0);
    assert_true(stacks != MAP_FAILED);
    assert_int_equal(hr_pool_open(&pool, stacks, bytes, THREADS, &err), HR_OK);
    l.count = 0;
    hr_ticket_lock_open(&l.turns);
    hr_pool_run(&pool, fn, &l);
    hr_ticket_lock_close(&l.turns);
    hr_pool_close(&pool);
    munmap(stacks, (size_t)bytes);
    assert_int_equal(l.count, THREADS * ROUNDS);
    for (int64_t i = 0; i < l.count; i++) assert_int_equal(l.told[i], i);
}

static void waiting_threads_get_the_lock_in_ticket_order(void **state)
{
    (void)state;
    run_threads(wait_backwards);
}

static void every_thread_takes_a_different_ticket(void **state)
{
    (void)state;
    run_threads(take_any);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_threads_get_the_lock_in_ticket_order),
        cmocka_unit_test(every_thread_takes_a_different_ticket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
