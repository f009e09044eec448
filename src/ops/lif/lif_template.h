/* SPDX-License-Identifier: Apache-2.0 */
/* ops/lif/lif_template.h - a block of neurons, token by token. Included once per instruction set,
 * in files without multiply-adds that round once: with those of some machines spikes would differ.
 *
 *     FILL   name of the function that fills the table
 *     WIDTH  numbers in a register, a divisor of HR_LIF_UNIT
 *     FEW    registers with sums */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/element.h"
#include "ops/lif/lif_kernels.h"
#include "ops/simd/unroll.h"

enum { MOST = HR_LIF_BLOCK_MOST, APART = 101, TOKENS = 64 };

#define LEAK 0.95f
#define FADE 0.90f
#define THRESHOLD 1.f
#define SLOPE 5.f

typedef float lanes __attribute__((vector_size(4 * WIDTH)));
typedef float lanes_anywhere __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define AT(array) (*(lanes_anywhere *)(array))
#define OF(array) (*(const lanes_anywhere *)(array))

/* Between two tokens. Spikes are there twice, so that those of a distance further are in one
 * piece. */
typedef struct {
    _Alignas(64) float rest[MOST], fatigue[MOST], spikes[2 * MOST];
} states;

/* How much further the neuron is that each one hears as its j-th. */
typedef struct {
    int32_t j[MOST];
} distances;

static void measure(const hr_lif_part *p, distances *to)
{
    for (int32_t j = 0; j < p->attr->synapses; j++) to->j[j] = (1 + APART * j) % p->attr->block;
}

static void take_row(const hr_lif_part *p, const void *rows, int64_t t, float *to)
{
    const int64_t at = t * p->attr->C, B = p->attr->block;
    if (p->dtype == HR_F32) memcpy(to, (const float *)rows + at, (size_t)B * sizeof *to);
    else if (p->dtype == HR_BF16)
        for (int64_t c = 0; c < B; c++) to[c] = hr_bf16_to_f32(((const hr_bf16 *)rows)[at + c]);
    else
        for (int64_t c = 0; c < B; c++) to[c] = hr_element_get(rows, at + c, p->dtype);
}

static void put_row(const hr_lif_part *p, void *rows, int64_t t, const float *from)
{
    const int64_t at = t * p->attr->C, B = p->attr->block;
    if (p->dtype == HR_F32) memcpy((float *)rows + at, from, (size_t)B * sizeof *from);
    else if (p->dtype == HR_BF16)
        for (int64_t c = 0; c < B; c++) ((hr_bf16 *)rows)[at + c] = hr_bf16_from_f32(from[c]);
    else
        for (int64_t c = 0; c < B; c++) hr_element_set(rows, at + c, p->dtype, from[c]);
}

/* to[c] += sum over j, in their order, of w[j stride + c] from[c + sign distance of j], for groups
 * of WIDTH. */
INLINE void add_groups(float *to, const float *w, int64_t stride, const float *from, int32_t sign,
                       const distances *d, int32_t synapses, int groups)
{
    lanes sum[FEW];
    UNROLL for (int g = 0; g < groups; g++) sum[g] = OF(to + g * WIDTH);
    for (int32_t j = 0; j < synapses; j++, w += stride)
        UNROLL for (int g = 0; g < groups; g++)
            sum[g] += OF(w + g * WIDTH) * OF(from + sign * d->j[j] + g * WIDTH);
    UNROLL for (int g = 0; g < groups; g++) AT(to + g * WIDTH) = sum[g];
}

INLINE void add_products(float *to, const float *w, int64_t stride, const float *from, int32_t sign,
                         const distances *d, const hr_lif_attr *attr)
{
    int64_t c = 0;
    for (; c + FEW * WIDTH <= attr->block; c += FEW * WIDTH)
        add_groups(to + c, w + c, stride, from + c, sign, d, attr->synapses, FEW);
    for (; c < attr->block; c += WIDTH)
        add_groups(to + c, w + c, stride, from + c, sign, d, attr->synapses, 1);
}

/* The bits of a number in the order of numbers; a NaN is below all of them. */
INLINE int32_t rank_of(float value)
{
    int32_t bits;
    value += 0; /* -0 is 0 */
    memcpy(&bits, &value, sizeof bits);
    return value != value ? INT32_MIN : bits ^ (int32_t)((uint32_t)(bits >> 31) >> 1);
}

static int32_t count_from(const int32_t *ranks, int64_t B, int32_t least)
{
    int32_t count = 0;
    for (int64_t c = 0; c < B; c += HR_LIF_UNIT)
        for (int64_t l = 0; l < HR_LIF_UNIT; l++) count += ranks[c + l] >= least;
    return count;
}

