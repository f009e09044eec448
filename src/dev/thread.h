/* SPDX-License-Identifier: Apache-2.0 */
/* dev/thread.h - a thread on a stack that the plan has. */
#ifndef HR_DEV_THREAD_H
#define HR_DEV_THREAD_H

#include <pthread.h>
#include <stdint.h>

#include "mem/process.h"

typedef struct {
    pthread_t handle;
    uint8_t *stack;
} hr_thread;

/* Starts a thread and touches all of its stack, whose first page guards the rest. Signals go to the
 * caller: the thread blocks them.
 *
 *   stack  [HR_STACK_BYTES] the caller's, readable and writable, until hr_thread_join
 *
 * Align    stack to a page
 * Returns  0, or what the system says it refused for; the stack is then as it was given. */
int hr_thread_start(hr_thread *thread, void *stack, void *(*fn)(void *), void *argument);

/* Waits for its end, and leaves the stack as it was given. */
void hr_thread_join(hr_thread *thread);

#endif
