/* SPDX-License-Identifier: Apache-2.0 */
/* dev/ticket_lock.h - threads that come one at a time, in the order of their numbers. */
#ifndef HR_DEV_TICKET_LOCK_H
#define HR_DEV_TICKET_LOCK_H

#include <pthread.h>
#include <stdint.h>

/* Fields are its own. */
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    int64_t drawn, now; /* numbers drawn; the number whose turn it is */
} hr_ticket_lock;

/* It is the turn of number 0, which nobody has drawn. */
void hr_ticket_lock_open(hr_ticket_lock *lock);

/* Returns when it is the turn of `number`, and then sees all that was written before the turns in
 * front were passed. Threads  any. */
void hr_ticket_lock_wait(hr_ticket_lock *lock, int64_t number);

/* Draws the next number, and returns with it when it is its turn. Threads  any. */
int64_t hr_ticket_lock_take(hr_ticket_lock *lock);

/* It is the turn of the next number. Threads  the one whose turn it is. */
void hr_ticket_lock_pass(hr_ticket_lock *lock);

/* Nobody waits any more. */
void hr_ticket_lock_close(hr_ticket_lock *lock);

#endif
