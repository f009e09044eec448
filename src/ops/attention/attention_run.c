/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_run.c - splits heads of sequences over threads.
 *
 * The unit of forward is a head; consecutive heads of one thread share packed keys. The unit of
 * backward is a group of heads, whose dk and dv are summed in head order. With separate documents,
 * each document is a sequence for the kernels. */
#include "base/assert.h"
#include "ops/attention/attention_pattern.h"
#include "ops/attention/attention_scratch.h"
#include "ops/cpu_run.h"
#include "ops/element.h"
#include "ops/kernels.h"

/* One thread's share of a call. */
typedef struct {
    const hr_call *call;
    const hr_attention_attr *attr;
    bool fused; /* q holds k and v too */
    int64_t k_width, v_width;
    int64_t sequences;
    uint8_t *scratch; /* scratch of the kernel */
} share;

static share share_of(const hr_call *call, int64_t bytes)
{
    const hr_attention_attr *attr = call->attr;
    HR_ASSERT(attr->H >= 1 && attr->G >= 1 && attr->H % attr->G == 0);
    HR_ASSERT(attr->head_width >= 1 && attr->head_width <= HR_ATTENTION_HEAD_MAX);
    HR_ASSERT(attr->scale > 0 && call->row_first % attr->T == 0);
    HR_ASSERT(!call->in[1] == !call->in[2]);
    const bool fused = !call->in[1];
    return (share){ .call = call,
                    .attr = attr,
                    .fused = fused,
                    .k_width = fused ? attr->q_width : attr->k_width,
                    .v_width = fused ? attr->q_width : attr->v_width,
                    .sequences = (call->rows + attr->T - 1) / attr->T,
                    .scratch = (uint8_t *)call->scratch + call->thread * bytes };
}

/* Position of the heads within the rows of a tensor. */
typedef struct {
    int64_t offset, stride, count;
} heads;

/* Prefetch distance: the next head for sequences short enough to stay in cache until then,
 * otherwise some rows. */
enum { AHEAD_LENGTH = 256, AHEAD_ROWS = 8 };

/* Rows [first, last) of the call: a document, or a whole sequence. */
typedef struct {
    int64_t sequence, first, last;
} document;

/* Start of the iteration over the documents of a sequence. */
static document no_document(const share *s, int64_t sequence)
{
    return (document){ sequence, sequence * s->attr->T, sequence * s->attr->T };
}

/* Advances to the next document of the sequence; false: no more. */
static bool next_document(const share *s, const int32_t *begins, document *d)
{
    const int64_t start = d->sequence * s->attr->T;
    const int64_t end = hr_min(start + s->attr->T, s->call->rows);
    d->first = d->last;
    if (d->first == end) return false;
    d->last = begins ? d->first + 1 : end;
    while (d->last < end && begins[d->last] != d->last - start) d->last++;
    return true;
}

/* Rows of head `head` of a document. */
static hr_attention_rows rows_at(const share *s, void *tensor, int64_t width, const document *d,
                                 heads of, int64_t head)
{
    const int64_t T = s->attr->T, at = d->first * width + of.offset + head * of.stride;
    hr_attention_rows rows = { hr_element_at(tensor, at, s->call->dtype), width, AHEAD_ROWS, 0 };
    if (T > AHEAD_LENGTH) return rows;
    const bool last = head + 1 == of.count;
    rows.ahead_rows = last ? T : 0;
    rows.ahead_elements = last ? -head * of.stride : of.stride;
    return rows;
}

static heads query_heads(const hr_attention_attr *attr)
{
    return (heads){ attr->q_offset, attr->q_head_stride, attr->H };
}

static heads key_heads(const hr_attention_attr *attr)
{
    return (heads){ attr->k_offset, attr->k_head_stride, attr->G };
}

static heads value_heads(const hr_attention_attr *attr)
{
    return (heads){ attr->v_offset, attr->v_head_stride, attr->G };
}

static heads output_heads(const hr_attention_attr *attr)
{
    return (heads){ 0, attr->head_width, attr->H };
}

static void add_dropout(const share *s, hr_attention_task *task, const document *d, int64_t head)
{
    const hr_call *call = s->call;
    const int64_t T = s->attr->T, start = d->sequence * T;
    const double dropout = (double)s->attr->dropout;
    const hr_random_stream stream = hr_random_stream_of(call->seed, (uint64_t)call->clock,
                                                        s->attr->site, (uint32_t)head);
    task->drops = true;
    task->random = hr_random_row_of(stream, (uint32_t)(call->row_first / T + d->sequence),
                                    (uint32_t)(d->first - start));
    task->threshold = hr_random_threshold(dropout);
    task->keep_scale = (float)(1 / (1 - dropout));
}

