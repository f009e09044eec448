/* SPDX-License-Identifier: Apache-2.0 */
/* dev/pool.h - a fixed number of threads that all run the same function, again and again.
 *
 * The stacks lie in the caller's memory, so that the plan has them. Between runs a thread spins a
 * little, because the next phase mostly comes within microseconds, and then sleeps. */
#ifndef HR_DEV_POOL_H
#define HR_DEV_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/threads.h"
#include "dev/thread.h"
#include "headroom/status.h"

enum { HR_POOL_THREADS_MAX = HR_THREADS_MOST };

typedef void hr_pool_fn(void *context, int32_t thread, int32_t threads);

/* A counter that threads wait to see moved. */
typedef struct {
    _Alignas(64) atomic_uint turn;
    atomic_int asleep; /* threads in, or on their way into, a wait on `moved` */
    pthread_cond_t moved;
} hr_pool_gate;

typedef struct {
    struct hr_pool *pool;
    hr_thread handle;
    int32_t thread;
} hr_pool_worker;

/* Fields are the pool's own. */
typedef struct hr_pool {
    int32_t threads; /* the caller included; 0: closed */
    int32_t spins;   /* looks at a gate before sleeping on it */
    bool running, closing;
    hr_pool_fn *fn;
    void *context;
    int64_t *timed_ns; /* null: nobody asks */
    uint8_t *stacks;
    pthread_mutex_t mutex;
    hr_pool_gate start, finish;
    _Alignas(64) atomic_int unfinished;
    hr_pool_worker workers[HR_POOL_THREADS_MAX]; /* [0] is the caller and is not used */
} hr_pool;

/* Bytes of memory a pool of `threads` needs: a stack with its guard page for all but the caller. */
int64_t hr_pool_bytes(int32_t threads);

/* Starts threads - 1 workers and touches all of their stacks. Denormals are flushed on every thread
 * of the pool and on the caller. Signals go to the caller: workers block them.
 *
 *   pool     out; must stay where it is until it is closed
 *   memory   [hr_pool_bytes(threads)] the caller's, readable and writable, until the pool is closed
 *   threads  1 to HR_POOL_THREADS_MAX
 *
 * Align    memory to a page
 * Errors   FAILURE  the system refuses a thread; none is left behind
 * Threads  one thread per pool */
HR_MUST_CHECK hr_status hr_pool_open(hr_pool *pool, void *memory, int64_t bytes, int32_t threads,
                                     hr_error *err);

/* Calls fn(context, thread, threads) once on every thread, the caller being thread 0. Returns when
 * all have returned, and then sees all that they wrote. `fn` must not run the pool again.
 *
 * Cost     about a microsecond while the workers spin, tens of them once they sleep
 * Threads  the one that opened the pool */
void hr_pool_run(hr_pool *pool, hr_pool_fn *fn, void *context);

/* From now on each run adds to ns [threads] the nanoseconds of processor that fn takes of each
 * thread; null: no more. On a shared machine the clock on the wall says who else was there, and
 * what a thread has in all, how long it waited for others: who waits spins.
 *
 * Cost     a system call before and one after fn
 * Threads  the one that opened the pool; ns is read between runs */
void hr_pool_time(hr_pool *pool, int64_t *ns);

/* Ends the workers and leaves the memory as it was given. A closed or zeroed pool is accepted. */
void hr_pool_close(hr_pool *pool);

#endif
