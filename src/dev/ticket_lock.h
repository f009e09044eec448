/* SPDX-License-Identifier: Apache-2.0 */
/* dev/ticket_lock.h - a lock that threads get in the order of their ticket numbers. */
#ifndef HR_DEV_TICKET_LOCK_H
#define HR_DEV_TICKET_LOCK_H

#include <pthread.h>
#include <stdint.h>

/* Private fields. */
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    int64_t drawn, now; /* tickets taken; the ticket that holds the lock */
} hr_ticket_lock;

/* Initializes the lock. Ticket 0 holds it; no thread has taken that ticket yet. */
void hr_ticket_lock_open(hr_ticket_lock *lock);

/* Waits until ticket `number` holds the lock. The caller then sees all writes of earlier holders.
 * Threads  any. */
void hr_ticket_lock_wait(hr_ticket_lock *lock, int64_t number);

/* Takes the next ticket and waits until it holds the lock. Returns the ticket. Threads  any. */
int64_t hr_ticket_lock_take(hr_ticket_lock *lock);

/* Passes the lock to the next ticket. Threads  the one that holds the lock. */
void hr_ticket_lock_pass(hr_ticket_lock *lock);

/* No thread may be waiting. */
void hr_ticket_lock_close(hr_ticket_lock *lock);

#endif
