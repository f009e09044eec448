/* SPDX-License-Identifier: Apache-2.0 */
/* ops/adafactor/adafactor_run.c - the four phases. Threads share blocks of lines, or rows and
 * columns; every sum over blocks is added in order. */
#include <math.h>
#include <string.h>

#include "ops/adafactor/adafactor.h"
#include "ops/cpu_run.h"
#include "ops/kernels.h"
#include "ops/update/update_blocks.h"

enum { LANES = HR_ADAFACTOR_LANES, SUM_R = 0, SUM_U };
enum { BLOCK = HR_MOMENT_BLOCK, RUN = HR_UPDATE_RUN_ELEMENTS };

/* One call: its shape, its scratch and its coefficients. */
typedef struct {
    const hr_call *call;
    const hr_adafactor_attr *attr;
    hr_layout layout;
    hr_adafactor_grid grid;
    double *sums, *runs;
    float *squares, *lanes, *rows, *columns;
    double keep, scale;
} update;

static update update_of(const hr_call *call)
{
    const hr_adafactor_attr *attr = call->attr;
    const double *norm_scale = call->in[1];
    update u = { .call = call, .attr = attr, .layout = (hr_layout)attr->layout };
    u.grid = hr_adafactor_grid_of(attr->K, attr->N, u.layout);
    const hr_adafactor_scratch at = hr_adafactor_scratch_of(attr, &u.grid);
    char *scratch = call->scratch;
    u.sums = (double *)(scratch + at.sums);
    u.runs = (double *)(scratch + at.runs);
    u.squares = (float *)(scratch + at.squares);
    u.lanes = (float *)(scratch + at.lanes);
    u.rows = (float *)(scratch + at.rows);
    u.columns = (float *)(scratch + at.columns);
    u.keep = 1 - pow(hr_update_number(call), attr->decay_rate);
    u.scale = norm_scale ? norm_scale[1] : 1;
    return u;
}

static float averaged(const update *u, float state, double mean)
{
    return (float)(u->keep * state + (1 - u->keep) * (mean + u->attr->eps1));
}

/* The sums over all blocks, in order. */
static double sum_of(const update *u, int32_t kind)
{
    double sum = 0;
    for (int64_t b = 0; b < u->grid.blocks; b++) sum += u->sums[kind * u->grid.blocks + b];
    return sum;
}

static hr_adafactor_strip strip_of(const update *u, int64_t strip, int64_t lines)
{
    const bool last = strip == u->grid.strips - 1;
    return (hr_adafactor_strip){ lines, u->grid.stride, last ? u->grid.lanes_last : LANES };
}

/* The lines of block b after `first`, at most a tile. */
static int64_t tile_at(const update *u, int64_t b, int64_t first)
{
    const int64_t end = hr_min((b + 1) * u->grid.block_lines, u->grid.lines);
    return hr_min(end - first, u->grid.tile_lines);
}

/* ---- phase 0: squares and R */

/* Updates R of the rows of a line, from the sums of its lanes. Returns the sum of the new R. */
static double update_rows(const update *u, int64_t line, const float *lanes)
{
    const int64_t rows = u->grid.line_rows;
    float *R = u->call->out[1];
    double sum = 0;
    for (int64_t k = line * rows; k < hr_min(line * rows + rows, u->attr->K); k++) {
        double squares = 0;
        for (int64_t l = k - line * rows; l < LANES; l += rows) squares += (double)lanes[l];
        R[k] = averaged(u, R[k], squares / (double)u->attr->N);
        sum += (double)R[k];
    }
    return sum;
}

static void square_block(const update *u, int64_t b)
{
    const float *gradient = u->call->in[0];
    float *squares = u->squares + b * u->grid.strips * LANES;
    float *lanes = u->lanes + b * u->grid.tile_lines * LANES;
    double sum = 0;
    memset(squares, 0, (size_t)(u->grid.strips * LANES) * sizeof *squares);
    for (int64_t line = b * u->grid.block_lines, count; (count = tile_at(u, b, line)) > 0;
         line += count) {
        memset(lanes, 0, (size_t)(count * LANES) * sizeof *lanes);
        for (int64_t s = 0; s < u->grid.strips; s++)
            u->call->kernels->adafactor.squares(
                gradient + hr_adafactor_at(&u->grid, u->layout, s, line), strip_of(u, s, count),
                (float)u->scale, lanes, squares + s * LANES);
        for (int64_t i = 0; i < count; i++) sum += update_rows(u, line + i, lanes + i * LANES);
    }
    u->sums[SUM_R * u->grid.blocks + b] = sum;
}

