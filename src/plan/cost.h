/* SPDX-License-Identifier: Apache-2.0 */
/* plan/cost.h - what a program costs in time: a sum over its steps, on integers.
 *
 *     time of a step = turns x (call + sum over terms of amount x rate) + started bytes x rate
 *
 * The terms of a call are its floating-point operations, what its operation counts beside them, and
 * the bytes that each operand shows it. They depend on the step's operation, its attributes and its
 * operands' rows, so layers that are alike cost alike, and what one layer costs may be asked of a
 * small twin.
 * docs/time.md says what is in it and what is not. */
#ifndef HR_PLAN_COST_H
#define HR_PLAN_COST_H

#include "graph/op.h"
#include "headroom/config.h"

/* What a call is charged for, beside being called. */
enum {
    HR_TERM_FLOPS,
    HR_TERM_ITEMS,                             /* of hr_op.items, kind i: HR_TERM_ITEMS + i */
    HR_TERM_IN = HR_TERM_ITEMS + HR_ITEMS_MAX, /* bytes of input i: HR_TERM_IN + i */
    HR_TERM_OUT = HR_TERM_IN + HR_IN_MAX,      /* bytes of output k; a sum is read and written */
    HR_TERM_START = HR_TERM_OUT + HR_OUT_MAX,  /* bytes of sums that start here */
    HR_TERM_COUNT
};

enum { HR_RATE_OPS_MOST = 48, HR_SPEED_PARTS = 3 };

/* Which amounts the terms stand for: rates that were found for others are of no use. To be raised
 * with every change of what an operation counts. */
enum { HR_COST_MODEL = 4 };

/* Picoseconds a call and attoseconds (10^-18 s) a unit of a term: a whole number of them is fine
 * enough for 10^17 operations a second, and coarse enough that 292 years fit the sum. */
#define HR_RATE_CALL_PS_MOST INT64_C(1000000000000) /* one second */
#define HR_RATE_UNIT_AS_MOST INT64_C(1000000000000) /* one microsecond */

typedef struct {
    int64_t call_ps;
    int64_t unit_as[HR_TERM_COUNT];
} hr_rate;

/* Rates of an operation on fp32 [0] and on bf16 [1]; by the program's table of operations. All are
 * between 0 and the two limits. */
typedef struct {
    int32_t threads; /* that they hold for, >= 1 */
    /* What a fixed small step took while they were measured, by parts of calibrate/speed_probe.h;
     * zeros: they were not. */
    int32_t pace_us[HR_SPEED_PARTS];
    int64_t disk_rate;   /* bytes a second, written and flushed; 0: not measured */
    bool in_nanoseconds; /* costs of steps are nanoseconds: for steps of training that take days */
    hr_rate op[HR_RATE_OPS_MOST][2];
} hr_rates;

/* What one call of a step over `rows` token rows is charged for; amounts by term. */
typedef struct {
    int64_t amount[HR_TERM_COUNT];
} hr_work;

/* Which rates a step has: 1 when an operand is bf16, else 0. Pure. */
int32_t hr_cost_dtype(const hr_program *program, int32_t step);

/* The work of one call with at most `rows` rows (INT64_MAX: all that its operands have).
 *   starts   sums start at zero in this call
 *   threads  where they cannot share the pieces evenly, all amounts are as many times larger as
 *            the thread with the most pieces has more than its share */
hr_work hr_cost_work(const hr_program *program, int32_t step, int64_t rows, bool starts,
                     int32_t threads);

/* Whether a step of training takes so long that costs need nanoseconds: 2^63 picoseconds are 106
 * days. Decided by an estimate from the config, from 11 days on.
 *   flop_as  attoseconds of one FLOP */
bool hr_cost_needs_nanoseconds(const hr_config *config, int64_t flop_as);

/* Seconds of a cost that was computed with these rates. */
double hr_cost_seconds(const hr_rates *rates, int64_t cost);

/* Picoseconds of work at a rate, at most INT64_MAX. */
int64_t hr_cost_of(const hr_rate *rate, const hr_work *work);

/* The cost of one call with all the rows of its operands, whose sums go on: picoseconds, or with
 * rates->in_nanoseconds nanoseconds. So are the costs below, and every `ps` of the search. */
int64_t hr_cost_step(const hr_program *program, const hr_rates *rates, int32_t step);

/* Times a step runs in one turn of its section. */
int64_t hr_cost_turns(const hr_program *program, int32_t step);

/* The cost of all calls of a step in one turn of its section: turns with fewer rows and starts
 * of sums are priced as they are. At most INT64_MAX. */
int64_t hr_cost_step_total(const hr_program *program, const hr_rates *rates, int32_t step);

/* The cost of one step of training: sections fetch, norm, step and update. At
 * most INT64_MAX. */
int64_t hr_cost_program(const hr_program *program, const hr_rates *rates);

/* Rates for a machine that was not measured, by its instruction set.
 *   ops [op_count]  the table that programs refer to; op_count <= HR_RATE_OPS_MOST
 *   cpu_mask        base/cpu.h
 *   threads         products are shared by all of them, memory by no more than a few. */
void hr_rates_guess(const struct hr_op *const *ops, int32_t op_count, uint32_t cpu_mask,
                    int32_t threads, hr_rates *rates);

#endif
