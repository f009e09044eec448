/* SPDX-License-Identifier: Apache-2.0 */
/* dev/aside.c - a mailbox of one function. */
#define _GNU_SOURCE
#include "dev/aside.h"

#include <string.h>

#include "base/assert.h"

static void *work(void *argument)
{
    hr_aside *aside = argument;
    pthread_mutex_lock(&aside->mutex);
    for (;;) {
        while (!aside->fn && !aside->closing) pthread_cond_wait(&aside->moved, &aside->mutex);
        if (!aside->fn) break;
        hr_aside_fn *fn = aside->fn;
        pthread_mutex_unlock(&aside->mutex);
        fn(aside->context);
        pthread_mutex_lock(&aside->mutex);
        aside->fn = NULL;
        pthread_cond_broadcast(&aside->moved);
    }
    pthread_mutex_unlock(&aside->mutex);
    return NULL;
}

hr_status hr_aside_open(hr_aside *aside, void *stack, hr_error *err)
{
    memset(aside, 0, sizeof *aside);
    pthread_mutex_init(&aside->mutex, NULL);
    pthread_cond_init(&aside->moved, NULL);
    const int refused = hr_thread_start(&aside->thread, stack, work, aside);
    aside->open = !refused;
    if (!refused) return HR_OK;
    return hr_fail(err, HR_FAILURE, "cannot create the thread that writes checkpoints");
}

static void wait_locked(hr_aside *aside)
{
    while (aside->fn) pthread_cond_wait(&aside->moved, &aside->mutex);
}

void hr_aside_run(hr_aside *aside, hr_aside_fn *fn, void *context)
{
    HR_ASSERT(aside->open);
    pthread_mutex_lock(&aside->mutex);
    wait_locked(aside);
    aside->fn = fn;
    aside->context = context;
    pthread_cond_broadcast(&aside->moved);
    pthread_mutex_unlock(&aside->mutex);
}

bool hr_aside_is_busy(hr_aside *aside)
{
    if (!aside->open) return false;
    pthread_mutex_lock(&aside->mutex);
    const bool busy = aside->fn != NULL;
    pthread_mutex_unlock(&aside->mutex);
    return busy;
}

void hr_aside_wait_until(hr_aside *aside, int64_t ns)
{
    const struct timespec end = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
    if (!aside->open) return;
    pthread_mutex_lock(&aside->mutex);
    while (aside->fn &&
           pthread_cond_clockwait(&aside->moved, &aside->mutex, CLOCK_MONOTONIC, &end) == 0) {
    }
    pthread_mutex_unlock(&aside->mutex);
}

void hr_aside_wait(hr_aside *aside)
{
    if (!aside->open) return;
    pthread_mutex_lock(&aside->mutex);
    wait_locked(aside);
    pthread_mutex_unlock(&aside->mutex);
}

void hr_aside_close(hr_aside *aside)
{
    if (!aside->open) return;
    pthread_mutex_lock(&aside->mutex);
    aside->closing = true;
    pthread_cond_broadcast(&aside->moved);
    pthread_mutex_unlock(&aside->mutex);
    hr_thread_join(&aside->thread);
    pthread_cond_destroy(&aside->moved);
    pthread_mutex_destroy(&aside->mutex);
    aside->open = false;
}
