/* SPDX-License-Identifier: Apache-2.0 */
/* dev/pool.h - a fixed number of threads that run the same function.
 *
 * The stacks are in the caller's memory, so the plan includes them. Between runs, threads spin for
 * a short time, because the next phase usually starts within microseconds, and then sleep. */
#ifndef HR_DEV_POOL_H
#define HR_DEV_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/threads.h"
#include "dev/thread.h"
#include "headroom/status.h"

enum { HR_POOL_THREADS_MAX = HR_THREADS_MOST };

typedef void hr_pool_fn(void *context, int32_t thread, int32_t threads);

/* A counter that threads wait on. */
typedef struct {
    _Alignas(64) atomic_uint turn;
    atomic_int asleep; /* threads that sleep, or are about to sleep, on `moved` */
    pthread_cond_t moved;
} hr_pool_gate;

typedef struct {
    _Alignas(64) struct hr_pool *pool;
    hr_thread handle;
    int32_t thread;
    atomic_uint claimed; /* the last run in which its part was begun */
} hr_pool_worker;

/* Private fields. */
typedef struct hr_pool {
    int32_t threads; /* including the caller; 0: closed */
    int32_t spins;   /* checks of a gate before sleeping on it */
    bool running;
    atomic_bool closing;
    hr_pool_fn *fn;
    void *context;
    clockid_t timed_by;
    int64_t *timed_ns; /* null: no timing */
    uint8_t *stacks;
    unsigned caller_mode; /* of floating point, before the pool */
    pthread_mutex_t mutex;
    hr_pool_gate start, finish;
    _Alignas(64) atomic_int unfinished;
    hr_pool_worker workers[HR_POOL_THREADS_MAX]; /* [0] is the caller and unused */
} hr_pool;

/* Bytes of memory for a pool of `threads`: a stack with its guard page for every thread except the
 * caller. */
int64_t hr_pool_bytes(int32_t threads);

/* Starts threads - 1 workers and touches all of their stacks. Sets flush-to-zero on every thread of
 * the pool, including the caller. Workers block all signals, so that the caller receives them.
 *
 *   pool     out; must not move while it is open
 *   memory   [hr_pool_bytes(threads)] owned by the caller, readable and writable until the pool is
 *            closed
 *   threads  1 to HR_POOL_THREADS_MAX
 *
 * Align    memory to a page
 * Errors   FAILURE  a thread cannot be created; the started ones are ended
 * Threads  one thread per pool */
HR_MUST_CHECK hr_status hr_pool_open(hr_pool *pool, void *memory, int64_t bytes, int32_t threads,
                                     hr_error *err);

/* Calls fn(context, thread, threads) once for every `thread` from 0 to threads - 1. The caller is
 * thread 0, and also makes the calls of workers that have not come to theirs when it is done:
 * calls must not wait for each other. Returns when all have returned; their writes are then visible
 * to the caller. `fn` must not run the pool.
 *
 * Cost     about a microsecond while the workers spin, tens of microseconds once they sleep
 * Threads  the one that opened the pool */
void hr_pool_run(hr_pool *pool, hr_pool_fn *fn, void *context);

/* From now on, each run adds the time of fn per thread to ns [threads], in nanoseconds of a clock;
 * null: stop timing. On a shared machine, wall time (CLOCK_MONOTONIC) includes other processes, and
 * CPU time (CLOCK_THREAD_CPUTIME_ID) does not; of a whole thread it would include spinning.
 *
 * Cost     one reading of the clock before and one after fn; of CPU time it is a system call
 * Threads  the one that opened the pool; read ns only between runs */
void hr_pool_time(hr_pool *pool, clockid_t clock, int64_t *ns);

/* Ends the workers and restores access to the memory. Accepts a closed or zeroed pool. */
void hr_pool_close(hr_pool *pool);

#endif
