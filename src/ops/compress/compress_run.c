/* SPDX-License-Identifier: Apache-2.0 */
/* ops/compress/compress_run.c - gathers groups of tokens to rows, and calls the products of linear.
 *
 * Rows of y, (group of tokens, head), are processed in chunks that do not depend on the threads.
 * Backward, phase 0 computes the hidden values and their gradients, which stay; phase 1 the
 * gradients of the small weights and of x; further phases that of w1: each gathers a chunk of rows
 * while the product of the one before is computed. */
#include "base/assert.h"
#include "base/element.h"
#include "ops/compress/compress_scratch.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"

typedef struct {
    const hr_call *call;
    const hr_compress_attr *attr;
    const hr_linear_typed *kernels;
    compress_layout layout;
    uint8_t *shared, *own; /* scratch */
    int64_t K, U, M, G, sequences;
    int64_t known; /* tokens of a cache before this call; -1: no cache */
} compressing;

static compressing begin(const hr_call *call, bool backward)
{
    const hr_compress_attr *attr = call->attr;
    compressing c = { .call = call,
                      .attr = attr,
                      .kernels = &call->kernels->linear.of[call->dtype],
                      .layout = compress_lay_out(attr, call->rows, backward),
                      .shared = call->scratch,
                      .K = attr->head_width,
                      .U = (int64_t)attr->length * attr->head_width,
                      .M = attr->hidden,
                      .G = attr->G,
                      .sequences = (call->rows + attr->T - 1) / attr->T,
                      .known = -1 };
    c.own = c.shared + c.layout.call_bytes + call->thread * c.layout.thread_bytes;
    HR_ASSERT(call->row_first % attr->T == 0);
    return c;
}

static int64_t tokens_of(const compressing *c, int64_t sequence)
{
    if (c->known >= 0) return c->known + c->call->rows;
    return hr_min(c->attr->T, c->call->rows - sequence * c->attr->T);
}

/* Rows of y of a sequence, and of those before it. */
static int64_t rows_of(const compressing *c, int64_t sequence)
{
    return c->G * hr_compress_count(c->attr, tokens_of(c, sequence));
}

static int64_t rows_before(const compressing *c, int64_t sequence)
{
    return sequence * c->G * hr_compress_count(c->attr, c->attr->T);
}

/* Row `row` of y or dy of a sequence. */
static void *row_of(const compressing *c, void *y, int64_t sequence, int64_t row)
{
    return hr_element_at(y, sequence * c->attr->T * c->attr->y_width + row * c->K, c->call->dtype);
}

/* The elements of x of token j of the group of a row. */
static int64_t token_of(const compressing *c, int64_t sequence, int64_t row, int64_t j)
{
    const int64_t token = sequence * c->attr->T + row / c->G * c->attr->stride + j;
    return (token * c->G + row % c->G) * c->K;
}

/* Copies u of rows [first, last) to `out`, [last - first, U]. */
static void gather(const compressing *c, int64_t sequence, int64_t first, int64_t last, void *out)
{
    const hr_dtype dtype = c->call->dtype;
    const float *position = c->call->in[1];
    for (int64_t row = first; row < last; row++)
        for (int64_t j = 0; j < c->attr->length; j++) {
            const int64_t from = token_of(c, sequence, row, j);
            const int64_t to = (row - first) * c->U + j * c->K;
            c->call->kernels->compress.move(hr_element_at(c->call->in[0], from, dtype),
                                            position + j * c->K, hr_element_at(out, to, dtype),
                                            c->K, dtype);
        }
}

/* A product of whole rows: K and N of mm are set. */
static void multiply(const compressing *c, hr_linear_mm mm)
{
    const hr_linear_mm_layout layout = hr_linear_lay_out_mm(COMPRESS_ROWS, mm.K, mm.N);
    uint8_t *room = c->own + c->layout.room;
    mm.n_end = mm.N;
    mm.block = room;
    mm.sums = (float *)(room + layout.sums);
    mm.strip = room + layout.strip;
    c->kernels->mm(&mm);
}

