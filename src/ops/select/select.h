/* SPDX-License-Identifier: Apache-2.0 */
/* ops/select/select.h - for each sequence one of two values of its rows, at random.
 *
 *     out[r] = y[r] if u < share, else t[r];   without t 0, which is the gradient of y from that of
 *     out
 * with u uniform in [0, 1), one number for each sequence, optimizer step and site.
 *
 * Operands. select  in  y r, t R      out  out r
 *
 *   all  [rows, D] activations, fp32 or bf16; out may be exactly y or t
 *
 * The share is that of the last phase that has begun at the optimizer step; before the first phase
 * it is 0.
 *
 * Repeat   the same choice for any split of the rows, and in the backward pass. */
#ifndef HR_OPS_SELECT_H
#define HR_OPS_SELECT_H

#include "ops/call.h"

enum { HR_SELECT_PHASES_MOST = 8 };

typedef struct {
    int64_t D, T;
    uint32_t site;
    int32_t phases;
    struct {
        int64_t step; /* the first with this share */
        double share;
    } phase[HR_SELECT_PHASES_MOST]; /* by step */
} hr_select_attr;

hr_run_fn hr_select_run;

#endif
