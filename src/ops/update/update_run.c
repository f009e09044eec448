/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_run.c - splits flat arrays over threads in runs of 4,096 elements; coefficients
 * are computed in double and rounded once. */
#include <math.h>

#include "ops/cpu_run.h"
#include "ops/kernels.h"
#include "ops/update/update_blocks.h"

enum { RUN = HR_UPDATE_RUN_ELEMENTS, BLOCK = HR_MOMENT_BLOCK };

/* Memory-bound, so compiler vectorisation suffices. */
void hr_merge_run(const hr_call *call)
{
    const float *other = call->in[0];
    float *gradient = call->out[0];
    int64_t first, last;
    hr_update_share(call, ((const hr_merge_attr *)call->attr)->elements, &first, &last);
    for (int64_t i = first; i < last; i++) gradient[i] += other[i];
}

/* Memory-bound, so compiler vectorisation suffices. */
static void follow(float *average, const float *master, int64_t count, float take)
{
    for (int64_t i = 0; i < count; i++) average[i] += take * (master[i] - average[i]);
}

void hr_average_run(const hr_call *call)
{
    const hr_average_attr *attr = call->attr;
    const hr_master master = { .kind = (hr_master_kind)attr->master,
                               .stored = (void *)call->in[0],
                               .residual = (void *)call->in[1] };
    const float take = (float)(1 - attr->decay);
    const int64_t most = master.kind == HR_MASTER_F32 ? attr->elements : BLOCK;
    float *average = call->out[0], values[BLOCK];
    int64_t first, last;
    hr_update_share(call, attr->elements, &first, &last);
    for (int64_t at = first; at < last; at += most) {
        const int64_t count = hr_min(most, last - at);
        follow(average + at, hr_master_unpack(&call->kernels->update, &master, at, count, values),
               count, take);
    }
}

void hr_sumsq_run(const hr_call *call)
{
    const int64_t elements = ((const hr_sumsq_attr *)call->attr)->elements;
    const float *gradient = call->in[0];
    double *runs = call->scratch;
    if (call->phase == 0) {
        int64_t first, last;
        hr_update_share(call, elements, &first, &last);
        if (first < last)
            call->kernels->update.sumsq(gradient + first, last - first, runs + first / RUN);
        return;
    }
    if (call->thread != 0) return;
    double *part = call->out[0], sum = call->clear & 1 ? 0 : *part;
    for (int64_t k = 0; k < hr_update_runs(elements); k++) sum += runs[k];
    *part = sum;
}

/* A NaN norm makes the scale NaN, so a broken gradient stays visible. */
void hr_clip_run(const hr_call *call)
{
    const hr_clip_attr *attr = call->attr;
    const double *parts = call->in[0];
    double *norm_scale = call->out[0], sum = 0;
    if (call->thread != 0) return;
    for (int64_t i = 0; i < attr->count; i++) sum += parts[i];
    const double loss_scale = call->in[1] ? ((const double *)call->in[1])[1] : 1;
    const double norm = sqrt(sum) / loss_scale, ratio = attr->limit / (norm + 1e-6);
    norm_scale[0] = norm;
    norm_scale[1] = (attr->limit <= 0 || ratio > 1 ? 1 : ratio) / loss_scale;
}

/* ---- updates */

/* Elements that are updated at a time: all of this thread, if every state is fp32. */
static int64_t step_of(const hr_call *call, int64_t first, int64_t last)
{
    const hr_update_attr *attr = call->attr;
    const bool flat = attr->moments == HR_F32 && attr->master == HR_MASTER_F32;
    return flat ? last - first : BLOCK;
}

static void run_adamw(const hr_call *call, const hr_adamw_factors *factors)
{
    const hr_update_kernels *kernels = &call->kernels->update;
    const hr_moment moments[] = { hr_update_moment(call, 0, 4), hr_update_moment(call, 1, 4) };
    const hr_master master = hr_update_master(call, 6);
    const float *gradient = call->in[0];
    float blocks[3][BLOCK];
    hr_bf16 *weight = call->out[3];
    int64_t first, last;
    hr_update_share(call, ((const hr_update_attr *)call->attr)->elements, &first, &last);
    const int64_t step = step_of(call, first, last);
    for (int64_t at = first; at < last; at += step) {
        const int64_t count = hr_min(step, last - at);
        float *w = hr_master_unpack(kernels, &master, at, count, blocks[0]);
        hr_bf16 *copy = weight ? weight + at : NULL;
        if (moments[0].scales) {
            const hr_coded_moment coded[] = { hr_moment_block(&moments[0], at),
                                              hr_moment_block(&moments[1], at) };
            kernels->adamw_codes(gradient + at, w, coded, copy, count, factors);
            hr_master_pack(kernels, &master, at, count, w);
            continue;
        }
        float *m = hr_update_unpack(call, &moments[0], at, count, blocks[1]);
        float *v = hr_update_unpack(call, &moments[1], at, count, blocks[2]);
        kernels->adamw(gradient + at, w, m, v, copy, count, factors);
        hr_master_pack(kernels, &master, at, count, w);
        hr_update_pack(call, &moments[0], at, count, m);
        hr_update_pack(call, &moments[1], at, count, v);
    }
}

