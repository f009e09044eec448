/* SPDX-License-Identifier: Apache-2.0 */
/* plan/lifetimes.h - from a program to what must be placed: buffers, storages and their lives.
 *
 * A life is every access, widened to each loop inside the value's home that turns more than once;
 * nothing else decides it. Where an operation may write over an input that dies, and both have the
 * same bytes, they share one storage. */
#ifndef HR_PLAN_LIFETIMES_H
#define HR_PLAN_LIFETIMES_H

#include "plan/plan.h"

/* Fills buffers, storages and the tables of a plan, in the caller's region; offsets stay 0. The
 * order is that of first appearance, walking the steps, so that equal programs give equal plans
 * whatever the order in which passes made them.
 *
 *   plan  out: plan->threads must be set (scratch depends on it)
 *
 * Errors   FAILURE  the region is too small. NO_FIT  a size of 2^63 bytes or more. */
HR_MUST_CHECK hr_status hr_lifetimes(const hr_program *program, hr_region *region, hr_plan *plan,
                                     hr_error *err);

/* Bytes alive at every step; the largest of them is the floor.
 *
 *   plan   hr_lifetimes has filled it; its storages together are below 2^63 bytes
 *   alive  out [step_count] */
void hr_lifetimes_alive(const hr_program *program, const hr_plan *plan, int64_t *alive);

#endif
