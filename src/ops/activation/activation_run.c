/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation_run.c - splits the rows over threads. */
#include "base/element.h"
#include "ops/activation/activation.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"

void hr_activation_run(const hr_call *call)
{
    const hr_linear_attr *attr = call->attr;
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    call->kernels->activation.stretch(hr_element_at(call->in[0], first * attr->N, call->dtype),
                                      hr_element_at(call->out[0], first * attr->N, call->dtype),
                                      (last - first) * attr->N, attr->act, call->dtype);
}

const hr_op_run hr_activation_cpu_run = { hr_activation_run, 1 };