/* ---- phase 1: C, and the factors 1 / sqrt(R / mean(R)) and scale / sqrt(C) */

/* Padding has the factor 0. */
static void update_column(const update *u, int64_t strip, int64_t lane)
{
    const int64_t width = u->grid.line_rows, n = (strip * LANES + lane) / width;
    float *C = u->call->out[2], *factors = u->columns + strip * LANES + lane, factor = 0;
    double squares = 0;
    if (n < u->attr->N) {
        for (int64_t b = 0; b < u->grid.blocks; b++)
            for (int64_t i = 0; i < width; i++)
                squares += (double)u->squares[(b * u->grid.strips + strip) * LANES + lane + i];
        C[n] = averaged(u, C[n], squares / (double)u->attr->K);
        factor = (float)(u->scale / sqrt((double)C[n]));
    }
    for (int64_t i = 0; i < width; i++) factors[i] = factor;
}

static void factor_lines(const update *u, int64_t first, int64_t last)
{
    const double mean = sum_of(u, SUM_R) / (double)u->attr->K;
    const int64_t rows = u->grid.line_rows;
    const float *R = u->call->out[1];
    for (int64_t line = first; line < last; line++)
        for (int64_t i = 0; i < 2; i++) {
            const int64_t k = line * rows + i % rows;
            u->rows[2 * line + i] = k < u->attr->K ? (float)(1 / sqrt((double)R[k] / mean)) : 0;
        }
}

static void factors_of_thread(const update *u)
{
    const hr_call *call = u->call;
    int64_t first, last;
    hr_share(u->grid.strips, call->thread, call->threads, &first, &last);
    for (int64_t s = first; s < last; s++)
        for (int64_t l = 0; l < LANES; l += u->grid.line_rows) update_column(u, s, l);
    hr_share(u->grid.lines, call->thread, call->threads, &first, &last);
    factor_lines(u, first, last);
}

/* ---- phase 2: sums of u^2 and w^2 */

/* The squares of a run of the master, however it is stored. */
static void measure_run(const update *u, int64_t run)
{
    const hr_update_kernels *kernels = &u->call->kernels->update;
    const hr_master master = hr_update_master(u->call, 5);
    const int64_t end = hr_min((run + 1) * RUN, u->attr->update.elements);
    float values[BLOCK];
    double squares;
    u->runs[run] = 0;
    for (int64_t at = run * RUN; at < end; at += BLOCK) {
        const int64_t count = hr_min(BLOCK, end - at);
        kernels->sumsq(hr_master_unpack(kernels, &master, at, count, values), count, &squares);
        u->runs[run] += squares;
    }
}

static void measure_block(const update *u, int64_t b)
{
    const float *gradient = u->call->in[0];
    double sum = 0;
    for (int64_t line = b * u->grid.block_lines, count; (count = tile_at(u, b, line)) > 0;
         line += count)
        for (int64_t s = 0; s < u->grid.strips; s++) {
            const int64_t at = hr_adafactor_at(&u->grid, u->layout, s, line);
            sum += u->call->kernels->adafactor.measure(gradient + at, strip_of(u, s, count),
                                                       u->rows + 2 * line, u->columns + s * LANES);
        }
    u->sums[SUM_U * u->grid.blocks + b] = sum;
}

/* ---- phase 3: weights */

