/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu_run.c - splits the rows over threads. */
#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/glu/glu.h"
#include "ops/kernels.h"

void hr_glu_run(const hr_call *call)
{
    const hr_glu_attr *attr = call->attr;
    const hr_dtype dtype = call->dtype;
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    const int64_t at = first * attr->N;
    call->kernels->glu.fwd(hr_element_at(call->in[0], at, dtype),
                           hr_element_at(call->in[1], at, dtype),
                           hr_element_at(call->out[0], at, dtype), (last - first) * attr->N, dtype);
}

void hr_glu_bwd_run(const hr_call *call)
{
    const hr_glu_attr *attr = call->attr;
    const hr_dtype dtype = call->dtype;
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    const int64_t at = first * attr->N;
    call->kernels->glu.bwd(
        hr_element_at(call->in[0], at, dtype), hr_element_at(call->in[1], at, dtype),
        hr_element_at(call->in[2], at, dtype), hr_element_at(call->out[0], at, dtype),
        hr_element_at(call->out[1], at, dtype), (last - first) * attr->N, dtype);
}

const hr_op_run hr_glu_cpu_run = { hr_glu_run, 1 };
const hr_op_run hr_glu_bwd_cpu_run = { hr_glu_bwd_run, 1 };