/* gelu(w1' u + b1) of gathered rows, and what is inside of gelu. */
static void hide(const compressing *c, int64_t rows, const void *u, void *hidden, void *before)
{
    multiply(c, (hr_linear_mm){ .a = u,
                                .w = c->call->in[2],
                                .rows = rows,
                                .K = c->U,
                                .N = c->M,
                                .act = HR_ACT_GELU,
                                .bias = c->call->in[3],
                                .out = hidden,
                                .pre = before });
}

/* Chunks of rows of all sequences, in order. */
typedef struct {
    int64_t sequence, first, last;
    int64_t index;
} chunk;

static bool next_chunk(const compressing *c, int64_t most, chunk *at)
{
    at->first = at->last;
    while (at->sequence < c->sequences && at->first >= rows_of(c, at->sequence)) {
        at->sequence++;
        at->first = 0;
    }
    if (at->sequence == c->sequences) return false;
    at->last = hr_min(at->first + most, rows_of(c, at->sequence));
    at->index++;
    return true;
}

static chunk before_all(void)
{
    return (chunk){ .index = -1 };
}

static int64_t count_chunks(const compressing *c, int64_t most)
{
    int64_t count = 0;
    for (chunk at = before_all(); next_chunk(c, most, &at);) count++;
    return count;
}

/* ---- forward */

static void mean(const compressing *c, const chunk *at)
{
    const hr_dtype dtype = c->call->dtype;
    const float share = 1.f / (float)c->attr->length;
    for (int64_t row = at->first; row < at->last; row++)
        for (int64_t i = 0; i < c->K; i++) {
            float sum = 0;
            for (int64_t j = 0; j < c->attr->length; j++)
                sum += hr_element_get(c->call->in[0], token_of(c, at->sequence, row, j) + i, dtype);
            hr_element_set(row_of(c, c->call->out[0], at->sequence, row), i, dtype, sum * share);
        }
}

static void compress(const compressing *c, chunk at)
{
    const hr_call *call = c->call;
    void *u = c->own + c->layout.wide, *hidden = c->own + c->layout.narrow;
    while (next_chunk(c, COMPRESS_ROWS, &at)) {
        if (at.index % call->threads != call->thread) continue;
        const int64_t rows = at.last - at.first;
        if (c->M == 0) {
            mean(c, &at);
            continue;
        }
        gather(c, at.sequence, at.first, at.last, u);
        hide(c, rows, u, hidden, NULL);
        multiply(c, (hr_linear_mm){ .a = hidden,
                                    .w = call->in[4],
                                    .rows = rows,
                                    .K = c->M,
                                    .N = c->K,
                                    .bias = call->in[5],
                                    .out = row_of(c, call->out[0], at.sequence, at.first) });
    }
}

void hr_compress_run(const hr_call *call)
{
    const compressing c = begin(call, false);
    compress(&c, before_all());
}

void hr_compress_cached_run(const hr_call *call)
{
    compressing c = begin(call, false);
    chunk complete = before_all();
    c.known = *(const int32_t *)call->in[6] + call->row_first;
    HR_ASSERT(c.known + call->rows <= c.attr->T);
    complete.last = c.G * hr_compress_count(c.attr, c.known);
    compress(&c, complete);
}

/* ---- backward */

static void *hidden_of(const compressing *c, int64_t offset, int64_t sequence, int64_t row)
{
    return hr_element_at(c->shared + offset, (rows_before(c, sequence) + row) * c->M,
                         c->call->dtype);
}

