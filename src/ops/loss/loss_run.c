/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss_run.c - splits the rows over threads; thread 0 then adds their losses in order. */
#include <math.h>
#include <string.h>

#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"
#include "ops/loss/loss.h"

static hr_loss_columns columns_of(const hr_call *call, int64_t row)
{
    const hr_loss_attr *attr = call->attr;
    return (hr_loss_columns){ .logits = hr_element_at(call->in[0], row * attr->V, call->dtype),
                              .first = attr->first,
                              .V = attr->V,
                              .target = ((const int32_t *)call->in[1])[row],
                              .dtype = call->dtype };
}

static void clear_row(const hr_call *call, void *dlogits)
{
    const hr_loss_attr *attr = call->attr;
    if (dlogits) memset(dlogits, 0, (size_t)(attr->V * hr_dtype_bytes(call->dtype)));
}

/* The losses of a row; 0 without a target. */
static void keep_loss(const hr_call *call, int64_t row, const hr_loss_part *part)
{
    const double z = ((const hr_loss_attr *)call->attr)->z;
    double *loss = call->scratch, *z_loss = z > 0 ? loss + call->rows : NULL;
    const double log_sum = part ? hr_loss_log_sum(part) : 0;
    loss[row] = part ? log_sum - part->logit : 0;
    if (z_loss) z_loss[row] = part ? z * log_sum * log_sum : 0;
}

static void add_losses(const hr_call *call, int32_t out)
{
    const int32_t sums = ((const hr_loss_attr *)call->attr)->z > 0 ? 2 : 1;
    const double *part = call->scratch;
    double *sum = call->out[out];
    if (call->thread != 0 || !sum) return;
    for (int32_t i = 0; i < sums; i++, part += call->rows) {
        if (call->clear & 1u << out) sum[i] = 0;
        for (int64_t r = 0; r < call->rows; r++) sum[i] += part[r];
    }
}

static void run_rows(const hr_call *call)
{
    const hr_loss_attr *attr = call->attr;
    const double *scale = call->in[2];
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const hr_loss_columns columns = columns_of(call, r);
        void *dlogits = call->out[1] ? hr_element_at(call->out[1], r * attr->V, call->dtype) : NULL;
        hr_loss_part part = { 0, -INFINITY, 0 };
        if (columns.target >= 0)
            call->kernels->loss.row(&columns, &part,
                                    (hr_loss_factors){ scale ? *scale : 1, attr->z }, dlogits);
        else clear_row(call, dlogits);
        keep_loss(call, r, columns.target >= 0 ? &part : NULL);
    }
}

void hr_loss_run(const hr_call *call)
{
    if (call->phase == 0) run_rows(call);
    else add_losses(call, 0);
}

static void run_parts(const hr_call *call)
{
    const hr_loss_part *before = call->in[2];
    hr_loss_part *parts = call->out[0];
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const hr_loss_columns columns = columns_of(call, r);
        parts[r] = before ? before[r] : (hr_loss_part){ 0, -INFINITY, 0 };
        if (columns.target >= 0) call->kernels->loss.add(&columns, &parts[r]);
        if (call->out[1]) keep_loss(call, r, columns.target >= 0 ? &parts[r] : NULL);
    }
}

void hr_loss_part_run(const hr_call *call)
{
    if (call->phase == 0) run_parts(call);
    else add_losses(call, 1);
}

void hr_loss_dx_run(const hr_call *call)
{
    const hr_loss_attr *attr = call->attr;
    const double *scale = call->in[2];
    const hr_loss_part *parts = call->in[3];
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const hr_loss_columns columns = columns_of(call, r);
        void *dlogits = hr_element_at(call->out[0], r * attr->V, call->dtype);
        if (columns.target < 0) clear_row(call, dlogits);
        else
            call->kernels->loss.gradient(&columns, &parts[r],
                                         (hr_loss_factors){ scale ? *scale : 1, attr->z }, dlogits);
    }
}

const hr_op_run hr_loss_cpu_run = { hr_loss_run, 2 };
const hr_op_run hr_loss_part_cpu_run = { hr_loss_part_run, 2 };
const hr_op_run hr_loss_dx_cpu_run = { hr_loss_dx_run, 1 };
