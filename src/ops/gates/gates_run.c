/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates_run.c - gated branches, a head of a row at a time. Bound by memory: each operand
 * passes once. */
#include <math.h>

#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"

void hr_gates_run(const hr_call *call)
{
    const hr_gates_attr *attr = call->attr;
    const int64_t K = attr->head_width;
    int64_t first, last;
    hr_share(call->rows * attr->H, call->thread, call->threads, &first, &last);
    for (int64_t i = first; i < last; i++) {
        float gate[HR_GATES_MOST];
        for (int32_t b = 0; b < attr->branches; b++)
            gate[b] = 1 /
                      (1 + expf(-hr_element_get(call->in[0], i * attr->branches + b, call->dtype)));
        call->kernels->gates.sum(gate, &call->in[HR_GATES_X], attr->branches, call->out[0], i * K,
                                 K, call->dtype);
    }
}

void hr_gates_bwd_run(const hr_call *call)
{
    const hr_gates_attr *attr = call->attr;
    const int64_t K = attr->head_width;
    int64_t first, last;
    hr_share(call->rows * attr->H, call->thread, call->threads, &first, &last);
    for (int64_t i = first; i < last; i++)
        for (int32_t b = 0; b < attr->branches; b++) {
            const int64_t at = i * attr->branches + b;
            const float *lse = call->in[HR_GATES_LSE + b];
            float *shifted = call->out[HR_GATES_SHIFTED + b], *dots = call->out[HR_GATES_DOTS + b];
            /* The smaller of exp(z) and exp(-z) does not overflow. */
            const float z = hr_element_get(call->in[1], at, call->dtype), e = expf(-fabsf(z));
            dots[i] = call->kernels->gates.dot(call->in[0], call->in[HR_GATES_BWD_X + b], i * K, K,
                                               call->dtype);
            shifted[i] = lse[i] + log1pf(e) + fmaxf(-z, 0);
            hr_element_set(call->out[0], at, call->dtype, e / ((1 + e) * (1 + e)) * dots[i]);
        }
}

const hr_op_run hr_gates_cpu_run = { hr_gates_run, 1, NULL };
const hr_op_run hr_gates_bwd_cpu_run = { hr_gates_bwd_run, 1, NULL };
