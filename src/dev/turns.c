/* SPDX-License-Identifier: Apache-2.0 */
/* dev/turns.c - a number that threads wait to see. */
#include "dev/turns.h"

void hr_turns_open(hr_turns *turns)
{
    pthread_mutex_init(&turns->mutex, NULL);
    pthread_cond_init(&turns->moved, NULL);
    turns->drawn = turns->now = 0;
}

static void wait_locked(hr_turns *turns, int64_t number)
{
    while (turns->now != number) pthread_cond_wait(&turns->moved, &turns->mutex);
}

void hr_turns_wait(hr_turns *turns, int64_t number)
{
    pthread_mutex_lock(&turns->mutex);
    wait_locked(turns, number);
    pthread_mutex_unlock(&turns->mutex);
}

int64_t hr_turns_take(hr_turns *turns)
{
    pthread_mutex_lock(&turns->mutex);
    const int64_t number = turns->drawn++;
    wait_locked(turns, number);
    pthread_mutex_unlock(&turns->mutex);
    return number;
}

void hr_turns_pass(hr_turns *turns)
{
    pthread_mutex_lock(&turns->mutex);
    turns->now++;
    pthread_cond_broadcast(&turns->moved);
    pthread_mutex_unlock(&turns->mutex);
}

void hr_turns_close(hr_turns *turns)
{
    pthread_cond_destroy(&turns->moved);
    pthread_mutex_destroy(&turns->mutex);
}