/* Phase 0: the hidden values and their gradients. */
static void find_hidden(const compressing *c)
{
    const hr_call *call = c->call;
    void *u = c->own + c->layout.wide, *before = c->own + c->layout.narrow;
    for (chunk at = before_all(); next_chunk(c, COMPRESS_ROWS, &at);) {
        if (at.index % call->threads != call->thread) continue;
        const int64_t rows = at.last - at.first;
        gather(c, at.sequence, at.first, at.last, u);
        hide(c, rows, u, hidden_of(c, c->layout.hidden, at.sequence, at.first), before);
        multiply(c,
                 (hr_linear_mm){ .a = row_of(c, call->in[5], at.sequence, at.first),
                                 .w = call->in[4],
                                 .rows = rows,
                                 .K = c->K,
                                 .N = c->M,
                                 .transposed = true,
                                 .act = HR_ACT_GELU,
                                 .aux = before,
                                 .out = hidden_of(c, c->layout.d_hidden, at.sequence, at.first) });
    }
}

/* (+)= x^T dy over `rows` rows; this thread has a range of the rows of the result. */
static void add_products(const compressing *c, const void *x, int64_t K, const void *dy, int64_t N,
                         int64_t rows, int64_t position, bool clear, float *dw)
{
    const int64_t unit = c->kernels->tile_rows, units = (K + unit - 1) / unit;
    const hr_linear_dw_layout layout = hr_linear_lay_out_dw(K, N);
    uint8_t *room = c->own + c->layout.room;
    int64_t first, last;
    hr_share(units, c->call->thread, c->call->threads, &first, &last);
    if (first == last) return;
    const hr_linear_dw product = { .x = x,
                                   .dy = dy,
                                   .rows = rows,
                                   .K = K,
                                   .N = N,
                                   .T = INT32_MAX / 64 * 64,
                                   .position = position,
                                   .k_first = first * unit,
                                   .k_end = hr_min(last * unit, K),
                                   .n_end = N,
                                   .clear = clear,
                                   .dw = dw,
                                   .x_block = room,
                                   .dy_block = room + layout.dy_block };
    c->kernels->dw(&product);
}

static void add_columns(const compressing *c, const void *dy, int64_t N, int64_t rows, bool clear,
                        float *db)
{
    const hr_linear_db sums = { .dy = dy,
                                .rows = rows,
                                .N = N,
                                .T = INT32_MAX / 64 * 64,
                                .n_end = N,
                                .clear = clear,
                                .db = db };
    c->kernels->db(&sums);
}

/* The sums of d_hidden of a sequence. */
static float *db1_of(const compressing *c, int64_t sequence)
{
    return (float *)(c->shared + c->layout.db1) + sequence * c->M;
}

/* The gradients of w2, b2 and b1, sequence after sequence, and what each adds to that of b1. */
static void find_small(const compressing *c)
{
    const hr_call *call = c->call;
    float *db1 = call->out[3], *dw2 = call->out[4], *db2 = call->out[5];
    for (int64_t q = 0; q < c->sequences; q++) {
        const uint32_t clear = q == 0 ? call->clear : 0;
        const int64_t rows = rows_of(c, q);
        const void *dy = row_of(c, call->in[5], q, 0);
        const void *hidden = hidden_of(c, c->layout.hidden, q, 0);
        const void *d_hidden = hidden_of(c, c->layout.d_hidden, q, 0);
        if (dw2) add_products(c, hidden, c->M, dy, c->K, rows, 0, clear >> 4 & 1, dw2);
        if (call->thread != 0) continue;
        if (db2) add_columns(c, dy, c->K, rows, clear >> 5 & 1, db2);
        if (db1) add_columns(c, d_hidden, c->M, rows, clear >> 3 & 1, db1);
        add_columns(c, d_hidden, c->M, rows, true, db1_of(c, q));
    }
}

/* Groups that a token is in: those from the first one on, `before` of them begin before it. */
static int64_t overlap_of(const hr_compress_attr *attr)
{
    return (attr->length - 1) / attr->stride;
}

/* The gradient of x of the tokens [s n, s (n + groups)) of a sequence, and after the last group of
 * all that follow it: from the gradients of u of the groups that they are in. */