void hr_adamw_run(const hr_call *call)
{
    const hr_update_attr *attr = call->attr;
    const double lr = attr->lr_scale * *(const double *)call->in[2];
    const double t = hr_update_number(call);
    const hr_adamw_factors factors = {
        .scale = (float)hr_update_scale(call),
        .pull = (float)(attr->decoupled ? 0 : attr->decay),
        .keep1 = (float)attr->beta1,
        .take1 = (float)(1 - attr->beta1),
        .keep2 = (float)attr->beta2,
        .take2 = (float)(1 - attr->beta2),
        .shrink = (float)(attr->decoupled ? lr * attr->decay : 0),
        .rate = (float)(lr / (1 - pow(attr->beta1, t))),
        .debias2 = (float)(1 / sqrt(1 - pow(attr->beta2, t))),
        .eps = (float)attr->eps,
    };
    run_adamw(call, &factors);
}

/* sgd or lion on adjacent elements. */
typedef void momentum_fn(const hr_update_kernels *kernels, const float *gradient, float *master,
                         float *m, hr_bf16 *weight, int64_t count, const void *factors);

static void sgd(const hr_update_kernels *kernels, const float *gradient, float *master, float *m,
                hr_bf16 *weight, int64_t count, const void *factors)
{
    kernels->sgd(gradient, master, m, weight, count, factors);
}

static void lion(const hr_update_kernels *kernels, const float *gradient, float *master, float *m,
                 hr_bf16 *weight, int64_t count, const void *factors)
{
    kernels->lion(gradient, master, m, weight, count, factors);
}

/* The elements of this thread. */
static void run_momentum(const hr_call *call, momentum_fn *update, const void *factors)
{
    const hr_update_kernels *kernels = &call->kernels->update;
    const hr_moment moment = hr_update_moment(call, 0, 3);
    const hr_master master = hr_update_master(call, 4);
    const float *gradient = call->in[0];
    float blocks[2][BLOCK];
    hr_bf16 *weight = call->out[2];
    int64_t first, last;
    hr_update_share(call, ((const hr_update_attr *)call->attr)->elements, &first, &last);
    const int64_t step = step_of(call, first, last);
    for (int64_t at = first; at < last; at += step) {
        const int64_t count = hr_min(step, last - at);
        float *w = hr_master_unpack(kernels, &master, at, count, blocks[0]);
        float *m = hr_update_unpack(call, &moment, at, count, blocks[1]);
        update(kernels, gradient + at, w, m, weight ? weight + at : NULL, count, factors);
        hr_master_pack(kernels, &master, at, count, w);
        hr_update_pack(call, &moment, at, count, m);
    }
}

void hr_sgd_run(const hr_call *call)
{
    const hr_update_attr *attr = call->attr;
    const double lr = attr->lr_scale * *(const double *)call->in[2];
    const hr_sgd_factors factors = {
        .scale = (float)hr_update_scale(call),
        .pull = (float)attr->decay,
        .keep = (float)attr->beta1,
        .rate = (float)lr,
    };
    run_momentum(call, sgd, &factors);
}

void hr_lion_run(const hr_call *call)
{
    const hr_update_attr *attr = call->attr;
    const double lr = attr->lr_scale * *(const double *)call->in[2];
    const hr_lion_factors factors = {
        .scale = (float)hr_update_scale(call),
        .keep1 = (float)attr->beta1,
        .take1 = (float)(1 - attr->beta1),
        .keep2 = (float)attr->beta2,
        .take2 = (float)(1 - attr->beta2),
        .shrink = (float)(lr * attr->decay),
        .rate = (float)lr,
    };
    run_momentum(call, lion, &factors);
}

const hr_op_run hr_merge_cpu_run = { hr_merge_run, 1 };
const hr_op_run hr_average_cpu_run = { hr_average_run, 1 };
const hr_op_run hr_sumsq_cpu_run = { hr_sumsq_run, 2 };
const hr_op_run hr_clip_cpu_run = { hr_clip_run, 1 };
const hr_op_run hr_adamw_cpu_run = { hr_adamw_run, 1 };
const hr_op_run hr_sgd_cpu_run = { hr_sgd_run, 1 };
const hr_op_run hr_lion_cpu_run = { hr_lion_run, 1 };
