/* SPDX-License-Identifier: Apache-2.0 */
/* dev/turns.h - threads that come one at a time, in the order of their numbers. */
#ifndef HR_DEV_TURNS_H
#define HR_DEV_TURNS_H

#include <pthread.h>
#include <stdint.h>

/* Fields are its own. */
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    int64_t drawn, now; /* numbers drawn; the number whose turn it is */
} hr_turns;

/* It is the turn of number 0, which nobody has drawn. */
void hr_turns_open(hr_turns *turns);

/* Returns when it is the turn of `number`, and then sees all that was written before the turns in
 * front were passed. Threads  any. */
void hr_turns_wait(hr_turns *turns, int64_t number);

/* Draws the next number, and returns with it when it is its turn. Threads  any. */
int64_t hr_turns_take(hr_turns *turns);

/* It is the turn of the next number. Threads  the one whose turn it is. */
void hr_turns_pass(hr_turns *turns);

/* Nobody waits any more. */
void hr_turns_close(hr_turns *turns);

#endif
