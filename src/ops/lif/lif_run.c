/* SPDX-License-Identifier: Apache-2.0 */
/* ops/lif/lif_run.c - divides neurons and sequences among threads. */
#include <string.h>

#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"
#include "ops/lif/lif_scratch.h"

/* Neurons from c on, in a sequence of T tokens from `row` on. */
static hr_lif_part part_of(const hr_call *call, int64_t c, int64_t row, int64_t T)
{
    return (hr_lif_part){ .attr = call->attr,
                          .w = (const float *)call->in[2] + c,
                          .tokens = hr_min(T, call->rows - row),
                          .dtype = call->dtype };
}

void hr_lif_run(const hr_call *call)
{
    const hr_lif_attr *attr = call->attr;
    float *state = call->out[1];
    const int64_t T = state ? hr_max(call->rows, 1) : attr->T;
    const int64_t blocks = attr->C / attr->block, sequences = (call->rows + T - 1) / T;
    int64_t first, last;
    hr_share(blocks * sequences, call->thread, call->threads, &first, &last);
    for (int64_t i = first; i < last; i++) {
        const int64_t c = i % blocks * attr->block, row = i / blocks * T, at = row * attr->C + c;
        const hr_lif_part part = part_of(call, c, row, T);
        call->kernels->lif.fwd(&part, hr_element_at(call->in[0], at, call->dtype),
                               hr_element_at(call->in[1], at, call->dtype),
                               hr_element_at(call->out[0], at, call->dtype),
                               state ? state + c : NULL);
    }
}

void hr_lif_bwd_run(const hr_call *call)
{
    const hr_lif_attr *attr = call->attr;
    char *scratch = (char *)call->scratch + call->thread * hr_lif_scratch_of(attr).bytes;
    float *dw = call->out[1];
    int64_t first, last;
    hr_share(attr->C / attr->block, call->thread, call->threads, &first, &last);
    for (int64_t block = first; block < last; block++) {
        const int64_t c = block * attr->block;
        for (int64_t j = 0; j < attr->synapses && dw && call->clear & 2; j++)
            memset(dw + j * attr->C + c, 0, (size_t)attr->block * sizeof *dw);
        for (int64_t row = 0; row < call->rows; row += attr->T) {
            const int64_t at = row * attr->C + c;
            const hr_lif_part part = part_of(call, c, row, attr->T);
            call->kernels->lif.bwd(&part, hr_element_at(call->in[0], at, call->dtype),
                                   hr_element_at(call->in[1], at, call->dtype),
                                   hr_element_at(call->out[0], at, call->dtype), scratch,
                                   dw ? dw + c : NULL);
        }
    }
}

const hr_op_run hr_lif_cpu_run = { hr_lif_run, 1 };
const hr_op_run hr_lif_bwd_cpu_run = { hr_lif_bwd_run, 1 };
