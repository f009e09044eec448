/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/plan_queries.h - questions about all plans of a recipe: the largest value of a key, the
 * smallest budget, and memory against time.
 *
 * Every answer is a plan that was built, packed and accounted, as hr_plan_make does it. One call at
 * a time per process, because a query measures the process. */
#ifndef HEADROOM_PLAN_QUERIES_H
#define HEADROOM_PLAN_QUERIES_H

#include "headroom/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_POINTS_MOST = 30, HR_POINT_WORDS_BYTES = 512, HR_LARGEST_REASON_BYTES = HR_ERROR_BYTES };

/* Summary of one plan. */
typedef struct {
    int64_t process_bytes, arena_bytes, floor_bytes;
    double step_seconds, bound_seconds; /* as in hr_plan_answer */
    double tokens_per_second;
    char packing[16];
    /* its trade-offs against a plan that saves every activation */
    char words[HR_POINT_WORDS_BYTES];
    char strategy[HR_STRATEGY_TEXT_BYTES];
} hr_plan_point;

#define HR_QUERY_WORK INT64_C(3000000000)

/* Settings of a query. */
typedef struct {
    size_t size;                    /* of this struct */
    const char *calibrations;       /* directory of calibrations; null: step times are estimated */
    const hr_device_choice *device; /* that the question is about; null: this machine */
    char *text;                     /* [text_bytes] out: the answer as text; null: none */
    int64_t text_bytes;
    int32_t columns; /* terminal width for plots; 0: 80 */
    /* limit of counted work, about a nanosecond of a 2024 core a unit; the last plan may exceed it.
     * 0: HR_QUERY_WORK */
    int64_t work_most;
    hr_plan_progress progress;
} hr_plan_query;

/* ---- the largest value of a key */

typedef enum {
    HR_LARGEST_FOUND, /* `value` fits and the next legal value does not */
    HR_LARGEST_END,   /* `value` fits and is the largest legal one */
    HR_LARGEST_FREE,  /* as END, and memory does not depend on the key from `free_from` on */
    HR_LARGEST_NONE   /* no legal value fits; `next` is the smallest */
} hr_largest_outcome;

typedef struct {
    hr_largest_outcome outcome;
    const hr_key *key;
    int64_t value, next; /* -1: none */
    int64_t value_bytes; /* process memory of the smallest plan with `value` */
    int64_t next_bytes;  /* the same with `next`; -1: it cannot be planned on this machine */
    /* of train.seq_len, with several sequences per micro-batch: the next multiple of 64 and its
     * process memory; -1: none */
    int64_t beyond, beyond_bytes;
    int64_t free_from;
    /* of train.batch, if memory stops growing: the largest micro-batch that fits without gradient
     * accumulation; -1: not computed, or none */
    int64_t at_once;
    int64_t at_once_bytes;  /* process memory with it; -1: as above */
    int64_t tokens_at_once; /* tokens per step with it */
    bool at_once_cut;       /* the search for it reached its limit of work: a larger one may fit */
    /* the search reached its limit of work: `value` fits but may not be the largest; `below` does
     * not fit (-1: unknown) */
    bool cut;
    int64_t below;
    int64_t available_bytes;              /* the budget, or the memory left for a process */
    int32_t probes;                       /* number of plans made */
    char reason[HR_LARGEST_REASON_BYTES]; /* why `next` cannot be planned; empty: it can */
    /* the fastest plan with `value` within the available bytes */
    hr_plan_point plan;
} hr_largest;

/* Finds the largest legal value of an integer key with which a run fits. Legal values are those
 * that hr_config_check and the file of memory.strategy accept. Gaps of more than 2^20 between legal
 * values end the search.
 *
 * The search assumes that the memory of the smallest plan grows with the key. For train.seq_len
 * with several sequences per micro-batch it assumes this separately for multiples of 64, which
 * allow smaller tiles, and for all other values. With at most 64 legal values it assumes nothing.
 * The returned value and its neighbor were both planned.
 *
 * Errors   USAGE    the key is unknown or not an integer. As hr_plan_make.
 *          NO_FIT   outcome NONE; answer and text are still written.
 * Cost     a few dozen plans, about ten seconds at most. A limit on counted work ends the search
 *          (`cut`). */
HR_MUST_CHECK hr_status hr_plan_largest(const hr_config *config, const char *key,
                                        const hr_plan_query *question, hr_largest *answer,
                                        hr_error *err);

/* ---- the smallest budget */

typedef struct {
    bool named;            /* memory.strategy fixes the strategy: all three plans are the same */
    double slowdown;       /* the requested limit */
    hr_plan_point least;   /* with the smallest budget, which is its process_bytes */
    hr_plan_point within;  /* with the smallest budget that keeps the slowdown within the limit */
    hr_plan_point fastest; /* without a budget */
    /* The search reached its limit: below this many bytes it found no plan within the slowdown, but
     * a budget from here to that of `within` may have one. 0: `within` is minimal */
    int64_t within_bound;
    char times[HR_TIMES_TEXT_BYTES];
} hr_smallest;

/* Finds the smallest budget, and the smallest budget whose step is at most `slowdown` (0.1: 10 %)
 * slower than the fastest plan without a budget. Both are minimal to the page, unless the search
 * for the second reaches its limit (`within_bound`).
 *
 * Errors   USAGE  slowdown is negative or not finite. As hr_plan_make. */
HR_MUST_CHECK hr_status hr_plan_smallest(const hr_config *config, double slowdown,
                                         const hr_plan_query *question, hr_smallest *answer,
                                         hr_error *err);

/* ---- memory against time */

typedef struct {
    bool named;              /* memory.strategy fixes the strategy: there is one point */
    int64_t available_bytes; /* memory.budget; -1: none. Points above it are included */
    int32_t count;
    bool cut; /* the search reached its limit of work: there may be plans between the points */
    int32_t probes; /* number of plans made */
    char times[HR_TIMES_TEXT_BYTES];
    hr_plan_point points[HR_POINTS_MOST]; /* memory and speed increase from point to point */
} hr_frontier;

/* Finds the fastest plans between the smallest plan and the fastest plan without a budget, at
 * budgets in geometric progression. No point is worse than another in both memory and time, and no
 * plan occurs twice. A limit on counted work ends the search (`cut`).
 *
 *   svg  path for a plot, written atomically; null: none
 *
 * Errors   FAILURE  the file cannot be written. As hr_plan_make. */
HR_MUST_CHECK hr_status hr_plan_frontier(const hr_config *config, const char *svg,
                                         const hr_plan_query *question, hr_frontier *answer,
                                         hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
