/* SPDX-License-Identifier: Apache-2.0 */
/* dev/pool.c - fork and join with two gates: `start` advances when there is work, `finish` when the
 * last part of it is done.
 *
 * A run has one part for each thread. A worker claims its own part; when the caller has done its
 * part, it claims those of workers that have not begun. So a run only waits for threads that the
 * system took from a core in the middle of a part, and a worker that arrives late finds its part
 * claimed. A claim is the number of the run, and can be made only while that run is unfinished.
 *
 * A gate is a counter. A waiting thread spins on it for a while, announces that it will sleep,
 * checks once more and sleeps. The thread that advances the gate checks for announcements
 * afterwards. Both sequences are sequentially consistent, so one thread always sees the other, and
 * no wake-up is lost. */
#define _GNU_SOURCE
#include "dev/pool.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/cpu.h"
#include "base/threads.h"
#include "mem/process.h"

enum {
    /* One check costs 20 to 45 ns (PAUSE), so a worker stops spinning after 0.2 to 0.4 ms: longer
     * than the gap between two steps, shorter than reading a batch. With fewer cores than threads,
     * a spinning thread delays the thread that it waits for. */
    SPINS = 8192,
    SPINS_CROWDED = 128,
    SPINS_PER_YIELD = 64
};

static void gate_wait(hr_pool *pool, hr_pool_gate *gate, unsigned seen)
{
    for (int32_t i = 1; i <= pool->spins; i++) {
        if (atomic_load_explicit(&gate->turn, memory_order_acquire) != seen) return;
        if (i % SPINS_PER_YIELD) {
            __builtin_ia32_pause();
        } else {
            sched_yield();
        }
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&gate->asleep, 1);
    while (atomic_load(&gate->turn) == seen) pthread_cond_wait(&gate->moved, &pool->mutex);
    atomic_fetch_sub(&gate->asleep, 1);
    pthread_mutex_unlock(&pool->mutex);
}

static void gate_advance(hr_pool *pool, hr_pool_gate *gate)
{
    atomic_fetch_add(&gate->turn, 1);
    if (atomic_load(&gate->asleep) == 0) return;
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_broadcast(&gate->moved);
    pthread_mutex_unlock(&pool->mutex);
}

static int64_t ns_of(clockid_t clock)
{
    struct timespec now = { 0 };
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void call(const hr_pool *pool, hr_pool_fn *fn, void *context, int32_t thread)
{
    if (!pool->timed_ns) {
        fn(context, thread, pool->threads);
        return;
    }
    const int64_t begin_ns = ns_of(pool->timed_by);
    fn(context, thread, pool->threads);
    pool->timed_ns[thread] += ns_of(pool->timed_by) - begin_ns;
}

/* Runs the part of `worker` if nobody has begun it. `turn` may be an earlier run: nothing is left
 * of that, and the fields of the present one are not read. */
static void do_part(hr_pool *pool, hr_pool_worker *worker, unsigned turn)
{
    unsigned last = turn - 1;
    if (atomic_load_explicit(&worker->claimed, memory_order_relaxed) != last) return;
    if (!atomic_compare_exchange_strong(&worker->claimed, &last, turn)) return;
    call(pool, pool->fn, pool->context, worker->thread);
    if (atomic_fetch_sub(&pool->unfinished, 1) == 1) gate_advance(pool, &pool->finish);
}

static void *work(void *argument)
{
    hr_pool_worker *worker = argument;
    hr_pool *pool = worker->pool;
    (void)hr_cpu_flush_denormals();
    for (unsigned turn = 0;;) {
        gate_wait(pool, &pool->start, turn);
        turn = atomic_load(&pool->start.turn);
        if (atomic_load(&pool->closing)) return 0;
        do_part(pool, worker, turn);
    }
}

static int start_worker(hr_pool *pool, int32_t thread)
{
    hr_pool_worker *worker = &pool->workers[thread];
    worker->pool = pool;
    worker->thread = thread;
    return hr_thread_start(&worker->handle, pool->stacks + (thread - 1) * (int64_t)HR_STACK_BYTES,
                           work, worker);
}

int64_t hr_pool_bytes(int32_t threads)
{
    HR_ASSERT(threads >= 1 && threads <= HR_POOL_THREADS_MAX);
    return (threads - 1) * (int64_t)HR_STACK_BYTES;
}

hr_status hr_pool_open(hr_pool *pool, void *memory, int64_t bytes, int32_t threads, hr_error *err)
{
    HR_ASSERT(bytes >= hr_pool_bytes(threads));
    HR_ASSERT((uintptr_t)memory % (uintptr_t)hr_page_bytes() == 0);
    memset(pool, 0, sizeof *pool);
    pool->stacks = memory;
    pool->threads = 1;
    pool->spins = threads <= hr_threads_default() ? SPINS : SPINS_CROWDED;
    pthread_mutex_init(&pool->mutex, 0);
    pthread_cond_init(&pool->start.moved, 0);
    pthread_cond_init(&pool->finish.moved, 0);
    pool->caller_mode = hr_cpu_flush_denormals();

    int refused = 0;
    for (int32_t thread = 1; thread < threads && !refused; thread++) {
        refused = start_worker(pool, thread);
        if (!refused) pool->threads++;
    }
    if (!refused) return HR_OK;
    const int32_t started = pool->threads;
    hr_pool_close(pool);
    return hr_fail(err, HR_FAILURE, "%d threads needed, the system allows %d: use train.threads=%d",
                   threads, started, started);
}

void hr_pool_run(hr_pool *pool, hr_pool_fn *fn, void *context)
{
    HR_ASSERT(pool->threads > 0);
    HR_ASSERT(!pool->running); /* `fn` must not run the pool again */
    pool->running = true;
    if (pool->threads == 1) {
        call(pool, fn, context, 0);
    } else {
        const unsigned turn = atomic_load_explicit(&pool->finish.turn, memory_order_relaxed);
        pool->fn = fn;
        pool->context = context;
        atomic_store_explicit(&pool->unfinished, pool->threads - 1, memory_order_relaxed);
        gate_advance(pool, &pool->start);
        call(pool, fn, context, 0);
        const unsigned run = atomic_load(&pool->start.turn);
        for (int32_t thread = 1; thread < pool->threads; thread++)
            do_part(pool, &pool->workers[thread], run);
        gate_wait(pool, &pool->finish, turn);
    }
    pool->running = false;
}

void hr_pool_time(hr_pool *pool, clockid_t clock, int64_t *ns)
{
    HR_ASSERT(!pool->running);
    pool->timed_by = clock;
    pool->timed_ns = ns;
}

void hr_pool_close(hr_pool *pool)
{
    if (!pool || pool->threads == 0) return;
    HR_ASSERT(!pool->running);
    atomic_store(&pool->closing, true);
    gate_advance(pool, &pool->start);
    for (int32_t thread = 1; thread < pool->threads; thread++)
        hr_thread_join(&pool->workers[thread].handle);
    pthread_cond_destroy(&pool->start.moved);
    pthread_cond_destroy(&pool->finish.moved);
    pthread_mutex_destroy(&pool->mutex);
    hr_cpu_restore_denormals(pool->caller_mode);
    memset(pool, 0, sizeof *pool);
}
