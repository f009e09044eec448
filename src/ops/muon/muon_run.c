/* SPDX-License-Identifier: Apache-2.0 */
/* ops/muon/muon_run.c - the phases of the update: the momentum, the norm, six phases for each step
 * of the iteration, the weights. */
#include <math.h>

#include "ops/cpu_run.h"
#include "ops/linear/linear_pack.h"
#include "ops/muon/muon_scratch.h"
#include "ops/update/update_blocks.h"

/* The phases of a step come between BEGIN and the weights. */
enum { MOMENTUM, NORM, BEGIN };
enum { PACK, GRAM, PACK_GRAM, SCALE_GRAM, SQUARE, APPLY, PHASES };
enum { BLOCK = HR_MUON_BLOCK, WIDTH = HR_PANEL_WIDTH };

_Static_assert((int)BLOCK == (int)HR_MOMENT_BLOCK, "a block of moments");

static const double A = 3.4445, B = -4.775, C = 2.0315, EPS = 1e-7;

/* One call: its shape and its scratch. */
typedef struct {
    const hr_call *call;
    const hr_muon_attr *attr;
    hr_muon_scratch at;
    hr_dtype dtype;
    double *sums;
    void *rows, *panels, *gram, *gram_panels, *change;
} update;

static update update_of(const hr_call *call)
{
    const hr_muon_attr *attr = call->attr;
    char *scratch = call->scratch;
    update u = { .call = call,
                 .attr = attr,
                 .at = hr_muon_scratch_of(attr, call->threads),
                 .dtype = hr_muon_dtype(attr) };
    u.sums = (double *)(scratch + u.at.sums);
    u.rows = scratch + u.at.rows;
    u.panels = scratch + u.at.panels;
    u.gram = scratch + u.at.gram;
    u.gram_panels = scratch + u.at.gram_panels;
    u.change = scratch + u.at.change;
    return u;
}

/* ---- between X and blocks of the layout of the weight */

/* Copies an element of 4 or 2 bytes. */
static inline void copy(void *to, int64_t to_index, const void *from, int64_t from_index, bool wide)
{
    if (wide) ((uint32_t *)to)[to_index] = ((const uint32_t *)from)[from_index];
    else ((uint16_t *)to)[to_index] = ((const uint16_t *)from)[from_index];
}

/* Copies the elements of a block that are not padding to X, or from it. */
static inline void exchange_of(const update *u, int64_t first, int64_t count, void *block, bool out,
                               bool wide)
{
    const int64_t K = u->attr->K, N = u->attr->N, lines = wide ? 1 : 2;
    const int64_t group = lines * WIDTH, groups = (K + lines - 1) / lines; /* of a panel */
    const int64_t next = u->at.transposed ? K : 1;                         /* column */
    for (int64_t at = 0; at < count; at += group) {
        const int64_t index = (first + at) / group, n = index / groups * WIDTH;
        const int64_t columns = hr_min(WIDTH, N - n);
        for (int64_t i = 0; i < lines; i++) {
            const int64_t k = index % groups * lines + i;
            const int64_t place = u->at.transposed ? n * K + k : k * N + n;
            if (k >= K) break;
            if (out)
                for (int64_t c = 0; c < columns; c++)
                    copy(u->rows, place + c * next, block, at + c * lines + i, wide);
            else
                for (int64_t c = 0; c < columns; c++)
                    copy(block, at + c * lines + i, u->rows, place + c * next, wide);
        }
    }
}

static void put_block(const update *u, int64_t first, int64_t count, const float *values)
{
    hr_bf16 halves[BLOCK];
    if (u->dtype == HR_F32) {
        exchange_of(u, first, count, (void *)values, true, true);
        return;
    }
    u->call->kernels->update.pack_bf16(values, NULL, 0, halves, count);
    exchange_of(u, first, count, halves, true, false);
}

/* Padding is zero. */
static void get_block(const update *u, int64_t first, int64_t count, float *values)
{
    hr_bf16 halves[BLOCK] = { 0 };
    if (u->dtype == HR_F32) {
        memset(values, 0, (size_t)count * sizeof *values);
        exchange_of(u, first, count, values, false, true);
        return;
    }
    exchange_of(u, first, count, halves, false, false);
    u->call->kernels->update.unpack_bf16(halves, values, count);
}

/* ---- the momentum */

static void move_block(float *m, const float *gradient, float *direction, int64_t count,
                       const hr_lion_factors *f, bool nesterov)
{
    for (int64_t i = 0; i < count; i++) {
        const float g = f->scale * gradient[i];
        m[i] = f->keep1 * m[i] + f->take1 * g;
        direction[i] = nesterov ? f->keep1 * m[i] + f->take1 * g : m[i];
    }
}

static void momentum(const update *u)
{
    const hr_call *call = u->call;
    const hr_moment moment = hr_update_moment(call, 0, 3);
    const hr_lion_factors factors = { .scale = (float)hr_update_scale(call),
                                      .keep1 = (float)u->attr->update.beta1,
                                      .take1 = (float)(1 - u->attr->update.beta1) };
    const float *gradient = call->in[0];
    float stored[BLOCK], direction[BLOCK];
    int64_t first, last;
    hr_update_share(call, u->attr->update.elements, &first, &last);
    for (int64_t at = first; at < last; at += BLOCK) {
        const int64_t count = hr_min(BLOCK, last - at);
        float *m = hr_update_unpack(call, &moment, at, count, stored);
        move_block(m, gradient + at, direction, count, &factors, u->attr->nesterov);
        hr_update_pack(call, &moment, at, count, m);
        call->kernels->update.sumsq(direction, count, &u->sums[at / BLOCK]);
        put_block(u, at, count, direction);
    }
}

