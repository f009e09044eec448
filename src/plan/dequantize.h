/* SPDX-License-Identifier: Apache-2.0 */
/* plan/dequantize.h - places the steps that dequantize stored weights.
 *
 * A step whose operation does not read the format of a stored weight (hr_op_facts.dtypes) gets a
 * dequantized copy, made by the step before it. No copy has a second reader, so that at most one
 * weight of each step is dequantized at a time, in the forward pass, the backward pass and in
 * recomputed steps. */
#ifndef HR_PLAN_DEQUANTIZE_H
#define HR_PLAN_DEQUANTIZE_H

#include "base/region.h"
#include "graph/program.h"

/* Inserts the steps into all sections, before any tiling and after all clones. A program without
 * stored weights is unchanged.
 *
 * Errors   FAILURE  the program has no room for the steps; scratch too small. */
HR_MUST_CHECK hr_status hr_dequantize(hr_program *program, hr_region *scratch, hr_error *err);

#endif
