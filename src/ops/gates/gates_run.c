/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates_run.c - a gated branch, a head of a row at a time. Bound by memory: 3 passes
 * forward and backward. */
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
    const int64_t K = attr->head_width;
    const void *x = call->in[1], *residual = call->in[2];
    int64_t first, last;
    hr_share(call->rows * attr->H, call->thread, call->threads, &first, &last);
    for (int64_t i = first; i < last; i++) {
        const float gate = gate_of(call, call->in[0], i * attr->branches + attr->branch);
        for (int64_t c = i * K; c < (i + 1) * K; c++) {
            const float before = residual ? hr_element_get(residual, c, call->dtype) : 0;
            hr_element_set(call->out[0], c, call->dtype,
                           gate * hr_element_get(x, c, call->dtype) + before);
        }
    }
}

void hr_gates_bwd_run(const hr_call *call)
{
    const hr_gates_attr *attr = call->attr;
    const int64_t K = attr->head_width;
    const void *d_o = call->in[0], *x = call->in[2], *addend = call->in[3];
    float *dots = call->out[2];
    int64_t first, last;
    hr_share(call->rows * attr->H, call->thread, call->threads, &first, &last);
    for (int64_t i = first; i < last; i++) {
        const int64_t at = i * attr->branches, own = at + attr->branch;
        const float gate = gate_of(call, call->in[1], own);
        float sum = 0, product = 0;
        for (int64_t c = i * K; c < (i + 1) * K; c++) {
            const float d = hr_element_get(d_o, c, call->dtype);
            const float value = hr_element_get(x, c, call->dtype);
            sum += d * value;
            hr_element_set(call->out[1], c, call->dtype, gate * d);
            product += hr_element_get(call->out[1], c, call->dtype) * value;
        }
        if (dots) dots[i] = product;
        for (int64_t b = at; b < at + attr->branches; b++)
            hr_element_set(call->out[0], b, call->dtype,
                           (addend ? hr_element_get(addend, b, call->dtype) : 0) +
                               (b == own ? gate * (1 - gate) * sum : 0));
    }
}

const hr_op_run hr_gates_cpu_run = { hr_gates_run, 1, NULL };
const hr_op_run hr_gates_bwd_cpu_run = { hr_gates_bwd_run, 1, NULL };
