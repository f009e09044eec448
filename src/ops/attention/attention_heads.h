/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_heads.h - where the heads of documents are in the operands of a call.
 *
 * A call has whole sequences, or a part of one: rows of queries, and keys from the start of the
 * sequence on. */
#ifndef HR_OPS_ATTENTION_HEADS_H
#define HR_OPS_ATTENTION_HEADS_H

#include "base/assert.h"
#include "base/element.h"
#include "ops/attention/attention_scratch.h"
#include "ops/kernels.h"

/* What a thread knows of a call. */
typedef struct {
    const hr_call *call;
    const hr_attention_attr *attr;
    const int32_t *begins; /* or null */
    bool fused;            /* q holds k and v too */
    int64_t k_width, v_width;
    int64_t position;  /* of the first row in its sequence */
    int64_t sequences; /* 1 for a part */
    uint8_t *scratch;  /* of the kernel */
} attention_share;

/*   cached  position of the first row of the call in a sequence whose keys are in caches;
 *           null: it follows from the row */
static inline attention_share attention_share_of(const hr_call *call, const int32_t *begins,
                                                 const int32_t *cached)
{
    const hr_attention_attr *attr = call->attr;
    const int64_t position = cached ? *cached + call->row_first : call->row_first % attr->T;
    HR_ASSERT(attr->H >= 1 && attr->G >= 1 && attr->H % attr->G == 0);
    HR_ASSERT(attr->head_width >= 1 && attr->head_width <= HR_ATTENTION_HEAD_MAX);
    HR_ASSERT(attr->scale > 0 && !call->in[1] == !call->in[2]);
    HR_ASSERT(position == 0 || (call->in[1] && position + call->rows <= attr->T));
    HR_ASSERT(cached || position % HR_PART_ROWS == 0);
    const bool fused = !call->in[1];
    return (attention_share){ .call = call,
                              .attr = attr,
                              .begins = begins,
                              .fused = fused,
                              .k_width = fused ? attr->q_width : attr->k_width,
                              .v_width = fused ? attr->q_width : attr->v_width,
                              .position = position,
                              .sequences = (call->rows + attr->T - 1) / attr->T };
}

/* Positions [first, last) of a sequence of the call; the document that they are in begins at
 * `start`. */
typedef struct {
    int64_t sequence, start, first, last;
} attention_piece;

/* One past the last position of a sequence that the call has queries of. */
static inline int64_t attention_end(const attention_share *s, int64_t sequence)
{
    const int64_t rows = s->call->rows - sequence * s->attr->T;
    return s->position + hr_min(rows, s->attr->T);
}

/* The row of the call with a position. */
static inline int64_t attention_row(const attention_share *s, int64_t sequence, int64_t position)
{
    return sequence * s->attr->T + position - s->position;
}

/* The piece from `first` on: up to `last`, or to the end of the document. */
static inline attention_piece attention_piece_at(const attention_share *s, int64_t sequence,
                                                 int64_t first, int64_t last)
{
    if (!s->begins) return (attention_piece){ sequence, 0, first, last };
    const int32_t *begins = s->begins + attention_row(s, sequence, 0);
    attention_piece piece = { sequence, begins[first], first, first };
    while (piece.last < last && begins[piece.last] == begins[first]) piece.last++;
    return piece;
}

/* Position of the heads within the rows of a tensor. */
typedef struct {
    int64_t offset, stride, count;
} attention_heads;

/* Prefetch distance: the next head for sequences short enough to stay in cache until then,
 * otherwise some rows. */
enum { ATTENTION_AHEAD_LENGTH = 256, ATTENTION_AHEAD_ROWS = 8 };

/* Rows of head `head` of a tensor from `row` on. */
static inline hr_attention_rows attention_rows_at(const attention_share *s, void *tensor,
                                                  int64_t width, int64_t row, attention_heads of,
                                                  int64_t head)
{
    const int64_t T = s->attr->T, at = row * width + of.offset + head * of.stride;
    hr_attention_rows rows = { hr_element_at(tensor, at, s->call->dtype), width,
                               ATTENTION_AHEAD_ROWS, 0 };
    if (T > ATTENTION_AHEAD_LENGTH) return rows;
    const bool last = head + 1 == of.count;
    rows.ahead_rows = last ? T : 0;
    rows.ahead_elements = last ? -head * of.stride : of.stride;
    return rows;
}