static void find_x(const compressing *c, int64_t sequence, int64_t n, int64_t groups)
{
    const hr_call *call = c->call;
    const hr_compress_attr *attr = c->attr;
    const int64_t s = attr->stride, count = hr_compress_count(attr, tokens_of(c, sequence));
    const int64_t from = hr_max(0, n - overlap_of(attr)), to = n + groups;
    const int64_t first = s * n, width = c->G * c->K;
    const int64_t end = to == count ? hr_min(tokens_of(c, sequence), s * (count - 1) + attr->length)
                                    : s * to;
    float *sums = (float *)(c->own + c->layout.sums);
    void *du = c->own + c->layout.wide;
    for (int64_t i = 0; i < (end - first) * width; i++) sums[i] = 0;
    multiply(c, (hr_linear_mm){ .a = hidden_of(c, c->layout.d_hidden, sequence, from * c->G),
                                .w = call->in[2],
                                .rows = (to - from) * c->G,
                                .K = c->M,
                                .N = c->U,
                                .transposed = true,
                                .out = du });
    for (int64_t row = 0; row < (to - from) * c->G; row++)
        for (int64_t j = 0; j < attr->length; j++) {
            const int64_t token = (from + row / c->G) * s + j;
            if (token < first || token >= end) continue;
            call->kernels->compress.add(sums + (token - first) * width + row % c->G * c->K,
                                        hr_element_at(du, row * c->U + j * c->K, call->dtype), c->K,
                                        call->dtype);
        }
    const int64_t at = (sequence * attr->T + first) * width;
    call->kernels->compress.store(
        sums, call->in[6] ? hr_element_at(call->in[6], at, call->dtype) : NULL,
        hr_element_at(call->out[0], at, call->dtype), (end - first) * width, call->dtype);
}

/* The gradient of tokens [first, end) of a sequence, which are in no group. */
static void copy_rest(const compressing *c, int64_t sequence, int64_t first, int64_t end)
{
    const hr_call *call = c->call;
    const int64_t width = c->G * c->K, at = (sequence * c->attr->T + first) * width;
    for (int64_t i = 0; i < (end - first) * width; i++)
        hr_element_set(call->out[0], at + i, call->dtype,
                       call->in[6] ? hr_element_get(call->in[6], at + i, call->dtype) : 0);
}

static void find_all_x(const compressing *c)
{
    const hr_compress_attr *attr = c->attr;
    const int64_t most = COMPRESS_ROWS / c->G - overlap_of(attr);
    int64_t unit = 0;
    for (int64_t q = 0; q < c->sequences; q++) {
        const int64_t tokens = tokens_of(c, q), count = hr_compress_count(attr, tokens);
        for (int64_t n = 0; n < count; n += most)
            if (unit++ % c->call->threads == c->call->thread)
                find_x(c, q, n, hr_min(most, count - n));
        const int64_t covered = count ? (count - 1) * attr->stride + attr->length : 0;
        if (unit++ % c->call->threads == c->call->thread) copy_rest(c, q, covered, tokens);
    }
}

/* The gradient of the mean: each group gives its tokens an equal share. */
static void find_x_of_mean(const compressing *c)
{
    const hr_call *call = c->call;
    const hr_compress_attr *attr = c->attr;
    const float share = 1.f / (float)attr->length;
    int64_t first, last;
    hr_share(call->rows, call->thread, call->threads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const int64_t q = r / attr->T, token = r % attr->T;
        const int64_t count = hr_compress_count(attr, tokens_of(c, q));
        const int64_t from = hr_max(0, (token - attr->length + attr->stride) / attr->stride);
        for (int64_t i = 0; i < c->G * c->K; i++) {
            const int64_t at = r * c->G * c->K + i;
            float sum = 0;
            for (int64_t n = from; n < count && n * attr->stride <= token; n++)
                sum += hr_element_get(row_of(c, call->in[5], q, n * c->G), i, call->dtype);
            hr_element_set(call->out[0], at, call->dtype,
                           sum * share +
                               (call->in[6] ? hr_element_get(call->in[6], at, call->dtype) : 0));
        }
    }
}

