/* SPDX-License-Identifier: Apache-2.0 */
/* dev/ticket_lock.c - a counter with a condition variable. */
#include "dev/ticket_lock.h"

void hr_ticket_lock_open(hr_ticket_lock *lock)
{
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_cond_init(&lock->moved, NULL);
    lock->drawn = lock->now = 0;
}

static void wait_locked(hr_ticket_lock *lock, int64_t number)
{
    while (lock->now != number) pthread_cond_wait(&lock->moved, &lock->mutex);
}

void hr_ticket_lock_wait(hr_ticket_lock *lock, int64_t number)
{
    pthread_mutex_lock(&lock->mutex);
    wait_locked(lock, number);
    pthread_mutex_unlock(&lock->mutex);
}

int64_t hr_ticket_lock_take(hr_ticket_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    const int64_t number = lock->drawn++;
    wait_locked(lock, number);
    pthread_mutex_unlock(&lock->mutex);
    return number;
}

void hr_ticket_lock_pass(hr_ticket_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    lock->now++;
    pthread_cond_broadcast(&lock->moved);
    pthread_mutex_unlock(&lock->mutex);
}

void hr_ticket_lock_close(hr_ticket_lock *lock)
{
    pthread_cond_destroy(&lock->moved);
    pthread_mutex_destroy(&lock->mutex);
}
