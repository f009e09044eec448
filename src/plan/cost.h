/* SPDX-License-Identifier: Apache-2.0 */
/* plan/cost.h - predicted time of a program: an integer sum over its steps.
 *
 *     time of a step = calls x (call + sum over terms of amount x rate) + started bytes x rate
 *
 * The terms of a call are its floating-point operations, the items that its operation counts, and
 * the bytes of each operand. They depend on the operation, its attributes and the rows of its
 * operands. Equal layers therefore cost the same, so a proxy model with fewer layers gives the cost
 * of a layer. docs/time.md lists what the model includes. */
#ifndef HR_PLAN_COST_H
#define HR_PLAN_COST_H

#include "graph/backend.h"
#include "headroom/config.h"

/* Terms of a call, beside the constant cost of the call. */
enum {
    HR_TERM_FLOPS,
    HR_TERM_ITEMS,                             /* of hr_op_facts.items, kind i: HR_TERM_ITEMS + i */
    HR_TERM_IN = HR_TERM_ITEMS + HR_ITEMS_MAX, /* bytes of input i: HR_TERM_IN + i */
    HR_TERM_OUT = HR_TERM_IN + HR_IN_MAX,      /* bytes of output k; a sum is read and written */
    HR_TERM_START = HR_TERM_OUT + HR_OUT_MAX,  /* bytes of sums that are zeroed */
    HR_TERM_COUNT
};

enum { HR_RATE_OPS_MOST = 48, HR_SPEED_PARTS = 3 };

/* Version of the meaning of the terms: rates of another version are invalid. Increase it with every
 * change of what an operation counts. */
enum { HR_COST_MODEL = 4 };

/* Limits of the rates: picoseconds per call and attoseconds (10^-18 s) per unit of a term. Integers
 * of these units are fine enough for 10^17 operations per second and coarse enough for a sum of 292
 * years. */
#define HR_RATE_CALL_PS_MOST INT64_C(1000000000000) /* one second */
#define HR_RATE_UNIT_AS_MOST INT64_C(1000000000000) /* one microsecond */

typedef struct {
    int64_t call_ps;
    int64_t unit_as[HR_TERM_COUNT];
} hr_rate;

/* Rates of each operation for fp32 [0] and bf16 [1], indexed like the program's table of
 * operations. All are between 0 and the two limits. */
typedef struct {
    const hr_backend *backend; /* that they are rates of */
    int32_t threads;           /* thread count of the measurement, >= 1 */
    /* Microseconds of each part of a fixed short probe during the measurement
     * (calibrate/speed_probe.h). Zeros: not measured. */
    int32_t pace_us[HR_SPEED_PARTS];
    int64_t disk_rate;   /* bytes per second, written and flushed; 0: not measured */
    bool in_nanoseconds; /* costs are nanoseconds: for training steps that take days */
    hr_rate op[HR_RATE_OPS_MOST][2];
} hr_rates;

/* Amounts, by term, of one call of a step over `rows` token rows. */
typedef struct {
    int64_t amount[HR_TERM_COUNT];
} hr_work;

/* Index of the rates of a step: 1 if an operand is bf16, else 0. Pure. */
int32_t hr_cost_dtype(const hr_program *program, int32_t step);

/* The work of one call with at most `rows` rows (INT64_MAX: all rows of its operands).
 *
 *   starts   sums start at zero in this call
 *   threads  when the pieces do not divide evenly among them, all amounts are multiplied by the
 *            share of the busiest thread over the average share */
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

/* The cost of one call with all the rows of its operands and sums that continue: picoseconds, or
 * nanoseconds with rates->in_nanoseconds. So are the costs below, and every `ps` of the search. */
int64_t hr_cost_step(const hr_program *program, const hr_rates *rates, int32_t step);

/* Calls of a step in one iteration of its section. */
int64_t hr_cost_turns(const hr_program *program, int32_t step);

/* The cost of all calls of a step in one iteration of its section. Includes the exact cost of
 * calls with fewer rows and of the start of sums. At most INT64_MAX. */
int64_t hr_cost_step_total(const hr_program *program, const hr_rates *rates, int32_t step);

/* The cost of one training step: sections fetch, norm, step and update. At most INT64_MAX. */
int64_t hr_cost_program(const hr_program *program, const hr_rates *rates);

/* Estimated rates for a machine without calibration, by its instruction set.
 *
 *   backend   at most HR_RATE_OPS_MOST operations
 *   cpu_mask  base/cpu.h
 *   threads   all compute matrix products; only a few add memory bandwidth */
void hr_rates_guess(const hr_backend *backend, uint32_t cpu_mask, int32_t threads, hr_rates *rates);

#endif
