/* SPDX-License-Identifier: Apache-2.0 */
/* dev/thread.h - a thread on a stack that the plan includes. */
#ifndef HR_DEV_THREAD_H
#define HR_DEV_THREAD_H

#include <pthread.h>
#include <stdint.h>

#include "mem/process.h"

typedef struct {
    pthread_t handle;
    uint8_t *stack;
} hr_thread;

/* Starts a thread and touches all pages of its stack; the first page is the guard page. The thread
 * blocks all signals, so that the caller receives them.
 *
 *   stack  [HR_STACK_BYTES] owned by the caller, readable and writable until hr_thread_join
 *
 * Align    stack to a page
 * Returns  0, or an errno value; the stack is then unchanged. */
int hr_thread_start(hr_thread *thread, void *stack, void *(*fn)(void *), void *argument);

/* Waits for the thread to end and makes its guard page accessible again. */
void hr_thread_join(hr_thread *thread);

#endif
