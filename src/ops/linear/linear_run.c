/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_run.c - splits a matrix product over threads.
 *
 * Threads form a grid over the result. Threads never wait for each other: if two of them need the
 * same packed block, both pack it. */
#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"

enum { TILE_COLUMNS = HR_LINEAR_TILE_COLUMNS, DB_TOKENS = 64 };

/* ---- the grid ---- */

/* One dimension of a result: its length, the unit of splits, and the cost of packing one line, in
 * products of a line with a line of the other side. */
typedef struct {
    int64_t length, unit, packing;
} side;

typedef struct {
    int64_t first, end;
} share;

static int64_t longest_share(side cut, int32_t parts)
{
    const int64_t units = (cut.length + cut.unit - 1) / cut.unit;
    return (units + parts - 1) / parts * cut.unit;
}

static share share_of(side cut, int32_t part, int32_t parts)
{
    share own;
    hr_share((cut.length + cut.unit - 1) / cut.unit, part, parts, &own.first, &own.end);
    own.first = hr_min(own.first * cut.unit, cut.length);
    own.end = hr_min(own.end * cut.unit, cut.length);
    return own;
}

/* Number of parts for `down`, a divisor of threads, that minimises the work of the slowest
 * thread. */
static int32_t row_parts(side down, side across, int32_t threads)
{
    int32_t best = threads;
    int64_t best_cost = INT64_MAX;
    for (int32_t parts = threads; parts > 0; parts--) {
        if (threads % parts) continue;
        const int64_t a = longest_share(down, parts), b = longest_share(across, threads / parts);
        const int64_t cost = a * b + a * down.packing + b * across.packing;
        if (cost >= best_cost) continue;
        best_cost = cost;
        best = parts;
    }
    return best;
}

/* ---- whole operations ---- */

static const char *row(const hr_call *call, const void *array, int64_t index, int64_t width)
{
    return array ? (const char *)array + index * width * hr_dtype_bytes(call->dtype) : NULL;
}

/* Common part of forward and dx. The operands of `mm` are those of the whole call. */
static void run_mm(const hr_call *call, hr_linear_mm mm)
{
    const hr_linear_typed *kernels = &call->kernels->linear.of[call->dtype];
    const side down = { call->rows, kernels->tile_rows, 16 };
    const side across = { mm.N, TILE_COLUMNS, mm.transposed ? 24 : 6 };
    const int32_t parts = row_parts(down, across, call->threads), columns = call->threads / parts;
    const share rows = share_of(down, call->thread / columns, parts);
    const share n = share_of(across, call->thread % columns, columns);
    if (rows.first >= rows.end || n.first >= n.end) return;
    const hr_linear_mm_layout layout = hr_linear_lay_out_mm(call->rows, mm.K, mm.N);
    char *scratch = (char *)call->scratch + call->thread * layout.bytes;
    mm.a = row(call, mm.a, rows.first, mm.K);
    mm.residual = row(call, mm.residual, rows.first, mm.N);
    mm.aux = row(call, mm.aux, rows.first, mm.N);
    mm.out = (void *)row(call, mm.out, rows.first, mm.N);
    mm.pre = (void *)row(call, mm.pre, rows.first, mm.N);
    if (mm.before) mm.before += rows.first * mm.N;
    if (mm.after) mm.after += rows.first * mm.N;
    mm.rows = rows.end - rows.first;
    mm.n_first = n.first;
    mm.n_end = n.end;
    mm.block = scratch;
    mm.sums = (float *)(scratch + layout.sums);
    mm.strip = scratch + layout.strip;
    kernels->mm(&mm);
}

void hr_linear_run(const hr_call *call)
{
    const hr_linear_attr *attr = call->attr;
    run_mm(call, (hr_linear_mm){ .a = call->in[0],
                                 .w = call->in[1],
                                 .K = attr->K,
                                 .N = attr->N,
                                 .act = attr->act,
                                 .bias = call->in[2],
                                 .residual = call->in[3],
                                 .out = call->out[0],
                                 .pre = call->out[1] });
}

void hr_linear_dx_run(const hr_call *call)
{
    const hr_linear_attr *attr = call->attr;
    run_mm(call, (hr_linear_mm){ .a = call->in[0],
                                 .w = call->in[1],
                                 .K = attr->N,
                                 .N = attr->K,
                                 .transposed = true,
                                 .act = attr->act,
                                 .residual = call->in[2],
                                 .aux = call->in[3],
                                 .before = call->in[4],
                                 .after = call->out[1],
                                 .out = call->out[0] });
}

static void run_db(const hr_call *call, int64_t position)
{
    const hr_linear_attr *attr = call->attr;
    const side columns = { attr->N, HR_PANEL_WIDTH, 0 };
    const share n = share_of(columns, call->thread, call->threads);
    const hr_linear_db db = { .dy = call->in[1],
                              .rows = call->rows,
                              .N = attr->N,
                              .T = attr->T,
                              .position = position,
                              .n_first = n.first,
                              .n_end = n.end,
                              .clear = call->clear & 2,
                              .db = call->out[1] };
    if (n.first < n.end) call->kernels->linear.of[call->dtype].db(&db);
}

void hr_linear_dw_run(const hr_call *call)
{
    const hr_linear_attr *attr = call->attr;
    const hr_linear_typed *kernels = &call->kernels->linear.of[call->dtype];
    const int64_t column = attr->strip_first + call->turn * attr->strip;
    const int64_t length = hr_min(hr_linear_columns(attr), attr->N - column);
    const int64_t position = call->row_first % attr->T;
    const bool one_pass = call->out[0] && kernels->adds_db && position % DB_TOKENS == 0;
    if (call->out[1] && !one_pass) run_db(call, position);
    if (!call->out[0]) return;
    const side down = { attr->K, kernels->tile_rows, 16 }, across = { length, TILE_COLUMNS, 16 };
    const int32_t parts = row_parts(down, across, call->threads), columns = call->threads / parts;
    const share k = share_of(down, call->thread / columns, parts);
    const share n = share_of(across, call->thread % columns, columns);
    const hr_linear_dw_layout layout = hr_linear_lay_out_dw(attr->K, hr_linear_columns(attr));
    char *scratch = (char *)call->scratch + call->thread * layout.bytes;
    const hr_linear_dw dw = { .x = call->in[0],
                              .dy = hr_element_at(call->in[1], column, call->dtype),
                              .rows = call->rows,
                              .K = attr->K,
                              .N = attr->N,
                              .T = attr->T,
                              .position = position,
                              .k_first = k.first,
                              .k_end = k.end,
                              .n_first = n.first,
                              .n_end = n.end,
                              .clear = call->clear & 1,
                              .dw = call->out[0],
                              .db = one_pass && k.first == 0 ? call->out[1] : NULL,
                              .clear_db = call->clear & 2,
                              .x_block = scratch,
                              .dy_block = scratch + layout.dy_block };
    if (k.first < k.end && n.first < n.end) kernels->dw(&dw);
}

const hr_op_run hr_linear_cpu_run = { hr_linear_run, 1 };
const hr_op_run hr_linear_dx_cpu_run = { hr_linear_dx_run, 1 };
const hr_op_run hr_linear_dw_cpu_run = { hr_linear_dw_run, 1 };
