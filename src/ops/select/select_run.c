/* SPDX-License-Identifier: Apache-2.0 */
/* ops/select/select_run.c - copies of rows, which threads share. */
#include <string.h>

#include "base/element.h"
#include "base/random.h"
#include "ops/cpu_run.h"
#include "ops/select/select.h"

static double share_at(const hr_select_attr *attr, int64_t step)
{
    double share = 0;
    for (int32_t i = 0; i < attr->phases && attr->phase[i].step <= step; i++)
        share = attr->phase[i].share;
    return share;
}

void hr_select_run(const hr_call *call)
{
    const hr_select_attr *attr = call->attr;
    const double share = share_at(attr, call->clock);
    const size_t bytes = (size_t)(attr->D * hr_dtype_bytes(call->dtype));
    const hr_random_stream stream = hr_random_stream_of(call->seed, (uint64_t)call->clock,
                                                        attr->site, 0);
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const hr_random_row random = hr_random_row_of(
            stream, (uint32_t)((call->row_first + r) / attr->T), 0);
        const bool takes_y = hr_random_unit(hr_random_wide(&random, 0)) < share;
        const void *from = call->in[takes_y ? 0 : 1];
        void *to = hr_element_at(call->out[0], r * attr->D, call->dtype);
        if (from) memmove(to, hr_element_at(from, r * attr->D, call->dtype), bytes);
        else memset(to, 0, bytes);
    }
}

const hr_op_run hr_select_cpu_run = { hr_select_run, 1 };
