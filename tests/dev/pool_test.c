/* SPDX-License-Identifier: Apache-2.0 */
/* pool_test.c - fork and join: every part runs once, and all writes are visible afterwards. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "base/random.h"
#include "dev/pool.h"
#include "mem/process.h"
#include "require.h"

enum { THREADS_MOST = 8, ELEMENTS = 1000 };

static hr_pool pool;
static uint8_t *stacks;
static atomic_int arrived;

static void open_pool(int32_t threads)
{
    hr_error err;
    arrived = 0;
    stacks = mmap(0, (size_t)hr_pool_bytes(THREADS_MOST), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(stacks != MAP_FAILED);
    assert_int_equal(hr_pool_open(&pool, stacks, hr_pool_bytes(threads), threads, &err), HR_OK);
}

static void close_pool(void)
{
    hr_pool_close(&pool);
    munmap(stacks, (size_t)hr_pool_bytes(THREADS_MOST));
}

typedef struct {
    int64_t from[ELEMENTS], to[ELEMENTS];
} job;

/* Reads what another thread wrote in the previous run: missing ordering appears as a data race. */
static void shift(void *context, int32_t thread, int32_t threads)
{
    job *j = context;
    for (int64_t i = thread; i < ELEMENTS; i += threads) j->to[i] = j->from[(i + 1) % ELEMENTS] + 1;
}

static void unshift(void *context, int32_t thread, int32_t threads)
{
    job *j = context;
    for (int64_t i = ELEMENTS * thread / threads; i < ELEMENTS * (thread + 1) / threads; i++)
        j->from[i] = j->to[i];
}

static void runs_do_not_overlap_on_any_number_of_threads(void **state)
{
    (void)state;
    static job j;
    for (int32_t threads = 1; threads <= THREADS_MOST; threads++) {
        const int64_t rounds = 200 * HR_COUNT;
        memset(&j, 0, sizeof j);
        open_pool(threads);
        for (int64_t round = 0; round < rounds; round++) {
            hr_pool_run(&pool, shift, &j);
            hr_pool_run(&pool, unshift, &j);
        }
        close_pool();
        for (int64_t i = 0; i < ELEMENTS; i++) assert_int_equal(j.from[i], rounds);
    }
}

/* Uneven work, so that sometimes the caller and sometimes a worker sleeps. */
static void uneven(void *context, int32_t thread, int32_t threads)
{
    int64_t *runs = context;
    const int64_t turn = runs[thread]++;
    const uint32_t burden = (uint32_t)(hr_random_mix((uint64_t)(8 * turn + thread)) % 64);
    for (volatile uint32_t i = 0; i < (burden ? burden : 20000u);) i++;
    (void)threads;
}

static void sleepers_are_woken_on_both_sides(void **state)
{
    (void)state;
    cpu_set_t all, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof all, &all);
    for (int core = 0; core < CPU_SETSIZE && !CPU_COUNT(&one); core++)
        if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one); /* four threads on one core barely spin */
    open_pool(4);
    int64_t runs[4] = { 0 };
    for (int64_t turn = 0; turn < 2000 * HR_COUNT; turn++) hr_pool_run(&pool, uneven, runs);
    close_pool();
    sched_setaffinity(0, sizeof all, &all);
    for (int i = 0; i < 4; i++) assert_int_equal(runs[i], 2000 * HR_COUNT);
}

/* Keeps the caller from doing the parts of others: returns when every thread has begun its own. */
static void meet(int32_t threads)
{
    const int here = atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < here - here % threads + threads) sched_yield();
}

typedef struct {
    int64_t runs[4];
    pthread_t by[4];
} visits;

static void visit(void *context, int32_t thread, int32_t threads)
{
    (void)threads;
    visits *v = context;
    v->runs[thread]++;
    v->by[thread] = pthread_self();
}

/* Workers that sleep take longer to wake up than an empty part takes. */
static void the_caller_does_the_parts_of_those_that_are_late(void **state)
{
    (void)state;
    int64_t late = 0;
    visits v = { 0 };
    open_pool(4);
    for (int run = 0; run < 100; run++) {
        usleep(1000);
        hr_pool_run(&pool, visit, &v);
        for (int i = 0; i < 4; i++) assert_int_equal(v.runs[i], run + 1);
        assert_true(pthread_equal(v.by[0], pthread_self()));
        for (int i = 1; i < 4; i++) late += pthread_equal(v.by[i], pthread_self());
    }
    close_pool();
    assert_true(late > 0);
}

static void note_stack(void *context, int32_t thread, int32_t threads)
{
    void **places = context;
    meet(threads);
    places[thread] = __builtin_frame_address(0);
}

static void stacks_are_in_the_given_memory(void **state)
{
    (void)state;
    void *places[3] = { 0 };
    open_pool(3);
    hr_pool_run(&pool, note_stack, places);
    for (int i = 1; i < 3; i++) {
        const uint8_t *slot = stacks + (i - 1) * (int64_t)HR_STACK_BYTES;
        assert_true((uint8_t *)places[i] > slot + hr_page_bytes());
        assert_true((uint8_t *)places[i] < slot + HR_STACK_BYTES);
    }
    close_pool();
}

