/* SPDX-License-Identifier: Apache-2.0 */
/* ops/embed/embed_run.c - splits the embedding over threads: by rows forward, by columns backward,
 * so that one thread computes each sum over tokens, in order. */
#include <string.h>

#include "base/checked.h"
#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/embed/embed.h"
#include "ops/kernels.h"

enum {
    COLUMN_UNIT = 16, /* a cache line of sums */
    GATHERED = 256    /* elements gathered at a time from a panel column */
};

/* `count` elements of a token's row from `first` on; copied to `gathered` if they are not
 * contiguous fp32. */
static const float *words_of(const hr_embed_attr *attr, const void *table, int64_t id,
                             int64_t first, int64_t count, float *gathered)
{
    const hr_layout layout = (hr_layout)attr->layout;
    if (layout == HR_ROWS && attr->dtype == HR_F32)
        return (const float *)table + id * attr->D + first;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = layout == HR_ROWS
                               ? id * attr->D + first + i
                               : hr_layout_index(layout, attr->D, attr->V, first + i, id);
        gathered[i] = hr_element_get(table, at, (hr_dtype)attr->dtype);
    }
    return gathered;
}

static int64_t position_of(const hr_embed_attr *attr, const hr_call *call, const int32_t *begins,
                           int64_t r)
{
    return attr->skip + (call->row_first + r) % attr->T - (begins ? begins[r] : 0);
}

void hr_embed_run(const hr_call *call)
{
    const hr_embed_attr *attr = call->attr;
    const int64_t D = attr->D, start = call->in[3] ? *(const int32_t *)call->in[3] : 0;
    const bool is_run = attr->layout == HR_ROWS && attr->dtype == HR_F32;
    const int64_t unit = is_run ? D : GATHERED;
    const bool in_order = call->in[5];
    const void *table = call->in[in_order ? 5 : 1];
    const int32_t *ids = call->in[0];
    const float *positions = call->in[2];
    float gathered[GATHERED];
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const int64_t position = start + position_of(attr, call, call->in[4], r);
        for (int64_t c = 0; c < D; c += unit) {
            const int64_t count = hr_min(unit, D - c);
            call->kernels->embed.fwd(
                words_of(attr, table, in_order ? r : ids[r], c, count, gathered),
                positions ? positions + position * D + c : NULL,
                hr_element_at(call->out[0], r * D + c, call->dtype), count, call->dtype);
        }
    }
}

/* Clears columns [first, last) of each row; first is a multiple of COLUMN_UNIT. */
static void clear_columns(float *table, int64_t rows, int64_t D, int64_t first, int64_t last)
{
    for (int64_t r = 0; r < rows; r++)
        memset(table + r * D + first, 0, (size_t)(last - first) * sizeof *table);
}

/* The same for a table in panel layout, including its padding. */
static void clear_lines(float *table, const hr_embed_attr *attr, int64_t first, int64_t last)
{
    const hr_layout layout = (hr_layout)attr->layout;
    const int64_t lines = layout == HR_PANEL ? attr->D : (attr->D + 1) / 2 * 2;
    const int64_t end = last == attr->D ? lines : last;
    for (int64_t v = 0; v < attr->V; v += HR_PANEL_WIDTH)
        memset(table + hr_layout_index(layout, attr->D, attr->V, first, v), 0,
               (size_t)((end - first) * HR_PANEL_WIDTH) * sizeof *table);
}

static void add_to_column(float *table, const hr_embed_attr *attr, int64_t id, int64_t first,
                          int64_t last, const void *dy, hr_dtype dtype)
{
    for (int64_t d = first; d < last; d++)
        table[hr_layout_index((hr_layout)attr->layout, attr->D, attr->V, d, id)] += hr_element_get(
            dy, d - first, dtype);
}

void hr_embed_bwd_run(const hr_call *call)
{
    const hr_embed_attr *attr = call->attr;
    const int64_t D = attr->D, row_first = attr->strip_first + call->turn * attr->strip;
    const int64_t stored = attr->strip ? hr_min(attr->strip, attr->V - row_first) : attr->V;
    const bool in_rows = attr->layout == HR_ROWS;
    const int32_t *ids = call->in[0];
    float *words = call->out[0], *positions = call->out[1];
    int64_t first, last;
    hr_share((D + COLUMN_UNIT - 1) / COLUMN_UNIT, call->thread, call->threads, &first, &last);
    first *= COLUMN_UNIT;
    last = hr_min(last * COLUMN_UNIT, D);
    if (first >= last) return;
    if (words && call->clear & 1u << 0) {
        if (in_rows) clear_columns(words, stored, D, first, last);
        else clear_lines(words, attr, first, last);
    }
    if (positions && call->clear & 1u << 1)
        clear_columns(positions, attr->positions, D, first, last);
    for (int64_t r = 0; r < call->rows; r++) {
        const void *dy = hr_element_at(call->in[1], r * D + first, call->dtype);
        const int64_t row = ids[r] - row_first;
        if (row < 0 || row >= stored) continue; /* of another strip */
        if (words && in_rows)
            call->kernels->embed.bwd(words + row * D + first, dy, last - first, call->dtype);
        else if (words) add_to_column(words, attr, ids[r], first, last, dy, call->dtype);
        if (positions)
            call->kernels->embed.bwd(positions + position_of(attr, call, call->in[2], r) * D +
                                         first,
                                     dy, last - first, call->dtype);
    }
}

const hr_op_run hr_embed_cpu_run = { hr_embed_run, 1 };
const hr_op_run hr_embed_bwd_cpu_run = { hr_embed_bwd_run, 1 };
