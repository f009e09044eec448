/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_ref.c - reference implementation of attention: every sum in double, one
 * row at a time. */
#include <math.h>

#include "base/checked.h"
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

/* The factor of p[i,j] for dropout: 0 if dropped, otherwise keep_scale. */
static double keep(const hr_attention_task *task, int64_t i, int64_t j)
{
    if (!task->drops) return 1;
    hr_random_row row = task->random;
    row.counter[1] += (uint32_t)i;
    const uint32_t bits = hr_random_element(&row, (uint64_t)j);
    return bits < task->threshold ? 0 : (double)task->keep_scale;
}

/* Row `row` of q and o is query i; key j is row j mod `ring` of k and v. Returns the
 * log-sum-exp. */
static double forward_row(const hr_attention_task *task, int64_t row, int64_t i, int64_t ring)
{
    double *sums = task->scratch; /* [head_width] */
    double max_score = -INFINITY, total = 0;
    for (int64_t j = 0; j <= i; j++)
        if (seen(task, i, j))
            max_score = fmax(max_score,
                             (double)task->scale * dot(task, task->q, row, task->k, j % ring));
    for (int64_t c = 0; c < task->head_width; c++) sums[c] = 0;
    for (int64_t j = 0; j <= i; j++) {
        if (!seen(task, i, j)) continue;
        const double score = (double)task->scale * dot(task, task->q, row, task->k, j % ring);
        const double p = exp(score - max_score), kept = keep(task, i, j) * p;
        total += p;
        for (int64_t c = 0; c < task->head_width; c++)
            sums[c] += kept * element(task, task->v, j % ring, c);
    }
    for (int64_t c = 0; c < task->head_width; c++)
        set_element(task, task->o, row, c, sums[c] / total);
    return max_score + log(total);
}

void hr_attention_fwd_ref(const hr_attention_task *task)
{
    for (int64_t i = 0; i < task->length; i++) {
        const double lse = forward_row(task, i, i, task->length);
        if (task->lse) task->lse[i * task->lse_stride] = (float)lse;
    }
}

void hr_attention_cached_ref(const hr_attention_cached_task *task)
{
    hr_attention_task head = task->head;
    for (int64_t h = 0; h < task->heads; h++) {
        head.q.first = hr_element_at(task->head.q.first, h * task->q_head_stride, head.dtype);
        head.o.first = hr_element_at(task->head.o.first, h * task->o_head_stride, head.dtype);
        for (int64_t row = 0; row < head.length; row++)
            forward_row(&head, row, task->position + row, task->capacity);
    }
}

/* Adds the contribution of query i to dk and dv, and writes row i of dq. */
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
    /* dk and dv accumulate over the group */
    double *dk = task->scratch, *dv = dk + count, *dq = dv + count;
    for (int64_t i = 0; task->first && i < 2 * count; i++) dk[i] = 0;
    for (int64_t i = 0; i < task->length; i++) backward_row(task, i, dq, dk, dv);
    for (int64_t j = 0; task->last && j < task->length; j++)
        for (int64_t c = 0; c < task->head_width; c++) {
            set_element(task, task->dk, j, c, dk[j * task->head_width + c]);
            set_element(task, task->dv, j, c, dv[j * task->head_width + c]);
        }
}
