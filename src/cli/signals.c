/* SPDX-License-Identifier: Apache-2.0 */
/* cli/signals.c - signal handlers: the first signal ends a command in an orderly way. */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static volatile sig_atomic_t interrupts, signalled;

/* The second signal ends the program immediately. */
static void interrupted(int number)
{
    signalled = number;
    interrupts = interrupts + 1;
    if (interrupts > 1) _exit(128 + number);
}

const volatile sig_atomic_t *hr_cli_catch_signals(void)
{
    struct sigaction action = { .sa_handler = interrupted, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGINT); /* one at a time, because the handler counts them */
    sigaddset(&action.sa_mask, SIGTERM);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &interrupts;
}

int hr_cli_signal_code(void)
{
    return 128 + signalled;
}

int64_t hr_cli_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
