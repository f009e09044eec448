/* SPDX-License-Identifier: Apache-2.0 */
/* dev/thread.c - threads on stacks with a guard page, with all signals blocked. */
#define _GNU_SOURCE
#include "dev/thread.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

/* A stack overflow must fault and not overwrite the memory below. */
static int guard(uint8_t *stack, int protection)
{
    return mprotect(stack, (size_t)hr_page_bytes(), protection) == 0 ? 0 : errno;
}

int hr_thread_start(hr_thread *thread, void *stack, void *(*fn)(void *), void *argument)
{
    const int64_t page = hr_page_bytes();
    sigset_t all, before;
    pthread_attr_t attributes;
    thread->stack = stack;
    memset(stack, 0, HR_STACK_BYTES); /* the plan counts every page of it */
    int refused = guard(thread->stack, PROT_NONE);
    if (refused) return refused;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a new thread inherits the mask */
    pthread_attr_init(&attributes);
    refused = pthread_attr_setstack(&attributes, thread->stack + page,
                                    (size_t)(HR_STACK_BYTES - page));
    if (!refused) refused = pthread_create(&thread->handle, &attributes, fn, argument);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, 0);
    if (refused) guard(thread->stack, PROT_READ | PROT_WRITE);
    return refused;
}

void hr_thread_join(hr_thread *thread)
{
    pthread_join(thread->handle, 0);
    guard(thread->stack, PROT_READ | PROT_WRITE);
}
