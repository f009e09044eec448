/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_run.c - splits flat arrays over threads in runs of 4,096 elements; coefficients
 * are computed in double and rounded once. */
#include <math.h>

#include "base/checked.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"
#include "ops/update/masters.h"
#include "ops/update/moments.h"
#include "ops/update/update.h"

enum { RUN = HR_UPDATE_RUN_ELEMENTS };

/* The elements of this thread's runs. */
static void share_elements(const hr_call *call, int64_t elements, int64_t *first, int64_t *last)
{
    hr_share(hr_update_runs(elements), call->thread, call->threads, first, last);
    *first *= RUN;
    *last = hr_min(*last * RUN, elements);
}

/* Memory-bound, so compiler vectorisation suffices. */
void hr_merge_run(const hr_call *call)
{
    const float *other = call->in[0];
    float *gradient = call->out[0];
    int64_t first, last;
    share_elements(call, ((const hr_merge_attr *)call->attr)->elements, &first, &last);
    for (int64_t i = first; i < last; i++) gradient[i] += other[i];
}

/* Memory-bound, so compiler vectorisation suffices. */
static void follow(float *average, const float *master, int64_t count, float take)
{
    for (int64_t i = 0; i < count; i++) average[i] += take * (master[i] - average[i]);
}

void hr_average_run(const hr_call *call)
{
    enum { BLOCK = HR_MOMENT_BLOCK };
    const hr_average_attr *attr = call->attr;
    const hr_master master = { .kind = (hr_master_kind)attr->master,
                               .stored = (void *)call->in[0],
                               .residual = (void *)call->in[1] };
    const float take = (float)(1 - attr->decay);
    const int64_t most = master.kind == HR_MASTER_F32 ? attr->elements : BLOCK;
    float *average = call->out[0], values[BLOCK];
    int64_t first, last;
    share_elements(call, attr->elements, &first, &last);
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
        share_elements(call, elements, &first, &last);
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
    const double norm = sqrt(sum), ratio = attr->limit / (norm + 1e-6);
    norm_scale[0] = norm;
    norm_scale[1] = attr->limit <= 0 || ratio > 1 ? 1 : ratio;
}

/* ---- blocks of stored moments and masters */

enum { BLOCK = HR_MOMENT_BLOCK };

/* Whether a pass over flat arrays of fp32 does. */
static bool is_flat(const hr_call *call)
{
    const hr_update_attr *attr = call->attr;
    return attr->moments == HR_F32 && attr->master == HR_MASTER_F32;
}

/* Moment 0 or 1 of the update: output 1 + index, with scales in output `scales` + index. */
static hr_moment moment_of(const hr_call *call, int32_t index, int32_t scales)
{
    const hr_update_attr *attr = call->attr;
    return (hr_moment){ .stored = call->out[1 + index],
                        .scales = call->out[scales + index],
                        .map = hr_moment_map_of(index == 0),
                        .stream = hr_random_stream_of(call->seed, (uint64_t)call->clock,
                                                      HR_SITE_MOMENTS, (uint32_t)attr->param),
                        .stochastic = index == 1,
                        .element_first = attr->first + call->turn * attr->elements };
}

static hr_master master_of(const hr_call *call, int32_t residual)
{
    const hr_update_attr *attr = call->attr;
    return (hr_master){ .kind = (hr_master_kind)attr->master,
                        .stored = call->out[0],
                        .residual = attr->master == HR_MASTER_RESIDUAL ? call->out[residual] : NULL,
                        .stream = hr_random_stream_of(call->seed, (uint64_t)call->clock,
                                                      HR_SITE_MASTERS, (uint32_t)attr->param),
                        .element_first = attr->first + call->turn * attr->elements };
}

/* fp32 moments are updated in place. Returns where they are. */
static float *unpack_moment(const hr_call *call, const hr_moment *moment, int64_t first,
                            int64_t count, float *values)
{
    const hr_update_attr *attr = call->attr;
    if (attr->moments == HR_F32) return (float *)moment->stored + first;
    hr_moment_unpack(&call->kernels->update, moment, first, count, values);
    return values;
}

static void pack_moment(const hr_call *call, const hr_moment *moment, int64_t first, int64_t count,
                        const float *values)
{
    const hr_update_attr *attr = call->attr;
    if (attr->moments != HR_F32)
        hr_moment_pack(&call->kernels->update, moment, first, count, values);
}

static double gradient_scale(const hr_call *call)
{
    const double *norm_scale = call->in[1];
    return norm_scale ? norm_scale[1] : 1;
}

static void adamw_blocks(const hr_call *call, int64_t first, int64_t last,
                         const hr_adamw_factors *factors)
{
    const hr_update_kernels *kernels = &call->kernels->update;
    const hr_moment moments[] = { moment_of(call, 0, 4), moment_of(call, 1, 4) };
    const hr_master master = master_of(call, 6);
    const float *gradient = call->in[0];
    float blocks[3][BLOCK];
    hr_bf16 *weight = call->out[3];
    for (int64_t at = first; at < last; at += BLOCK) {
        const int64_t count = hr_min(BLOCK, last - at);
        float *w = hr_master_unpack(kernels, &master, at, count, blocks[0]);
        float *m = unpack_moment(call, &moments[0], at, count, blocks[1]);
        float *v = unpack_moment(call, &moments[1], at, count, blocks[2]);
        kernels->adamw(gradient + at, w, m, v, weight ? weight + at : NULL, count, factors);
        hr_master_pack(kernels, &master, at, count, w);
        pack_moment(call, &moments[0], at, count, m);
        pack_moment(call, &moments[1], at, count, v);
    }
}