/* Row k of w1 times a vector. */
static float row_product(const compressing *c, int64_t k, const float *with)
{
    const hr_layout layout = hr_linear_layout(c->call->dtype);
    const hr_dtype dtype = hr_product_dtype(c->call->dtype);
    const int64_t step = layout == HR_PANEL_PAIR ? 2 : 1;
    float total = 0;
    for (int64_t m = 0; m < c->M; m += HR_PANEL_WIDTH) {
        const int64_t at = hr_layout_index(layout, c->U, c->M, k, m);
        for (int64_t i = 0; i < hr_min(c->M - m, HR_PANEL_WIDTH); i++)
            total += hr_element_get(c->call->in[2], at + i * step, dtype) * with[m + i];
    }
    return total;
}

/* The gradient of position: w1 times that of b1, of each sequence. */
static void find_position(const compressing *c)
{
    const hr_call *call = c->call;
    float *sum = call->out[1];
    int64_t first, last;
    hr_share(c->U, call->thread, call->threads, &first, &last);
    for (int64_t k = first; sum && k < last; k++) {
        if (call->clear >> 1 & 1) sum[k] = 0;
        for (int64_t q = 0; q < c->sequences; q++) {
            sum[k] += row_product(c, k, db1_of(c, q));
        }
    }
}

/* Gathers chunk `index` for the product that follows; threads share its rows. */
static void gather_chunk(const compressing *c, int64_t index)
{
    chunk at = before_all();
    while (next_chunk(c, COMPRESS_DW_ROWS, &at) && at.index < index) continue;
    if (at.sequence == c->sequences) return;
    int64_t first, last;
    hr_share(at.last - at.first, c->call->thread, c->call->threads, &first, &last);
    gather(c, at.sequence, at.first + first, at.first + last,
           hr_element_at(c->shared + c->layout.gathered[index % 2], first * c->U, c->call->dtype));
}

static void add_chunk(const compressing *c, int64_t index)
{
    const hr_call *call = c->call;
    chunk at = before_all();
    while (next_chunk(c, COMPRESS_DW_ROWS, &at) && at.index < index) continue;
    add_products(c, c->shared + c->layout.gathered[index % 2], c->U,
                 hidden_of(c, c->layout.d_hidden, at.sequence, at.first), c->M, at.last - at.first,
                 at.first, index == 0 && call->clear >> 2 & 1, call->out[2]);
}

enum { FIRST_CHUNK = 2 }; /* phase */

int32_t hr_compress_bwd_phases(const hr_call *call)
{
    const compressing c = begin(call, true);
    if (c.M == 0) return 1;
    return FIRST_CHUNK + (int32_t)count_chunks(&c, COMPRESS_DW_ROWS) + 1;
}

void hr_compress_bwd_run(const hr_call *call)
{
    const compressing c = begin(call, true);
    const int64_t index = call->phase - FIRST_CHUNK, chunks = count_chunks(&c, COMPRESS_DW_ROWS);
    if (c.M == 0) {
        find_x_of_mean(&c);
        return;
    }
    if (call->phase == 0) find_hidden(&c);
    if (call->phase == 1) {
        find_small(&c);
        find_all_x(&c);
    }
    if (index == 0) find_position(&c);
    if (index >= 0 && index < chunks) gather_chunk(&c, index);
    if (index > 0 && index <= chunks && call->out[2]) add_chunk(&c, index - 1);
    if (index == 0 && chunks == 0 && call->thread == 0 && call->clear >> 2 & 1 && call->out[2])
        add_products(&c, NULL, c.U, NULL, c.M, 0, 0, true, call->out[2]);
}

const hr_op_run hr_compress_cpu_run = { hr_compress_run, 1, NULL };
const hr_op_run hr_compress_cached_cpu_run = { hr_compress_cached_run, 1, NULL };
const hr_op_run hr_compress_bwd_cpu_run = { hr_compress_bwd_run, 0, hr_compress_bwd_phases };
