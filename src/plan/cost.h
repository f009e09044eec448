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

#include "config/config.h"
#include "graph/rates.h"

/* Amounts, by term, of one call of a step over `rows` token rows. */
typedef struct {
    int64_t amount[HR_TERM_COUNT];
} hr_work;

/* Index of the rates of a step: bf16 if an operand is, else fp32, whatever the format of stored
 * weights. Pure. */
hr_compute hr_cost_dtype(const hr_program *program, int32_t step);

/* The work of one call with at most `rows` rows (INT64_MAX: all rows of its operands).
 *
 *   starts   sums start at zero in this call: those over rows, since other sums are single numbers
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

/* The bytes that a step which begins a transfer copies in one iteration of its section, and the
 * time that the file takes for them, at most INT64_MAX. */
double hr_cost_bytes_moved(const hr_program *program, int32_t step);
int64_t hr_cost_transfer(const hr_program *program, const hr_rates *rates, int32_t step);

/* The cost of all calls of a step in one iteration of its section. Includes the exact cost of
 * calls with fewer rows and of the start of sums. A transfer costs nothing, since it overlaps with
 * operations; that of an activation, which the search may choose, costs what it takes alone. At
 * most INT64_MAX. */
int64_t hr_cost_step_total(const hr_program *program, const hr_rates *rates, int32_t step);

/* Floating-point operations of all calls of a step in one iteration of its section. */
double hr_cost_flops(const hr_program *program, int32_t step);

/* The cost of one training step: sections fetch, norm, step and update. At most INT64_MAX. */
int64_t hr_cost_program(const hr_program *program, const hr_rates *rates);

/* Estimated rates for a machine without calibration (hr_backend.guess).
 *
 *   backend   at most HR_RATE_OPS_MOST operations
 *   features  of the machine, as the back end counts them: of a CPU its mask (base/cpu.h)
 *   threads   all compute matrix products; only a few add memory bandwidth */
void hr_rates_guess(const hr_backend *backend, uint32_t features, int32_t threads, hr_rates *rates);

#endif