void hr_adamw_run(const hr_call *call)
{
    const hr_update_attr *attr = call->attr;
    const double lr = attr->lr_scale * *(const double *)call->in[2];
    const double t = (double)call->clock + 1;
    const hr_adamw_factors factors = {
        .scale = (float)gradient_scale(call),
        .pull = (float)(attr->decoupled ? 0 : attr->decay),
        .keep1 = (float)attr->beta1,
        .take1 = (float)(1 - attr->beta1),
        .keep2 = (float)attr->beta2,
        .take2 = (float)(1 - attr->beta2),
        .shrink = (float)(attr->decoupled ? lr * attr->decay : 0),
        .rate = (float)(lr / (1 - pow(attr->beta1, t))),
        .debias2 = (float)(1 / (1 - pow(attr->beta2, t))),
        .eps = (float)attr->eps,
    };
    const float *gradient = call->in[0];
    float *master = call->out[0], *m = call->out[1], *v = call->out[2];
    hr_bf16 *weight = call->out[3];
    int64_t first, last;
    share_elements(call, attr->elements, &first, &last);
    if (first >= last) return;
    if (!is_flat(call)) adamw_blocks(call, first, last, &factors);
    else
        call->kernels->update.adamw(gradient + first, master + first, m + first, v + first,
                                    weight ? weight + first : NULL, last - first, &factors);
}

static void sgd_blocks(const hr_call *call, int64_t first, int64_t last,
                       const hr_sgd_factors *factors)
{
    const hr_update_kernels *kernels = &call->kernels->update;
    const hr_moment moment = moment_of(call, 0, 3);
    const hr_master master = master_of(call, 4);
    const float *gradient = call->in[0];
    float blocks[2][BLOCK];
    hr_bf16 *weight = call->out[2];
    for (int64_t at = first; at < last; at += BLOCK) {
        const int64_t count = hr_min(BLOCK, last - at);
        float *w = hr_master_unpack(kernels, &master, at, count, blocks[0]);
        float *m = unpack_moment(call, &moment, at, count, blocks[1]);
        kernels->sgd(gradient + at, w, m, weight ? weight + at : NULL, count, factors);
        hr_master_pack(kernels, &master, at, count, w);
        pack_moment(call, &moment, at, count, m);
    }
}

static void lion_blocks(const hr_call *call, int64_t first, int64_t last,
                        const hr_lion_factors *factors)
{
    const hr_update_kernels *kernels = &call->kernels->update;
    const hr_moment moment = moment_of(call, 0, 3);
    const hr_master master = master_of(call, 4);
    const float *gradient = call->in[0];
    float blocks[2][BLOCK];
    hr_bf16 *weight = call->out[2];
    for (int64_t at = first; at < last; at += BLOCK) {
        const int64_t count = hr_min(BLOCK, last - at);
        float *w = hr_master_unpack(kernels, &master, at, count, blocks[0]);
        float *m = unpack_moment(call, &moment, at, count, blocks[1]);
        kernels->lion(gradient + at, w, m, weight ? weight + at : NULL, count, factors);
        hr_master_pack(kernels, &master, at, count, w);
        pack_moment(call, &moment, at, count, m);
    }
}

void hr_sgd_run(const hr_call *call)
{
    const hr_update_attr *attr = call->attr;
    const double lr = attr->lr_scale * *(const double *)call->in[2];
    const hr_sgd_factors factors = {
        .scale = (float)gradient_scale(call),
        .pull = (float)attr->decay,
        .keep = (float)attr->beta1,
        .rate = (float)lr,
    };
    const float *gradient = call->in[0];
    float *master = call->out[0], *m = call->out[1];
    hr_bf16 *weight = call->out[2];
    int64_t first, last;
    share_elements(call, attr->elements, &first, &last);
    if (first >= last) return;
    if (!is_flat(call)) sgd_blocks(call, first, last, &factors);
    else
        call->kernels->update.sgd(gradient + first, master + first, m + first,
                                  weight ? weight + first : NULL, last - first, &factors);
}

void hr_lion_run(const hr_call *call)
{
    const hr_update_attr *attr = call->attr;
    const double lr = attr->lr_scale * *(const double *)call->in[2];
    const hr_lion_factors factors = {
        .scale = (float)gradient_scale(call),
        .keep1 = (float)attr->beta1,
        .take1 = (float)(1 - attr->beta1),
        .keep2 = (float)attr->beta2,
        .take2 = (float)(1 - attr->beta2),
        .shrink = (float)(lr * attr->decay),
        .rate = (float)lr,
    };
    const float *gradient = call->in[0];
    float *master = call->out[0], *m = call->out[1];
    hr_bf16 *weight = call->out[2];
    int64_t first, last;
    share_elements(call, attr->elements, &first, &last);
    if (first >= last) return;
    if (!is_flat(call)) lion_blocks(call, first, last, &factors);
    else
        call->kernels->update.lion(gradient + first, master + first, m + first,
                                   weight ? weight + first : NULL, last - first, &factors);
}

const hr_op_run hr_merge_cpu_run = { hr_merge_run, 1 };
const hr_op_run hr_average_cpu_run = { hr_average_run, 1 };
const hr_op_run hr_sumsq_cpu_run = { hr_sumsq_run, 2 };
const hr_op_run hr_clip_cpu_run = { hr_clip_run, 1 };
const hr_op_run hr_adamw_cpu_run = { hr_adamw_run, 1 };
const hr_op_run hr_sgd_cpu_run = { hr_sgd_run, 1 };
const hr_op_run hr_lion_cpu_run = { hr_lion_run, 1 };
