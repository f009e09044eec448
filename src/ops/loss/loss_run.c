/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss_run.c - splits the rows over threads; thread 0 then adds their losses in order. */
#include <string.h>

#include "ops/cpu_run.h"
#include "ops/element.h"
#include "ops/kernels.h"
#include "ops/loss/loss.h"

static void run_rows(const hr_call *call)
{
    const hr_loss_attr *attr = call->attr;
    const int64_t V = attr->V;
    const int32_t *targets = call->in[1];
    const double *scale = call->in[2];
    double *loss = call->scratch, *z_loss = attr->z > 0 ? loss + call->rows : NULL;
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const void *logits = hr_element_at(call->in[0], r * V, call->dtype);
        void *dlogits = call->out[1] ? hr_element_at(call->out[1], r * V, call->dtype) : NULL;
        if (targets[r] >= 0) {
            const hr_loss_row row = call->kernels->loss.row(
                logits, dlogits, V, targets[r], scale ? *scale : 1, attr->z, call->dtype);
            loss[r] = row.loss;
            if (z_loss) z_loss[r] = attr->z * row.log_sum * row.log_sum;
            continue;
        }
        loss[r] = 0;
        if (z_loss) z_loss[r] = 0;
        if (dlogits) memset(dlogits, 0, (size_t)(V * hr_dtype_bytes(call->dtype)));
    }
}

void hr_loss_run(const hr_call *call)
{
    if (call->phase == 0) {
        run_rows(call);
        return;
    }
    if (call->thread != 0) return;
    const int32_t sums = ((const hr_loss_attr *)call->attr)->z > 0 ? 2 : 1;
    const double *part = call->scratch;
    double *sum = call->out[0];
    for (int32_t i = 0; i < sums; i++, part += call->rows) {
        if (call->clear & 1u << 0) sum[i] = 0;
        for (int64_t r = 0; r < call->rows; r++) sum[i] += part[r];
    }
}

const hr_op_run hr_loss_cpu_run = { hr_loss_run, 2 };