static inline attention_heads attention_query_heads(const hr_attention_attr *attr)
{
    return (attention_heads){ attr->q_offset, attr->q_head_stride, attr->H };
}

static inline attention_heads attention_key_heads(const hr_attention_attr *attr)
{
    return (attention_heads){ attr->k_offset, attr->k_head_stride, attr->G };
}

static inline attention_heads attention_value_heads(const hr_attention_attr *attr)
{
    return (attention_heads){ attr->v_offset, attr->v_head_stride, attr->G };
}

static inline attention_heads attention_output_heads(const hr_attention_attr *attr)
{
    return (attention_heads){ 0, attr->head_width, attr->H };
}

/* Rows of keys or values of a group, or of their gradients, from `key` of a sequence on. */
static inline hr_attention_rows attention_key_rows(const attention_share *s, void *tensor,
                                                   int64_t width, int64_t sequence, int64_t key,
                                                   attention_heads of, int64_t group)
{
    const int64_t T = s->attr->T, rows_width = (int64_t)s->attr->G * s->attr->head_width;
    if (s->attr->mask.kind != HR_PATTERN_COMPRESSED)
        return attention_rows_at(s, tensor, width, sequence * T + key, of, group);
    const int64_t at = sequence * T * width + key * rows_width + group * s->attr->head_width;
    return (hr_attention_rows){ hr_element_at(tensor, at, s->call->dtype), rows_width,
                                ATTENTION_AHEAD_ROWS, 0 };
}

/* The mask as kernels want it: of dense ones and token masks, a block is the sequence. */
static inline hr_attention_mask attention_mask_of(const hr_attention_attr *attr)
{
    hr_attention_mask mask = attr->mask;
    if (mask.kind == HR_PATTERN_SLIDING && mask.window >= attr->T) mask.kind = HR_PATTERN_DENSE;
    if (mask.kind == HR_PATTERN_DENSE || mask.kind == HR_PATTERN_SLIDING ||
        mask.kind == HR_PATTERN_COMPRESSED)
        mask.block = (int32_t)hr_min(attr->T, INT32_MAX);
    return mask;
}

static inline void attention_add_dropout(const attention_share *s, hr_attention_task *task,
                                         const attention_piece *piece, int64_t head)
{
    const hr_call *call = s->call;
    const double dropout = (double)s->attr->dropout;
    const hr_random_stream stream = hr_random_stream_of(call->seed, (uint64_t)call->clock,
                                                        s->attr->site, (uint32_t)head);
    const int64_t sequence = call->row_first / s->attr->T + piece->sequence;
    task->drops = true;
    task->random = hr_random_row_of(stream, (uint32_t)sequence, (uint32_t)piece->start);
    task->threshold = hr_random_threshold(dropout);
    task->keep_scale = (float)(1 / (1 - dropout));
}

/* What forward and backward share for a piece of one head. */
static inline hr_attention_task attention_task_of(const attention_share *s,
                                                  const attention_piece *piece, int64_t head,
                                                  void *o, float *lse)
{
    const hr_attention_attr *attr = s->attr;
    const hr_call *call = s->call;
    const int64_t group = head / (attr->H / attr->G), width = (int64_t)attr->H * attr->head_width;
    const int64_t row = attention_row(s, piece->sequence, piece->first);
    void *k = s->fused ? call->in[0] : call->in[1], *v = s->fused ? call->in[0] : call->in[2];
    hr_attention_task task = {
        .q = attention_rows_at(s, call->in[0], attr->q_width, row, attention_query_heads(attr),
                               head),
        .k = attention_key_rows(s, k, s->k_width, piece->sequence, piece->start,
                                attention_key_heads(attr), group),
        .v = attention_key_rows(s, v, s->v_width, piece->sequence, piece->start,
                                attention_value_heads(attr), group),
        .o = attention_rows_at(s, o, width, row, attention_output_heads(attr), head),
        .lse = lse ? lse + row * attr->H + head : NULL,
        .lse_stride = attr->H,
        .query = piece->first - piece->start,
        .length = piece->last - piece->first,
        .head_width = attr->head_width,
        .dtype = call->dtype,
        .mask = attention_mask_of(attr),
        .scale = attr->scale,
        .keep_scale = 1,
        .scratch = s->scratch
    };
    if (attr->dropout > 0) attention_add_dropout(s, &task, piece, head);
    return task;
}

#endif
