/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_ref.c - reference implementation of attention, one row at a time: scores
 * and outputs in double, sums of gradients in fp32. */
#include <math.h>

#include "base/checked.h"
#include "base/element.h"
#include "ops/attention/attention_kernels.h"
#include "ops/attention/attention_pattern.h"

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
    const int64_t keys = hr_attention_keys_seen(&task->mask, i);
    for (int64_t j = 0; j < keys; j++)
        if (seen(task, i, j))
            max_score = fmax(max_score,
                             (double)task->scale * dot(task, task->q, row, task->k, j % ring));
    for (int64_t c = 0; c < task->head_width; c++) sums[c] = 0;
    for (int64_t j = 0; j < keys; j++) {
        if (!seen(task, i, j)) continue;
        const double score = (double)task->scale * dot(task, task->q, row, task->k, j % ring);
        const double p = exp(score - max_score), kept = keep(task, i, j) * p;
        total += p;
        for (int64_t c = 0; c < task->head_width; c++)
            sums[c] += kept * element(task, task->v, j % ring, c);
    }
    for (int64_t c = 0; c < task->head_width; c++)
        set_element(task, task->o, row, c, keys ? sums[c] / total : 0);
    return keys ? max_score + log(total) : 0;
}

void hr_attention_fwd_ref(const hr_attention_task *task)
{
    for (int64_t i = 0; i < task->length; i++) {
        const double lse = forward_row(task, i, task->query + i, INT64_MAX);
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

/* Whether query i of the task sees key j. */
static bool sees(const hr_attention_task *task, int64_t i, int64_t j)
{
    return seen(task, task->query + i, j);
}

/* The weight of query i of the task at key j, and the gradient of its score. */
static double weight(const hr_attention_task *task, int64_t i, int64_t j, double *ds)
{
    const int64_t query = task->query + i;
    const double score = (double)task->scale * dot(task, task->q, i, task->k, j);
    const double p = exp(score - (double)task->lse[i * task->lse_stride]);
    const double kept = keep(task, query, j);
    const double delta = task->dots ? (double)task->dots[i * task->lse_stride]
                                    : dot(task, task->grad_o, i, task->o, i);
    *ds = p * (kept * dot(task, task->grad_o, i, task->v, j) - delta);
    return p * kept / (double)task->keep_scale;
}

/* Adds factor x row to sums in fp32, term by term, so that parts of a sequence add up to the same
 * bits. */
static void add(const hr_attention_task *task, float *sums, double factor, hr_attention_rows rows,
                int64_t row)
{
    for (int64_t c = 0; c < task->head_width; c++)
        sums[c] = (float)((double)sums[c] + factor * element(task, rows, row, c));
}

static void clear(const hr_attention_task *task, float *sums)
{
    for (int64_t c = 0; c < task->head_width; c++) sums[c] = 0;
}

void hr_attention_bwd_ref(const hr_attention_task *task)
{
    const int64_t row = attention_padded(task->head_width);
    for (int64_t j = task->key_first; j < task->key_last; j++) {
        float *dk = task->dk_sum + j * row, *dv = task->dv_sum + j * row;
        if (task->first && attention_seen_from(&task->mask, j) >= task->query) clear(task, dk);
        if (task->first && attention_seen_from(&task->mask, j) >= task->query) clear(task, dv);
        for (int64_t i = 0; i < task->length; i++) {
            if (!sees(task, i, j)) continue;
            double ds;
            const double p = weight(task, i, j, &ds);
            add(task, dk, ds, task->q, i);
            add(task, dv, p, task->grad_o, i);
        }
    }
    for (int64_t i = 0; i < task->length; i++) {
        float *dq = task->dq_sum + i * row;
        if (task->opens && !task->begun) clear(task, dq);
        for (int64_t j = task->key_first; j < task->key_last; j++) {
            if (!sees(task, i, j)) continue;
            double ds;
            (void)weight(task, i, j, &ds);
            add(task, dq, ds, task->k, j);
        }
        for (int64_t c = 0; task->closes && c < task->head_width; c++)
            set_element(task, task->dq, i, c, (double)task->scale * (double)dq[c]);
    }
}

void hr_attention_store_ref(const hr_attention_task *task)
{
    const int64_t row = attention_padded(task->head_width);
    for (int64_t j = 0; j < task->length; j++)
        for (int64_t c = 0; c < task->head_width; c++) {
            set_element(task, task->dk, j, c,
                        (double)task->scale * (double)task->dk_sum[j * row + c]);
            set_element(task, task->dv, j, c,
                        (double)task->keep_scale * (double)task->dv_sum[j * row + c]);
        }
}

/* ---- selected blocks */

static bool selects(const hr_attention_selected_task *task, int64_t i, int64_t key)
{
    const uint16_t *blocks = task->blocks + i * task->blocks_stride;
    for (int64_t n = 0; n < task->count; n++)
        if (blocks[n] == key / task->block) return key <= task->head.query + i;
    return false;
}

static void selected_row(const hr_attention_selected_task *task, const hr_attention_task *head,
                         int64_t i, float *lse)
{
    const int64_t keys = head->query + i + 1;
    double *sums = head->scratch, max = -INFINITY, total = 0;
    for (int64_t j = 0; j < keys; j++)
        if (selects(task, i, j))
            max = fmax(max, (double)head->scale * dot(head, head->q, i, head->k, j));
    for (int64_t c = 0; c < head->head_width; c++) sums[c] = 0;
    for (int64_t j = 0; j < keys; j++) {
        if (!selects(task, i, j)) continue;
        const double p = exp((double)head->scale * dot(head, head->q, i, head->k, j) - max);
        total += p;
        for (int64_t c = 0; c < head->head_width; c++) sums[c] += p * element(head, head->v, j, c);
    }
    for (int64_t c = 0; c < head->head_width; c++)
        set_element(head, head->o, i, c, sums[c] / total);
    if (lse) *lse = (float)(max + log(total));
}

void hr_attention_selected_ref(const hr_attention_selected_task *task)
{
    hr_attention_task head = task->head;
    for (int64_t h = 0; h < task->heads; h++) {
        head.q.first = hr_element_at(task->head.q.first, h * task->q_head_stride, head.dtype);
        head.o.first = hr_element_at(task->head.o.first, h * task->o_head_stride, head.dtype);
        for (int64_t i = 0; i < head.length; i++)
            selected_row(task, &head, i, head.lse ? head.lse + i * head.lse_stride + h : NULL);
    }
}

void hr_attention_scores_ref(const hr_attention_scores_task *task)
{
    hr_attention_task head = task->head;
    for (int64_t h = 0; h < task->heads; h++) {
        head.q.first = hr_element_at(task->head.q.first, h * task->q_head_stride, head.dtype);
        for (int64_t i = 0; i < head.length; i++) {
            const int64_t keys = hr_attention_keys_seen(&head.mask, head.query + i);
            float *sums = task->sums + i * task->sum_row;
            double max = -INFINITY, total = 0, lse = 0;
            for (int64_t j = 0; j < keys; j++)
                max = fmax(max, (double)head.scale * dot(&head, head.q, i, head.k, j));
            for (int64_t j = 0; j < keys; j++)
                total += exp((double)head.scale * dot(&head, head.q, i, head.k, j) - max);
            lse = head.lse ? (double)head.lse[i * head.lse_stride + h] : max + log(total);
            for (int64_t j = 0; j < keys; j++)
                sums[j] = (float)(exp((double)head.scale * dot(&head, head.q, i, head.k, j) - lse) +
                                  (h ? (double)sums[j] : 0));
        }
    }
}
