/* SPDX-License-Identifier: Apache-2.0 */
/* text/pass.h - what every pass over a text needs: progress with interruption, and a content hash.
 */
#ifndef HR_TEXT_PASS_H
#define HR_TEXT_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

/* Identifies content: XXH3, 128 bits. */
typedef struct {
    uint64_t low, high;
} hr_text_hash;

static inline bool hr_text_hash_equal(hr_text_hash a, hr_text_hash b)
{
    return a.low == b.low && a.high == b.high;
}

/* Called every 256 KiB of a pass, on the thread that runs it. `work` names the pass ("counting
 * words"). Return true to stop the pass. */
typedef struct {
    bool (*stop)(void *context, const char *work, int64_t bytes_done, int64_t bytes_total);
    void *context;
    void (*note)(void *context, const char *line); /* a message for the user; may be null */
} hr_text_progress;

/* Calls `progress`, which may be null. Errors INTERRUPTED. */
HR_MUST_CHECK static inline hr_status hr_text_continue(const hr_text_progress *progress,
                                                       const char *work, int64_t bytes_done,
                                                       int64_t bytes_total, hr_error *err)
{
    if (!progress || !progress->stop) return HR_OK;
    if (!progress->stop(progress->context, work, bytes_done, bytes_total)) return HR_OK;
    return hr_fail(err, HR_INTERRUPTED,
                   "interrupted while %s, at byte %lld of %lld; what was unfinished is removed",
                   work, (long long)bytes_done, (long long)bytes_total);
}

#endif
