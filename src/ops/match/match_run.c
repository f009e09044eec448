/* SPDX-License-Identifier: Apache-2.0 */
/* ops/match/match_run.c - splits the rows over threads; thread 0 then adds their errors in
 * order. */
#include <string.h>

#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"
#include "ops/match/match.h"

static void run_rows(const hr_call *call)
{
    const hr_match_attr *attr = call->attr;
    const int64_t D = attr->D;
    const int32_t *labels = call->in[2];
    const double *scale = call->in[3];
    double *errors = call->scratch;
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        void *dy = call->out[1] ? hr_element_at(call->out[1], r * D, call->dtype) : NULL;
        errors[r] = 0;
        if (labels[r] >= 0)
            errors[r] = call->kernels->match.row(hr_element_at(call->in[0], r * D, call->dtype),
                                                 hr_element_at(call->in[1], r * D, call->dtype), dy,
                                                 D, attr->measure,
                                                 attr->weight * (scale ? *scale : 1), call->dtype);
        else if (dy) memset(dy, 0, (size_t)(D * hr_dtype_bytes(call->dtype)));
    }
}

void hr_match_run(const hr_call *call)
{
    const hr_match_attr *attr = call->attr;
    double *sums = call->out[0];
    const double *errors = call->scratch;
    if (call->phase == 0) {
        run_rows(call);
        return;
    }
    if (call->thread != 0) return;
    if (call->clear & 1u << 0) memset(sums, 0, (size_t)attr->slots * sizeof *sums);
    for (int64_t r = 0; r < call->rows; r++) sums[attr->slot] += attr->weight * errors[r];
}

const hr_op_run hr_match_cpu_run = { hr_match_run, 2 };
