/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates_run.c - gated branches, a head of a row at a time. Bound by memory: three
 * branches and their sum are 4 passes forward and 7 backward. */
#include <math.h>

#include "ops/cpu_run.h"
#include "ops/element.h"
#include "ops/gates/gates.h"

static float gate_of(const hr_call *call, const void *z, int64_t at)
{
    return 1 / (1 + expf(-hr_element_get(z, at, call->dtype)));
}

void hr_gates_run(const hr_call *call)
{
    const hr_gates_attr *attr = call->attr;
    const int64_t K = attr->head_width, heads = call->rows * attr->H;
    int64_t first, last;
    hr_share(heads, call->thread, call->threads, &first, &last);
    for (int64_t i = first; i < last; i++) {
        float gates[HR_GATES_MOST];
        for (int32_t b = 0; b < attr->branches; b++)
            gates[b] = gate_of(call, call->in[0], i * attr->branches + b);
        for (int64_t c = i * K; c < (i + 1) * K; c++) {
            float sum = 0;
            for (int32_t b = 0; b < attr->branches; b++)
                sum += gates[b] * hr_element_get(call->in[1 + b], c, call->dtype);
            hr_element_set(call->out[0], c, call->dtype, sum);
        }
    }
}

void hr_gates_bwd_run(const hr_call *call)
{
    const hr_gates_attr *attr = call->attr;
    const int64_t K = attr->head_width, heads = call->rows * attr->H;
    int64_t first, last;
    hr_share(heads, call->thread, call->threads, &first, &last);
    for (int64_t i = first; i < last; i++)
        for (int32_t b = 0; b < attr->branches; b++) {
            const int64_t at = i * attr->branches + b;
            const float gate = gate_of(call, call->in[1], at);
            float sum = 0;
            for (int64_t c = i * K; c < (i + 1) * K; c++) {
                const float d = hr_element_get(call->in[0], c, call->dtype);
                sum += d * hr_element_get(call->in[2 + b], c, call->dtype);
                hr_element_set(call->out[1 + b], c, call->dtype, gate * d);
            }
            hr_element_set(call->out[0], at, call->dtype, gate * (1 - gate) * sum);
        }
}

const hr_op_run hr_gates_cpu_run = { hr_gates_run, 1, NULL };
const hr_op_run hr_gates_bwd_cpu_run = { hr_gates_bwd_run, 1, NULL };
