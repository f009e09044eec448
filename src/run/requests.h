/* SPDX-License-Identifier: Apache-2.0 */
/* run/requests.h - what signals and the time limit ask of a run. */
#ifndef HR_RUN_REQUESTS_H
#define HR_RUN_REQUESTS_H

#include "headroom/train.h"

typedef struct {
    const hr_train_options *options;
    int64_t most_seconds;   /* 0: no limit */
    int64_t begun_ns;       /* start of the process */
    int64_t saves, reports; /* signals handled so far */
} hr_requests;

/* Returns whether a signal asked the run to stop, or its time is over. Threads: any. */
bool hr_requests_stop(const hr_requests *requests);

/* Return whether a checkpoint or a memory report was requested since the last call. */
bool hr_requests_save(hr_requests *requests);
bool hr_requests_report(hr_requests *requests);

#endif
