/* SPDX-License-Identifier: Apache-2.0 */
/* run/requests.c - compares the counts of signals with those that were handled. */
#include "run/requests.h"

#include "base/clock.h"

/* The time limit uses a monotonic clock. */
bool hr_requests_stop(const hr_requests *requests)
{
    const volatile sig_atomic_t *interrupts = requests->options->interrupts;
    if (interrupts && *interrupts > 0) return true;
    return requests->most_seconds > 0 &&
           (hr_clock_ns() - requests->begun_ns) / 1000000000 >= requests->most_seconds;
}

static bool take(const volatile sig_atomic_t *count, int64_t *handled)
{
    if (!count || *count == *handled) return false;
    *handled = *count;
    return true;
}

bool hr_requests_save(hr_requests *requests)
{
    return take(requests->options->saves, &requests->saves);
}

bool hr_requests_report(hr_requests *requests)
{
    return take(requests->options->reports, &requests->reports);
}