/* ---- the iteration */

/* to = factor * from; they may be one array. */
static void scale(const update *u, const void *from, void *to, int64_t elements, float factor)
{
    const hr_update_kernels *kernels = &u->call->kernels->update;
    float values[BLOCK];
    int64_t first, last;
    hr_update_share(u->call, elements, &first, &last);
    for (int64_t at = first; at < last; at += BLOCK) {
        const int64_t count = hr_min(BLOCK, last - at);
        const float *x = (const float *)from + at;
        if (u->dtype == HR_BF16) kernels->unpack_bf16((const hr_bf16 *)from + at, values, count);
        float *y = u->dtype == HR_BF16 ? values : (float *)to + at;
        if (u->dtype == HR_BF16) x = values;
        for (int64_t i = 0; i < count; i++) y[i] = factor * x[i];
        if (u->dtype == HR_BF16) kernels->pack_bf16(y, NULL, 0, (hr_bf16 *)to + at, count);
    }
}

static void normalise(const update *u)
{
    const int64_t blocks = (u->attr->update.elements + BLOCK - 1) / BLOCK;
    double sum = 0;
    for (int64_t b = 0; b < blocks; b++) sum += u->sums[b];
    const double norm = sqrt(sum);
    /* not fmax, which would lose a NaN */
    scale(u, u->rows, u->rows, u->at.M * u->at.L, (float)(1 / (norm < EPS ? EPS : norm)));
}

/* A product of ops/linear with [M, columns] in panels: forward or, transposed, of the input's
 * gradient. `residual` may be null or `out`. */
static void multiply(const update *u, hr_run_fn *run, const void *x, const void *panels,
                     int64_t columns, void *residual, void *out)
{
    const hr_linear_attr attr = { .K = u->at.M, .N = columns };
    hr_call call = { .in = { (void *)x, (void *)panels, NULL, residual },
                     .out = { out },
                     .scratch = (char *)u->call->scratch + u->at.product,
                     .attr = &attr,
                     .kernels = u->call->kernels,
                     .rows = u->at.M,
                     .dtype = u->dtype,
                     .thread = u->call->thread,
                     .threads = u->call->threads };
    run(&call);
}

/* X = a^i x before step i, where x is in scratch:  x += (b / a G a^2i + c / a G G a^4i) x */
static void iterate(const update *u, int32_t step, int32_t phase)
{
    const double size = pow(A, 2 * step);
    if (phase == PACK)
        hr_linear_pack(u->call, u->dtype, u->rows, u->at.L, u->at.M, u->at.L, u->panels);
    if (phase == GRAM) multiply(u, hr_linear_dx_run, u->rows, u->panels, u->at.L, NULL, u->gram);
    if (phase == PACK_GRAM) {
        hr_linear_pack(u->call, u->dtype, u->gram, u->at.M, u->at.M, u->at.M, u->gram_panels);
        scale(u, u->gram, u->change, u->at.M * u->at.M, (float)(B / A * size));
    }
    if (phase == SCALE_GRAM)
        scale(u, u->gram, u->gram, u->at.M * u->at.M, (float)(C / A * size * size));
    if (phase == SQUARE)
        multiply(u, hr_linear_run, u->gram, u->gram_panels, u->at.M, u->change, u->change);
    if (phase == APPLY) multiply(u, hr_linear_run, u->change, u->panels, u->at.L, u->rows, u->rows);
}

/* ---- weights */

static void apply_block(float *w, const float *x, hr_bf16 *weight, int64_t count, float shrink,
                        float rate)
{
    for (int64_t i = 0; i < count; i++) w[i] -= shrink * w[i] + rate * x[i];
    if (weight)
        for (int64_t i = 0; i < count; i++) weight[i] = hr_bf16_from_f32(w[i]);
}

static void apply(const update *u)
{
    const hr_call *call = u->call;
    const hr_update_attr *attr = &u->attr->update;
    const double lr = attr->lr_scale * *(const double *)call->in[2];
    const hr_master master = hr_update_master(call, 4);
    const float rate = (float)(lr * u->attr->shape * pow(A, u->attr->steps));
    hr_bf16 *weight = call->out[2];
    float stored[BLOCK], x[BLOCK];
    int64_t first, last;
    hr_update_share(call, attr->elements, &first, &last);
    for (int64_t at = first; at < last; at += BLOCK) {
        const int64_t count = hr_min(BLOCK, last - at);
        float *w = hr_master_unpack(&call->kernels->update, &master, at, count, stored);
        get_block(u, at, count, x);
        apply_block(w, x, weight ? weight + at : NULL, count, (float)(lr * attr->decay), rate);
        hr_master_pack(&call->kernels->update, &master, at, count, w);
    }
}

static int32_t phases_of(const hr_call *call)
{
    return BEGIN + PHASES * ((const hr_muon_attr *)call->attr)->steps + 1;
}

void hr_muon_run(const hr_call *call)
{
    const update u = update_of(call);
    const int32_t phase = call->phase - BEGIN;
    if (call->phase == MOMENTUM) momentum(&u);
    else if (call->phase == NORM) normalise(&u);
    else if (call->phase + 1 == phases_of(call)) apply(&u);
    else iterate(&u, phase / PHASES, phase % PHASES);
}

const hr_op_run hr_muon_cpu_run = { hr_muon_run, BEGIN + PHASES, phases_of };