/* The k largest win, of equals those with lower indices. The least rank is found bit by bit, up to
 * the first that k reach. */
static void choose_winners(const hr_lif_attr *attr, const float *V, uint8_t *wins)
{
    const int32_t B = attr->block, k = attr->winners;
    _Alignas(64) int32_t ranks[MOST];
    for (int32_t c = 0; c < B; c++) ranks[c] = rank_of(V[c]);
    uint32_t least = 0;
    int32_t count = B;
    for (int32_t bit = 31; bit >= 0 && count != k; bit--) {
        const uint32_t tried = least | UINT32_C(1) << bit;
        const int32_t reach = count_from(ranks, B, (int32_t)(tried ^ UINT32_C(0x80000000)));
        if (reach < k) continue;
        least = tried;
        count = reach;
    }
    const int32_t from = (int32_t)(least ^ UINT32_C(0x80000000));
    for (int32_t c = 0; c < B; c++) wins[c] = ranks[c] >= from;
    for (int32_t c = B; count > k && c-- > 0;) {
        count -= ranks[c] == from;
        wins[c] &= ranks[c] != from;
    }
}

/* One token with inputs V: potentials V out, and the states after it. */
static void integrate(const hr_lif_part *p, const distances *d, states *s, float *V, uint8_t *wins)
{
    const int64_t B = p->attr->block;
    add_products(V, p->w, p->attr->C, s->spikes, 1, d, p->attr);
    for (int64_t c = 0; c < B; c++) V[c] = LEAK * s->rest[c] + V[c] - s->fatigue[c];
    choose_winners(p->attr, V, wins);
    for (int64_t c = 0; c < B; c++) {
        const float spike = wins[c] && V[c] >= THRESHOLD ? 1.f : 0.f;
        s->spikes[c] = s->spikes[B + c] = spike;
        s->rest[c] = spike > 0 ? 0 : V[c];
        s->fatigue[c] = FADE * s->fatigue[c] + spike;
    }
}

/* ---- forward */

static void take_state(const hr_lif_part *p, const float *state, states *s)
{
    const int64_t C = p->attr->C, B = p->attr->block;
    const size_t bytes = (size_t)B * sizeof *state;
    memset(s, 0, sizeof *s);
    if (!state) return;
    memcpy(s->rest, state, bytes);
    memcpy(s->fatigue, state + C, bytes);
    memcpy(s->spikes, state + 2 * C, bytes);
    memcpy(s->spikes + B, state + 2 * C, bytes);
}

static void put_state(const hr_lif_part *p, const states *s, float *state)
{
    const size_t bytes = (size_t)p->attr->block * sizeof *state;
    memcpy(state, s->rest, bytes);
    memcpy(state + p->attr->C, s->fatigue, bytes);
    memcpy(state + 2 * p->attr->C, s->spikes, bytes);
}

static void fwd(const hr_lif_part *p, const void *u, const void *x, void *y, float *state)
{
    const int64_t B = p->attr->block;
    _Alignas(64) float row[MOST];
    states s;
    distances d;
    uint8_t wins[MOST];
    measure(p, &d);
    take_state(p, state, &s);
    for (int64_t t = 0; t < p->tokens; t++) {
        take_row(p, u, t, row);
        integrate(p, &d, &s, row, wins);
        take_row(p, x, t, row);
        for (int64_t c = 0; c < B; c++) row[c] += s.spikes[c];
        put_row(p, y, t, row);
    }
    if (state) put_state(p, &s, state);
}

/* ---- backward */

/* What is carried from a token to the one before. Gradients of potentials are there twice, so that
 * those of a distance back are in one piece. */
typedef struct {
    _Alignas(64) float potential[2 * MOST], fatigue[MOST], spikes[MOST];
} gradients;

static void replay(const hr_lif_part *p, const distances *d, const void *u, float *potentials,
                   float *spikes, uint8_t *wins)
{
    const int64_t B = p->attr->block;
    states s;
    take_state(p, NULL, &s);
    memset(spikes, 0, (size_t)(2 * B) * sizeof *spikes);
    for (int64_t t = 0; t < p->tokens; t++) {
        take_row(p, u, t, potentials + t * B);
        integrate(p, d, &s, potentials + t * B, wins + t * B);
        memcpy(spikes + (1 + t) * 2 * B, s.spikes, (size_t)(2 * B) * sizeof *spikes);
    }
}

