/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dropout/dropout_run.c - splits the rows over threads. */
#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/dropout/dropout.h"
#include "ops/kernels.h"

void hr_dropout_run(const hr_call *call)
{
    const hr_dropout_attr *attr = call->attr;
    const int64_t D = attr->D;
    const uint32_t threshold = hr_random_threshold(attr->p);
    const float scale = (float)((double)attr->scale / (1 - (double)attr->p));
    const void *residual = call->in[1];
    const hr_random_stream stream = hr_random_stream_of(call->seed, (uint64_t)call->clock,
                                                        attr->site, 0);
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const int64_t row = call->row_first + r;
        const hr_random_row random = hr_random_row_of(stream, (uint32_t)(row / attr->T),
                                                      (uint32_t)(row % attr->T));
        call->kernels->dropout.row(hr_element_at(call->in[0], r * D, call->dtype),
                                   residual ? hr_element_at(residual, r * D, call->dtype) : NULL,
                                   hr_element_at(call->out[0], r * D, call->dtype), D, &random,
                                   threshold, scale, call->dtype);
    }
}

const hr_op_run hr_dropout_cpu_run = { hr_dropout_run, 1 };
