/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_ref.c - the specification of attention: every sum in double, one row at a
 * time. */
#include <math.h>

#include "base/checked.h"
#include "base/random.h"
#include "ops/attention/attention_kernels.h"
#include "ops/element.h"

static double element(const hr_attention_task *task, hr_attention_rows rows, int64_t row, int64_t c)
{
    return (double)hr_element_get(rows.first, row * rows.stride + c, task->dtype);
}

static void set_element(const hr_attention_task *task, hr_attention_rows rows, int64_t row,
                        int64_t c, double value)
{
    hr_element_set(rows.first, row * rows.stride + c, task->dtype, (float)value);
}

static double dot(const hr_attention_task *task, hr_attention_rows a, int64_t i,
                  hr_attention_rows b, int64_t j)
{
    double sum = 0;
    for (int64_t c = 0; c < task->head_width; c++)
        sum += element(task, a, i, c) * element(task, b, j, c);
    return sum;
}

static bool seen(const hr_attention_task *task, int64_t i, int64_t j)
{
    return hr_attention_keeps(&task->mask, i, j);
}

/* 0 where dropout drops p[i,j], else what p is multiplied by. */
static double keep(const hr_attention_task *task, int64_t i, int64_t j)
{
    if (!task->key_low) return 1;
    const uint64_t key = (uint64_t)task->key_high[i] << 32 | task->key_low[i];
    const uint32_t bits = hr_random_element(key, task->element_first + (uint32_t)j);
    return bits < task->threshold ? 0 : (double)task->keep_scale;
}

void hr_attention_fwd_ref(const hr_attention_task *task)
{
    double *p = task->scratch; /* [length] */
    for (int64_t i = 0; i < task->length; i++) {
        double most = -INFINITY, total = 0;
        for (int64_t j = 0; j <= i; j++) {
            if (!seen(task, i, j)) continue;
            p[j] = (double)task->scale * dot(task, task->q, i, task->k, j);
            most = fmax(most, p[j]);
        }
        for (int64_t j = 0; j <= i; j++)
            if (seen(task, i, j)) total += p[j] = exp(p[j] - most);
        for (int64_t c = 0; c < task->head_width; c++) {
            double sum = 0;
            for (int64_t j = 0; j <= i; j++)
                if (seen(task, i, j)) sum += keep(task, i, j) * p[j] * element(task, task->v, j, c);
            set_element(task, task->o, i, c, sum / total);
        }
        if (task->lse) task->lse[i * task->lse_stride] = (float)(most + log(total));
    }
}

/* Adds to dk and dv what query i gives, and writes row i of dq. */
static void backward_row(const hr_attention_task *task, int64_t i, double *dq, double *dk,
                         double *dv)
{
    const int64_t width = task->head_width;
    const double delta = dot(task, task->grad_o, i, task->o, i);
    for (int64_t c = 0; c < width; c++) dq[c] = 0;
    for (int64_t j = 0; j <= i; j++) {
        if (!seen(task, i, j)) continue;
        const double score = (double)task->scale * dot(task, task->q, i, task->k, j);
        const double p = exp(score - (double)task->lse[i * task->lse_stride]);
        const double kept = keep(task, i, j);
        const double ds = p * (kept * dot(task, task->grad_o, i, task->v, j) - delta);
        for (int64_t c = 0; c < width; c++) {
            dq[c] += (double)task->scale * ds * element(task, task->k, j, c);
            dk[j * width + c] += (double)task->scale * ds * element(task, task->q, i, c);
            dv[j * width + c] += kept * p * element(task, task->grad_o, i, c);
        }
    }
    for (int64_t c = 0; c < width; c++) set_element(task, task->dq, i, c, dq[c]);
}

void hr_attention_bwd_ref(const hr_attention_task *task)
{
    const int64_t count = task->length * task->head_width;
    double *dk = task->scratch, *dv = dk + count, *dq = dv + count; /* carried through the group */
    for (int64_t i = 0; task->first && i < 2 * count; i++) dk[i] = 0;
    for (int64_t i = 0; i < task->length; i++) backward_row(task, i, dq, dk, dv);
    for (int64_t j = 0; task->last && j < task->length; j++)
        for (int64_t c = 0; c < task->head_width; c++) {
            set_element(task, task->dk, j, c, dk[j * task->head_width + c]);
            set_element(task, task->dv, j, c, dv[j * task->head_width + c]);
        }
}
