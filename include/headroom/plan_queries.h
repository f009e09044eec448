/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/plan_queries.h - what a person asks of all plans of a recipe, and not of one.
 *
 * Every answer is a plan that was built, packed and accounted, as hr_plan_make does it. One call at
 * a time in a process: they measure the process. */
#ifndef HEADROOM_PLAN_QUERIES_H
#define HEADROOM_PLAN_QUERIES_H

#include "headroom/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_POINTS_MOST = 30, HR_POINT_WORDS_BYTES = 240, HR_LARGEST_REASON_BYTES = HR_ERROR_BYTES };

/* One plan, in short. */
typedef struct {
    int64_t process_bytes, arena_bytes, floor_bytes;
    double step_seconds, bound_seconds; /* as of hr_plan_answer */
    double tokens_per_second;
    char packing[16];
    char words[HR_POINT_WORDS_BYTES]; /* what it gives up against a plan that keeps everything */
    char strategy[HR_STRATEGY_TEXT_BYTES];
} hr_plan_point;

/* How to answer. */
typedef struct {
    const char *calibrations; /* directory of calibrations; null: times are guessed */
    char *text;               /* [text_bytes] out: the answer for people; null: none */
    int64_t text_bytes;
    int32_t columns; /* of the terminal, for plots; 0: 80 */
    hr_plan_progress progress;
} hr_plan_query;

/* ---- the largest value of a key */

typedef enum {
    HR_LARGEST_FOUND, /* `value` fits and the next legal one does not */
    HR_LARGEST_END,   /* `value` fits and is the largest legal one */
    HR_LARGEST_FREE,  /* the same, and from `free_from` on bytes do not depend on the key */
    HR_LARGEST_NONE   /* no legal value fits; `next` is the smallest */
} hr_largest_outcome;

typedef struct {
    hr_largest_outcome outcome;
    const hr_key *key;
    int64_t value, next; /* -1: there is none */
    int64_t value_bytes; /* process bytes of the smallest plan with `value` */
    int64_t next_bytes;  /* and with `next`; -1: it cannot be planned on this machine */
    int64_t beyond,
        beyond_bytes; /* of train.seq_len: the next multiple of 64; -1: the same, none */
    int64_t free_from;
    int64_t at_once; /* of train.batch, where bytes stop growing: the largest micro-batch */
    int64_t
        at_once_bytes; /* that fits without accumulation, and its bytes; -1: not asked, or none */
    int64_t tokens_at_once; /* tokens of such a step */
    bool cut;               /* the limit of work ended the search: `value` fits and may not be the
                               largest; `below` does not fit, -1: not known */
    int64_t below;
    int64_t available_bytes; /* the budget, or what the machine has left for a process */
    int32_t probes;          /* plans that were made */
    char reason[HR_LARGEST_REASON_BYTES]; /* why `next` cannot be planned, or there is none */
    hr_plan_point plan;                   /* the fastest with `value` in the bytes available */
} hr_largest;

/* The largest legal value of an integer key with which a run fits. Legal is what hr_config_check
 * accepts, and with memory.strategy that file; values of more than 2^20 between one legal one and
 * the next are not looked for.
 *
 * Bytes of the smallest plan are taken to rise with the key; of train.seq_len twice, for multiples
 * of 64, which can be cut finer, and for all others. Where a key has at most 64 legal values,
 * nothing is taken for granted. What is returned was tried, and so was its neighbour.
 *
 * Errors   USAGE    the key is unknown or no integer. NO_FIT  outcome NONE; answer and text are
 *                   written all the same. As hr_plan_make.
 * Cost     a few dozen plans, at most some ten seconds: counted work ends it (`cut`). */
HR_MUST_CHECK hr_status hr_plan_largest(const hr_config *config, const char *key,
                                        const hr_plan_query *question, hr_largest *answer,
                                        hr_error *err);

/* ---- the smallest budget */

typedef struct {
    bool named;            /* memory.strategy leaves nothing to search: all three are its plan */
    double slowdown;       /* as asked */
    hr_plan_point least;   /* what runs in the least budget of all: its process bytes are it */
    hr_plan_point within;  /* in the least with a step at most so much slower than the fastest */
    hr_plan_point fastest; /* without any budget */
    char times[HR_TIMES_TEXT_BYTES];
} hr_smallest;

/* The least budget of all, and the least that is at most `slowdown` (0.1: a tenth) slower than the
 * fastest plan without a budget. A page less than either is not enough.
 *
 * Errors   USAGE  slowdown is negative or not finite. As hr_plan_make. */
HR_MUST_CHECK hr_status hr_plan_smallest(const hr_config *config, double slowdown,
                                         const hr_plan_query *question, hr_smallest *answer,
                                         hr_error *err);

/* ---- bytes against time */

typedef struct {
    bool named;              /* memory.strategy leaves nothing to search: one point */
    int64_t available_bytes; /* memory.budget, -1: none. Points beyond it are listed too */
    int32_t count;
    char times[HR_TIMES_TEXT_BYTES];
    hr_plan_point points[HR_POINTS_MOST]; /* bytes and speed rise from each to the next */
} hr_frontier;

/* The fastest plans from the smallest to what no budget binds, at budgets that are even on a scale
 * of ratios. No point is beaten in bytes and time by another, and no two are one plan.
 *
 *   svg  a file to draw it in, which appears whole or not at all; null: none
 *
 * Errors   FAILURE  the file cannot be written. As hr_plan_make. */
HR_MUST_CHECK hr_status hr_plan_frontier(const hr_config *config, const char *svg,
                                         const hr_plan_query *question, hr_frontier *answer,
                                         hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
