/* SPDX-License-Identifier: Apache-2.0 */
/* plan/order.c - swaps adjacent steps that do not read each other's results. */
#include "plan/order.h"

#include "graph/backend.h"

/* A step that only adds row sums to existing values, as a weight gradient does. */
static bool only_sums(const hr_op *op)
{
    for (int32_t k = 0; op->out[k]; k++)
        if (op->out[k] != 'a' && op->out[k] != 'A') return false;
    return op->out[0] != 0;
}

static bool reads(const hr_step *step, int32_t tensor)
{
    for (int32_t i = 0; i < HR_IN_MAX; i++)
        if (step->in[i] != HR_NONE && step->in[i] == tensor) return true;
    return false;
}

/* Returns whether `dw` and `dx` are the gradients of one product: both in the same loop, both read
 * the same gradient, and neither reads a result of the other. */
static bool is_pair(const hr_program *program, const hr_step *dw, const hr_step *dx)
{
    const hr_op *sums = hr_step_op(program, dw), *rows = hr_step_op(program, dx);
    if (dw->direction != HR_DIR_BACKWARD || dx->direction != HR_DIR_BACKWARD) return false;
    if (dw->loop != dx->loop || !only_sums(sums) || only_sums(rows)) return false;
    for (int32_t k = 0; k < HR_OUT_MAX; k++)
        if (reads(dx, dw->out[k]) || reads(dw, dx->out[k])) return false;
    return reads(dw, dx->in[0]);
}

void hr_order(hr_program *program, int32_t loop, bool dw_first)
{
    const int32_t end = program->loops[loop].step_last;
    for (int32_t s = program->loops[loop].step_first; s < end; s++) {
        hr_step *here = &program->steps[s], *next = here + 1;
        const bool swap = dw_first ? is_pair(program, next, here) : is_pair(program, here, next);
        if (!swap) continue;
        const hr_step step = *here;
        *here = *next;
        *next = step;
        s++;
    }
}