/* Common part of forward and backward for one head of a document. */
static hr_attention_task task_of(const share *s, const document *d, int64_t head, void *o,
                                 float *lse)
{
    const hr_attention_attr *attr = s->attr;
    const hr_call *call = s->call;
    const int64_t group = head / (attr->H / attr->G);
    void *k = s->fused ? call->in[0] : call->in[1], *v = s->fused ? call->in[0] : call->in[2];
    const int64_t width = (int64_t)attr->H * attr->head_width;
    hr_attention_task task = { .q = rows_at(s, call->in[0], attr->q_width, d, query_heads(attr),
                                            head),
                               .k = rows_at(s, k, s->k_width, d, key_heads(attr), group),
                               .v = rows_at(s, v, s->v_width, d, value_heads(attr), group),
                               .o = rows_at(s, o, width, d, output_heads(attr), head),
                               .lse = lse ? lse + d->first * attr->H + head : NULL,
                               .lse_stride = attr->H,
                               .length = d->last - d->first,
                               .head_width = attr->head_width,
                               .dtype = call->dtype,
                               .mask = attr->mask,
                               .scale = attr->scale,
                               .keep_scale = 1,
                               .scratch = s->scratch };
    hr_attention_mask *mask = &task.mask;
    if (mask->kind == HR_PATTERN_SLIDING && mask->window >= attr->T) mask->kind = HR_PATTERN_DENSE;
    if (mask->kind == HR_PATTERN_DENSE || mask->kind == HR_PATTERN_SLIDING)
        mask->block = (int32_t)hr_min(attr->T, INT32_MAX);
    if (attr->dropout > 0) add_dropout(s, &task, d, head);
    return task;
}

void hr_attention_run(const hr_call *call)
{
    const hr_attention_attr *attr = call->attr;
    share s = share_of(call, attention_thread_bytes(attr, call->rows));
    const int64_t group_heads = attr->H / attr->G;
    int64_t first, last;
    hr_share(s.sequences * attr->H, call->thread, call->threads, &first, &last);
    for (int64_t unit = first, next; unit < last; unit = next) {
        document d = no_document(&s, unit / attr->H);
        next = hr_min((unit / group_heads + 1) * group_heads, last);
        while (next_document(&s, call->in[3], &d))
            for (int64_t u = unit; u < next; u++) {
                hr_attention_task task = task_of(&s, &d, u % attr->H, call->out[0], call->out[1]);
                task.first = u == unit;
                task.last = u + 1 == next;
                call->kernels->attention.fwd[call->dtype](&task);
            }
    }
}

static bool inside_heads(heads of, int64_t head_width, int64_t element)
{
    const int64_t at = element - of.offset, head = of.stride > 0 ? at / of.stride : 0;
    return at >= 0 && head < of.count && at - head * of.stride < head_width;
}

/* Writes zeros to elements of a gradient row that belong to no head. */
static void clear_gaps(const share *s, void *tensor, int64_t width, int64_t sequence,
                       const heads *lists, int list_count)
{
    const int64_t T = s->attr->T, head_width = s->attr->head_width;
    const int64_t first = sequence * T, last = hr_min(first + T, s->call->rows);
    int64_t covered = 0;
    for (int i = 0; i < list_count; i++) covered += lists[i].count * head_width;
    for (int64_t c = 0; covered < width && c < width; c++) {
        bool inside = false;
        for (int i = 0; i < list_count; i++) inside |= inside_heads(lists[i], head_width, c);
        for (int64_t row = first; !inside && row < last; row++)
            hr_element_set(tensor, row * width + c, s->call->dtype, 0);
    }
}

static void clear_all_gaps(const share *s, int64_t sequence)
{
    const hr_attention_attr *attr = s->attr;
    const heads lists[] = { query_heads(attr), key_heads(attr), value_heads(attr) };
    void *const *out = s->call->out;
    clear_gaps(s, out[0], attr->q_width, sequence, lists, s->fused ? 3 : 1);
    if (s->fused) return;
    clear_gaps(s, out[1], attr->k_width, sequence, lists + 1, 1);
    clear_gaps(s, out[2], attr->v_width, sequence, lists + 2, 1);
}

void hr_attention_bwd_run(const hr_call *call)
{
    const hr_attention_attr *attr = call->attr;
    share s = share_of(call, attention_bwd_thread_bytes(attr, call->rows));
    const int64_t group_heads = attr->H / attr->G, width = (int64_t)attr->H * attr->head_width;
    void *dk = s.fused ? call->out[0] : call->out[1], *dv = s.fused ? call->out[0] : call->out[2];
    int64_t first, last;
    hr_share(s.sequences * attr->G, call->thread, call->threads, &first, &last);
    for (int64_t unit = first; unit < last; unit++) {
        const int64_t sequence = unit / attr->G, group = unit % attr->G;
        if (group == 0) clear_all_gaps(&s, sequence);
        document d = no_document(&s, sequence);
        while (next_document(&s, call->in[6], &d))
            for (int64_t i = 0; i < group_heads; i++) {
                const int64_t head = group * group_heads + i;
                hr_attention_task task = task_of(&s, &d, head, call->in[3], call->in[5]);
                task.grad_o = rows_at(&s, call->in[4], width, &d, output_heads(attr), head);
                task.dq = rows_at(&s, call->out[0], attr->q_width, &d, query_heads(attr), head);
                task.dk = rows_at(&s, dk, s.k_width, &d, key_heads(attr), group);
                task.dv = rows_at(&s, dv, s.v_width, &d, value_heads(attr), group);
                task.first = i == 0;
                task.last = i + 1 == group_heads;
                call->kernels->attention.bwd[call->dtype](&task);
            }
    }
}

const hr_op_run hr_attention_cpu_run = { hr_attention_run, 1 };
const hr_op_run hr_attention_bwd_cpu_run = { hr_attention_bwd_run, 1 };
