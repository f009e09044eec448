/* SPDX-License-Identifier: Apache-2.0 */
/* cli/signals.c - signal handlers: the first signal ends a command in an orderly way. */
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static hr_cli_signals received;
static const char *at_second;
static volatile int64_t first_ns;

/* One request can arrive as several signals: timeout(1) and batch queues send a signal to the
 * process and then to its group. So a repeated SIGTERM, and the same signal within a second, are
 * the same request. */
static void interrupted(int number)
{
    const int64_t now_ns = hr_cli_now_ns();
    if (number == received.number && (number == SIGTERM || now_ns - first_ns < 1000000000)) return;
    first_ns = now_ns;
    received.number = number;
    received.interrupts = received.interrupts + 1;
    if (received.interrupts <= 1) return;
    if (at_second) (void)!write(STDERR_FILENO, at_second, strlen(at_second));
    _exit(128 + number);
}

void hr_cli_catch(void (*handler)(int), int first, int second)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, first);
    sigaddset(&action.sa_mask, second);
    sigaction(first, &action, NULL);
    sigaction(second, &action, NULL);
}

const hr_cli_signals *hr_cli_received_signals(void)
{
    return &received;
}

const volatile sig_atomic_t *hr_cli_catch_signals(const char *said)
{
    at_second = said;
    hr_cli_catch(interrupted, SIGINT, SIGTERM);
    return &received.interrupts;
}

int hr_cli_signal_code(void)
{
    return 128 + received.number;
}

int64_t hr_cli_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