static void every_page_of_the_stacks_is_resident(void **state)
{
    (void)state;
    enum { PAGES = 3 * HR_STACK_BYTES / 4096 };
    static unsigned char resident[PAGES];
    if (hr_page_bytes() != 4096) hr_test_skip("page-4096", "a page has another size here");
    open_pool(4);
    assert_int_equal(mincore(stacks, (size_t)hr_pool_bytes(4), resident), 0);
    for (int i = 0; i < PAGES; i++) assert_int_equal(resident[i] & 1, 1);
    close_pool();
}

static void note_control(void *context, int32_t thread, int32_t threads)
{
    unsigned *controls = context;
    meet(threads);
    controls[thread] = _mm_getcsr();
}

static void denormals_are_flushed_on_every_thread(void **state)
{
    (void)state;
    unsigned controls[4] = { 0 };
    _mm_setcsr(_mm_getcsr() & ~0x8040u);
    open_pool(4);
    hr_pool_run(&pool, note_control, controls);
    close_pool();
    for (int i = 0; i < 4; i++) assert_int_equal(controls[i] & 0x8040, 0x8040);
}

static void note_mask(void *context, int32_t thread, int32_t threads)
{
    sigset_t mask;
    meet(threads);
    pthread_sigmask(SIG_SETMASK, 0, &mask);
    ((int *)context)[thread] = sigismember(&mask, SIGINT);
}

static void signals_are_delivered_to_the_caller(void **state)
{
    (void)state;
    int blocked[2] = { -1, -1 };
    open_pool(2);
    hr_pool_run(&pool, note_mask, blocked);
    close_pool();
    assert_int_equal(blocked[0], 0);
    assert_int_equal(blocked[1], 1);
}

static void run_again(void *context, int32_t thread, int32_t threads)
{
    (void)threads;
    if (thread == *(int32_t *)context) hr_pool_run(&pool, note_stack, context);
}

/* The status of a child process that runs the pool from inside the pool, on that thread. */
static int nested_status(int32_t thread)
{
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        close(2);
        open_pool(2);
        hr_pool_run(&pool, run_again, &thread);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

static void a_run_inside_a_run_is_a_programmer_error(void **state)
{
    (void)state;
    for (int32_t thread = 0; thread < 2; thread++) {
        const int status = nested_status(thread);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

/* A second close has no effect, even when the stacks are unmapped; and the pool can be reopened. */
static void a_closed_pool_can_be_closed_again(void **state)
{
    (void)state;
    static hr_pool closed;
    void *places[3] = { 0 };
    open_pool(2);
    assert_int_equal(pool.threads, 2);
    close_pool();
    assert_int_equal(pool.threads, 0);
    memcpy(&closed, &pool, sizeof closed);
    hr_pool_close(&pool);
    assert_memory_equal(&pool, &closed, sizeof closed);
    hr_pool_close(0);
    open_pool(3);
    hr_pool_run(&pool, note_stack, places);
    for (int i = 0; i < 3; i++) assert_non_null(places[i]);
    close_pool();
}

static void pool_bytes_are_the_stacks_of_the_workers(void **state)
{
    (void)state;
    assert_int_equal(hr_pool_bytes(1), 0);
    assert_int_equal(hr_pool_bytes(2), HR_STACK_BYTES);
    assert_int_equal(hr_pool_bytes(HR_POOL_THREADS_MAX),
                     (HR_POOL_THREADS_MAX - 1) * (int64_t)HR_STACK_BYTES);
}

/* Each thread has much more work than the previous one, so that noise of a busy machine is small
 * compared with the difference. */
static void work_a_while(void *context, int32_t thread, int32_t threads)
{
    (void)context, (void)threads;
    volatile uint32_t sum = 0;
    for (uint32_t i = 0; i < 200000u * (1 + 40 * (uint32_t)thread); i++) sum += i;
}

/* Waiting for the slowest thread is not counted. */
static void time_waiting_for_other_threads_is_not_counted(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    int64_t ns[THREADS] = { 0 }, then[THREADS];
    open_pool(THREADS);
    hr_pool_time(&pool, CLOCK_THREAD_CPUTIME_ID, ns);
    for (int32_t i = 0; i < 5; i++) hr_pool_run(&pool, work_a_while, 0);
    hr_pool_time(&pool, CLOCK_THREAD_CPUTIME_ID, NULL);
    for (int32_t t = 0; t < THREADS; t++) {
        assert_true(ns[t] > 0);
        then[t] = ns[t];
    }
    assert_true(ns[THREADS - 1] > 2 * ns[0]);
    hr_pool_run(&pool, work_a_while, 0);
    assert_memory_equal(ns, then, sizeof ns);
    close_pool();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_do_not_overlap_on_any_number_of_threads),
        cmocka_unit_test(sleepers_are_woken_on_both_sides),
        cmocka_unit_test(the_caller_does_the_parts_of_those_that_are_late),
        cmocka_unit_test(stacks_are_in_the_given_memory),
        cmocka_unit_test(every_page_of_the_stacks_is_resident),
        cmocka_unit_test(denormals_are_flushed_on_every_thread),
        cmocka_unit_test(signals_are_delivered_to_the_caller),
        cmocka_unit_test(a_run_inside_a_run_is_a_programmer_error),
        cmocka_unit_test(a_closed_pool_can_be_closed_again),
        cmocka_unit_test(time_waiting_for_other_threads_is_not_counted),
        cmocka_unit_test(pool_bytes_are_the_stacks_of_the_workers),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
