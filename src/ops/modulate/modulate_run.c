/* SPDX-License-Identifier: Apache-2.0 */
/* ops/modulate/modulate_run.c - splits the rows over threads. */
#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"
#include "ops/modulate/modulate.h"

static void *at_row(void *rows, int64_t row, const hr_call *call)
{
    const hr_modulate_attr *attr = call->attr;
    return hr_element_at(rows, row * attr->N, call->dtype);
}

void hr_modulate_run(const hr_call *call)
{
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    call->kernels->modulate.fwd(at_row(call->in[0], first, call), at_row(call->in[1], first, call),
                                at_row(call->out[0], first, call), last - first, call->attr,
                                call->dtype);
}

void hr_modulate_bwd_run(const hr_call *call)
{
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    call->kernels->modulate.bwd(at_row(call->in[0], first, call), at_row(call->in[1], first, call),
                                at_row(call->in[2], first, call), at_row(call->out[0], first, call),
                                at_row(call->out[1], first, call), last - first, call->attr,
                                call->dtype);
}

const hr_op_run hr_modulate_cpu_run = { hr_modulate_run, 1 };
const hr_op_run hr_modulate_bwd_cpu_run = { hr_modulate_bwd_run, 1 };