/* heard[j][c] = w[j] of the neuron that hears c as its j-th. */
static void turn(const hr_lif_part *p, const distances *d, float *heard)
{
    const int64_t B = p->attr->block;
    for (int32_t j = 0; j < p->attr->synapses; j++, heard += B) {
        const float *w = p->w + j * p->attr->C;
        memcpy(heard + d->j[j], w, (size_t)(B - d->j[j]) * sizeof *w);
        memcpy(heard, w + B - d->j[j], (size_t)d->j[j] * sizeof *w);
    }
}

/* The gradients for the token before, of `of_y`, from V of this token and the spikes after it. */
static void step_back(const hr_lif_part *p, const distances *d, const float *of_y, const float *V,
                      const float *spikes, const uint8_t *wins, const float *heard, gradients *g)
{
    const int64_t B = p->attr->block;
    for (int64_t c = 0; c < B; c++) {
        g->fatigue[c] = FADE * g->fatigue[c] - g->potential[c];
        const float of_spike = of_y[c] + g->fatigue[c] + g->spikes[c];
        const float away = 1 + SLOPE * fabsf(V[c] - THRESHOLD);
        const float through = wins[c] ? of_spike / (away * away) : 0;
        g->potential[c] = through + LEAK * g->potential[c] * (1 - spikes[c]);
        g->potential[B + c] = g->potential[c];
    }
    memset(g->spikes, 0, (size_t)B * sizeof *g->spikes);
    add_products(g->spikes, heard, B, g->potential + B, -1, d, p->attr);
}

/* sums[j] += what tokens [first, end) add, the last one first, for FEW synapses from `j` on, whose
 * products share the gradients. */
INLINE void add_tokens(const float *potentials, const float *spikes, int64_t B, int64_t first,
                       int64_t end, const int32_t *distance, float *sums, int count)
{
    lanes sum[FEW];
    UNROLL for (int j = 0; j < count; j++) sum[j] = OF(sums + j * B);
    for (int64_t t = end; t-- > first;) {
        const lanes potential = OF(potentials + t * B);
        UNROLL for (int j = 0; j < count; j++)
            sum[j] += potential * OF(spikes + t * 2 * B + distance[j]);
    }
    UNROLL for (int j = 0; j < count; j++) AT(sums + j * B) = sum[j];
}

/* The gradients of the weights, by tokens whose rows are in cache. */
static void add_weights(const hr_lif_part *p, const distances *d, const float *potentials,
                        const float *spikes, float *sums)
{
    const int64_t B = p->attr->block, S = p->attr->synapses;
    memset(sums, 0, (size_t)(S * B) * sizeof *sums);
    for (int64_t end = p->tokens; end > 0; end -= TOKENS) {
        const int64_t first = hr_max(end - TOKENS, 0);
        for (int64_t c = 0; c < B; c += WIDTH) {
            int64_t j = 0;
            for (; j + FEW <= S; j += FEW)
                add_tokens(potentials + c, spikes + c, B, first, end, d->j + j, sums + j * B + c,
                           FEW);
            for (; j < S; j++)
                add_tokens(potentials + c, spikes + c, B, first, end, d->j + j, sums + j * B + c,
                           1);
        }
    }
}

static void bwd(const hr_lif_part *p, const void *dy, const void *u, void *du, char *scratch,
                float *dw)
{
    const hr_lif_scratch at = hr_lif_scratch_of(p->attr);
    float *potentials = (float *)(scratch + at.potentials), *sums = (float *)(scratch + at.sums);
    float *spikes = (float *)(scratch + at.spikes), *heard = (float *)(scratch + at.heard);
    uint8_t *wins = (uint8_t *)(scratch + at.wins);
    const int64_t B = p->attr->block, S = p->attr->synapses, C = p->attr->C;
    _Alignas(64) float row[MOST];
    distances d;
    gradients g;
    measure(p, &d);
    replay(p, &d, u, potentials, spikes, wins);
    turn(p, &d, heard);
    memset(&g, 0, sizeof g);
    for (int64_t t = p->tokens; t-- > 0;) {
        take_row(p, dy, t, row);
        step_back(p, &d, row, potentials + t * B, spikes + (1 + t) * 2 * B, wins + t * B, heard,
                  &g);
        put_row(p, du, t, g.potential);
        memcpy(potentials + t * B, g.potential, (size_t)B * sizeof *row); /* V is not read again */
    }
    if (!dw) return;
    add_weights(p, &d, potentials, spikes, sums);
    for (int64_t j = 0; j < S; j++)
        for (int64_t c = 0; c < B; c++) dw[j * C + c] += sums[j * B + c];
}

void FILL(hr_lif_kernels *kernels)
{
    *kernels = (hr_lif_kernels){ fwd, bwd };
}
