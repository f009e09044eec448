/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dequantize/dequantize_run.c - splits the weight over threads, in spans of elements that are
 * adjacent in memory and share a scale. */
#include "base/checked.h"
#include "ops/cpu_run.h"
#include "ops/dequantize/dequantize.h"
#include "ops/kernels.h"

enum { SPAN_LINES = 128 };

/* Lines of adjacent elements: of a panel, or a row. Columns of a line share a scale. */
typedef struct {
    int64_t lines, groups;            /* of a group; the groups: panels, or one */
    int64_t width;                    /* elements of a line */
    int64_t span_lines;               /* lines of a span: one scale, adjacent */
    int64_t span_width;               /* elements of a line that share a scale */
    int64_t spans_down, spans_across; /* of a group */
} shape;

static int64_t parts(int64_t length, int64_t part)
{
    return (length + part - 1) / part;
}

static shape shape_of(const hr_dequantize_attr *attr)
{
    const bool rows = attr->layout == HR_ROWS;
    const int64_t block_k = attr->block[0] ? attr->block[0] : SPAN_LINES;
    const int64_t block_n = attr->block[1] ? attr->block[1] : attr->N;
    shape s = { .lines = attr->layout == HR_PANEL_PAIR ? hr_round_up(attr->K, 2) : attr->K,
                .groups = rows ? 1 : parts(attr->N, HR_PANEL_WIDTH),
                .width = rows ? attr->N : HR_PANEL_WIDTH,
                .span_lines = rows ? 1 : block_k };
    s.span_width = rows ? hr_min(block_n, attr->N) : HR_PANEL_WIDTH;
    s.spans_down = parts(s.lines, s.span_lines);
    s.spans_across = parts(s.width, s.span_width);
    return s;
}

static void dequantize_span(const hr_call *call, const shape *s, int64_t index)
{
    const hr_dequantize_attr *attr = call->attr;
    const int64_t spans = s->spans_down * s->spans_across, group = index / spans;
    const int64_t down = index % spans / s->spans_across, across = index % s->spans_across;
    const int64_t k = down * s->span_lines, in_line = across * s->span_width;
    const int64_t n = group * HR_PANEL_WIDTH + in_line;
    const int64_t lines = hr_min(s->span_lines, s->lines - k);
    const int64_t count = s->span_lines == 1 ? hr_min(s->span_width, s->width - in_line)
                                             : lines * s->width;
    const int64_t at = (group * s->lines + k) * s->width + in_line;
    float scale = 1;
    if (call->in[1])
        scale = ((const float *)call->in[1])[k / attr->block[0] * attr->scale_stride[0] +
                                             n / attr->block[1] * attr->scale_stride[1]];
    const hr_dtype from = (hr_dtype)attr->from, to = (hr_dtype)attr->to;
    call->kernels->dequantize.span((const char *)call->in[0] + at * hr_dtype_bytes(from),
                                   (char *)call->out[0] + at * hr_dtype_bytes(to), count, scale,
                                   from, to);
}

void hr_dequantize_run(const hr_call *call)
{
    const shape s = shape_of(call->attr);
    int64_t first, last;
    hr_share(s.groups * s.spans_down * s.spans_across, call->thread, call->threads, &first, &last);
    for (int64_t i = first; i < last; i++) dequantize_span(call, &s, i);
}

const hr_op_run hr_dequantize_cpu_run = { hr_dequantize_run, 1 };