static hr_adafactor_factors factors_of(const update *u)
{
    const hr_adafactor_attr *attr = u->attr;
    const double count = (double)attr->K * (double)attr->N, t = hr_update_number(u->call);
    double squares = 0;
    for (int64_t i = 0; i < (attr->scale_parameter ? hr_update_runs(attr->update.elements) : 0);
         i++)
        squares += u->runs[i];
    const double moved = sqrt(sum_of(u, SUM_U) / count), w = sqrt(squares / count);
    const double excess = moved / attr->clip_threshold, lr = *(const double *)u->call->in[2];
    double rate = attr->update.lr_scale *
                  (attr->relative_step && lr * sqrt(t) > 1 ? 1 / sqrt(t) : lr);
    if (attr->scale_parameter) rate *= w < attr->eps2 ? attr->eps2 : w;
    return (hr_adafactor_factors){ .rate = (float)(excess < 1 ? rate : rate / excess),
                                   .keep = (float)attr->update.beta1,
                                   .take = (float)(1 - attr->update.beta1),
                                   .shrink = (float)(rate * attr->update.decay) };
}

static void apply_block(const update *u, int64_t b, const hr_adafactor_factors *factors)
{
    const float *gradient = u->call->in[0];
    float *master = u->call->out[0], *m = u->call->out[3];
    hr_bf16 *weight = u->call->out[4];
    for (int64_t line = b * u->grid.block_lines, count; (count = tile_at(u, b, line)) > 0;
         line += count)
        for (int64_t s = 0; s < u->grid.strips; s++) {
            const int64_t at = hr_adafactor_at(&u->grid, u->layout, s, line);
            u->call->kernels->adafactor.apply(gradient + at, master + at, m ? m + at : NULL,
                                              weight ? weight + at : NULL, strip_of(u, s, count),
                                              u->rows + 2 * line, u->columns + s * LANES, factors);
        }
}

/* A block of a stored master: lines of both strips of one panel, or the end of a panel and the
 * begin of the next. */
static void apply_stored(const update *u, int64_t first, int64_t count, float *w,
                         const hr_adafactor_factors *factors)
{
    enum { WIDTH = 2 * LANES }; /* of a line of a panel */
    const float *gradient = u->call->in[0];
    float *m = u->call->out[3];
    for (int64_t i = 0, lines; i < count; i += lines * WIDTH) {
        const int64_t index = (first + i) / WIDTH, line = index % u->grid.lines;
        lines = hr_min((count - i) / WIDTH, u->grid.lines - line);
        for (int64_t half = 0; half < 2; half++) {
            const int64_t at = i + half * LANES, strip = 2 * (index / u->grid.lines) + half;
            u->call->kernels->adafactor.apply(
                gradient + first + at, w + at, m ? m + first + at : NULL, NULL,
                (hr_adafactor_strip){ lines, WIDTH, LANES }, u->rows + 2 * line,
                u->columns + strip * LANES, factors);
        }
    }
}

static void apply_runs(const update *u, const hr_adafactor_factors *factors)
{
    const hr_update_kernels *kernels = &u->call->kernels->update;
    const hr_master master = hr_update_master(u->call, 5);
    float values[BLOCK];
    int64_t first, last;
    hr_update_share(u->call, u->attr->update.elements, &first, &last);
    for (int64_t at = first; at < last; at += BLOCK) {
        const int64_t count = hr_min(BLOCK, last - at);
        hr_master_unpack(kernels, &master, at, count, values);
        apply_stored(u, at, count, values, factors);
        hr_master_pack(kernels, &master, at, count, values);
    }
}

void hr_adafactor_run(const hr_call *call)
{
    const update u = update_of(call);
    int64_t first, last;
    if (call->phase == 1) {
        factors_of_thread(&u);
        return;
    }
    hr_share(u.grid.blocks, call->thread, call->threads, &first, &last);
    if (call->phase == 0)
        for (int64_t b = first; b < last; b++) square_block(&u, b);
    if (call->phase == 2) {
        for (int64_t b = first; b < last; b++) measure_block(&u, b);
        if (!u.attr->scale_parameter) return;
        hr_share(hr_update_runs(u.attr->update.elements), call->thread, call->threads, &first,
                 &last);
        for (int64_t run = first; run < last; run++) measure_run(&u, run);
    }
    if (call->phase != 3) return;
    const hr_adafactor_factors factors = factors_of(&u);
    if (u.attr->update.master != HR_MASTER_F32) apply_runs(&u, &factors);
    else
        for (int64_t b = first; b < last; b++) apply_block(&u, b, &factors);
}

const hr_op_run hr_adafactor_cpu_run = { hr_adafactor_run, 4 };
