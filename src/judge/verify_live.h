/* SPDX-License-Identifier: Apache-2.0 */
/* judge/verify_live.h - the set of live buffers of the verifier, ordered by offset.
 *
 * Buffers are ranked by offset once. The set is a bitmap over the ranks, with a bitmap of its
 * nonzero words above it, and so on, so that every operation takes a few words whatever the
 * number of buffers. */
#ifndef HR_JUDGE_VERIFY_LIVE_H
#define HR_JUDGE_VERIFY_LIVE_H

#include "judge/judged.h"

enum { HR_JUDGED_LIVE_LEVELS = 6 }; /* 64^6 ranks */

typedef struct {
    int32_t *buffer_of; /* [buffer_count] by rank */
    int32_t *rank_of;   /* [buffer_count] by buffer */
    int32_t *lowest;    /* [buffer_count] by buffer: the first rank with its offset */
    uint64_t
        *words[HR_JUDGED_LIVE_LEVELS]; /* the ranks first; each level has an empty word behind its
                                               last; the last level has one word */
    int32_t levels;
} hr_judged_live;

/* Opens an empty set. Errors FAILURE. Close the set whatever the status. */
HR_MUST_CHECK hr_status hr_judged_live_open(const hr_judged_plan *plan, hr_judged_live *live);
void hr_judged_live_close(hr_judged_live *live);

void hr_judged_live_add(hr_judged_live *live, int32_t buffer);
void hr_judged_live_remove(hr_judged_live *live, int32_t buffer);

/* The lowest rank of all buffers, live or not, that have the offset of this one. */
int32_t hr_judged_live_lowest(const hr_judged_live *live, int32_t buffer);

/* The live buffer with the lowest rank from `rank` on; with the highest rank below it. -1: none. */
int32_t hr_judged_live_above(const hr_judged_live *live, int32_t rank);
int32_t hr_judged_live_below(const hr_judged_live *live, int32_t rank);

#endif
