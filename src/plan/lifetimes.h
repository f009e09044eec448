/* SPDX-License-Identifier: Apache-2.0 */
/* plan/lifetimes.h - derives buffers, storages and their lifetimes from a program.
 *
 * Storages of one space are adjacent; the spaces are in the order of hr_space.
 *
 * The lifetime of a value spans all its accesses, widened to each loop inside its home that
 * iterates more than once. Nothing else affects it. If an operation may overwrite an input in its
 * last read, and input and output have the same size, the two share one storage. */
#ifndef HR_PLAN_LIFETIMES_H
#define HR_PLAN_LIFETIMES_H

#include "plan/plan.h"

/* Fills buffers, storages and the tables of a plan, in the caller's region. Offsets stay 0. Buffers
 * come in the order of first use by the steps, so that equal programs give equal plans whatever the
 * order of the passes.
 *
 *   plan  out: plan->process.threads must be set (scratch depends on it)
 *
 * Errors   FAILURE  the region is too small. NO_FIT  a size of 2^63 bytes or more. */
HR_MUST_CHECK hr_status hr_lifetimes(const hr_program *program, hr_region *region, hr_plan *plan,
                                     hr_error *err);

/* Live bytes of the arena at every step; the largest is its floor.
 *
 *   plan   from hr_lifetimes; its storages together are below 2^63 bytes
 *   alive  out [step_count] */
void hr_lifetimes_alive(const hr_program *program, const hr_plan *plan, int64_t *alive);

/* The largest live bytes at the steps `first` to `last`, without memory for every step. */
int64_t hr_lifetimes_most(const hr_plan *plan, int32_t first, int32_t last);

#endif
