/* SPDX-License-Identifier: Apache-2.0 */
/* ops/lif/lif_run.c - a block of neurons, token by token. Plain C for every machine: with the
 * multiply-adds of some of them spikes would differ. Inner loops have 16 lanes, which compilers
 * turn into vectors. */
#include <math.h>
#include <string.h>

#include "base/element.h"
#include "ops/cpu_run.h"
#include "ops/lif/lif_scratch.h"

enum { MOST = HR_LIF_BLOCK_MOST, LANES = HR_LIF_UNIT, APART = 101 };

static const float LEAK = 0.95f, FADE = 0.90f, THRESHOLD = 1, SLOPE = 5;

/* Neurons c to c + B of one sequence. */
typedef struct {
    const hr_call *call;
    const hr_lif_attr *attr;
    const float *w; /* of the first neuron */
    int64_t row, c, B, tokens;
} piece;

/* Between two tokens. Spikes are there twice, so that those of `distance` neurons further are in
 * one piece. */
typedef struct {
    _Alignas(64) float rest[MOST], fatigue[MOST], spikes[2 * MOST];
} states;

static int64_t distance(const piece *p, int64_t j)
{
    return (1 + APART * j) % p->B;
}

static int64_t place(const piece *p, int64_t t)
{
    return (p->row + t) * p->attr->C + p->c;
}

/* to += w[j] of each neuron * from */
static inline void add_products(float *to, const float *w, const float *from, int64_t B)
{
    for (int64_t c = 0; c < B; c += LANES)
        for (int64_t l = 0; l < LANES; l++) to[c + l] += w[c + l] * from[c + l];
}

/* The bits of a number in the order of numbers; a NaN is below all of them. */
static uint32_t rank_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value) return 0;
    return bits ^ (bits >> 31 ? 0xffffffff : 0x80000000);
}

/* The k-th largest rank, found bit by bit. */
static uint32_t select(const uint32_t *ranks, int64_t B, int64_t k)
{
    uint32_t least = 0;
    for (int32_t bit = 31; bit >= 0; bit--) {
        const uint32_t tried = least | UINT32_C(1) << bit;
        int64_t count = 0;
        for (int64_t c = 0; c < B; c++) count += ranks[c] >= tried;
        if (count >= k) least = tried;
    }
    return least;
}

/* Of equal potentials the lower indices win. */
static void choose_winners(const piece *p, const float *V, uint8_t *wins)
{
    const int64_t k = p->attr->winners;
    uint32_t ranks[MOST];
    int64_t above = 0;
    for (int64_t c = 0; c < p->B; c++) ranks[c] = rank_of(V[c] + 0); /* -0 is 0 */
    const uint32_t least = select(ranks, p->B, k);
    for (int64_t c = 0; c < p->B; c++) above += ranks[c] > least;
    for (int64_t c = 0; c < p->B; c++) {
        wins[c] = ranks[c] > least || (ranks[c] == least && above < k);
        above += ranks[c] == least && wins[c];
    }
}

/* One token: V out, and the states after it. */
static void integrate(const piece *p, const void *u, int64_t t, states *s, float *V, uint8_t *wins)
{
    const int64_t B = p->B, at = place(p, t);
    float input[MOST];
    for (int64_t c = 0; c < B; c++) input[c] = hr_element_get(u, at + c, p->call->dtype);
    for (int64_t j = 0; j < p->attr->synapses; j++)
        add_products(input, p->w + j * p->attr->C, s->spikes + distance(p, j), B);
    for (int64_t c = 0; c < B; c++) V[c] = LEAK * s->rest[c] + input[c] - s->fatigue[c];
    choose_winners(p, V, wins);
    for (int64_t c = 0; c < B; c++) {
        const bool spikes = wins[c] && V[c] >= THRESHOLD;
        s->spikes[c] = s->spikes[B + c] = spikes;
        s->rest[c] = spikes ? 0 : V[c];
        s->fatigue[c] = FADE * s->fatigue[c] + (spikes ? 1 : 0);
    }
}

static piece piece_of(const hr_call *call, int64_t block, int64_t sequence, int64_t T)
{
    const hr_lif_attr *attr = call->attr;
    const int64_t c = block * attr->block;
    return (piece){ .call = call,
                    .attr = attr,
                    .w = (const float *)call->in[2] + c,
                    .row = sequence * T,
                    .c = c,
                    .B = attr->block,
                    .tokens = hr_min(T, call->rows - sequence * T) };
}

/* ---- forward */

static void take_state(const piece *p, const float *state, states *s)
{
    const int64_t C = p->attr->C;
    memset(s, 0, sizeof *s);
    if (!state) return;
    for (int64_t c = 0; c < p->B; c++) {
        s->rest[c] = state[p->c + c];
        s->fatigue[c] = state[C + p->c + c];
        s->spikes[c] = s->spikes[p->B + c] = state[2 * C + p->c + c];
    }
}

static void put_state(const piece *p, const states *s, float *state)
{
    const size_t bytes = (size_t)p->B * sizeof *state;
    memcpy(state + p->c, s->rest, bytes);
    memcpy(state + p->attr->C + p->c, s->fatigue, bytes);
    memcpy(state + 2 * p->attr->C + p->c, s->spikes, bytes);
}

static void forward(const piece *p, float *state)
{
    const hr_dtype dtype = p->call->dtype;
    states s;
    float V[MOST];
    uint8_t wins[MOST];
    take_state(p, state, &s);
    for (int64_t t = 0; t < p->tokens; t++) {
        const int64_t at = place(p, t);
        integrate(p, p->call->in[0], t, &s, V, wins);
        for (int64_t c = 0; c < p->B; c++)
            hr_element_set(p->call->out[0], at + c, dtype,
                           hr_element_get(p->call->in[1], at + c, dtype) + s.spikes[c]);
    }
    if (state) put_state(p, &s, state);
}

void hr_lif_run(const hr_call *call)
{
    const hr_lif_attr *attr = call->attr;
    float *state = call->out[1];
    const int64_t T = state ? hr_max(call->rows, 1) : attr->T;
    const int64_t blocks = attr->C / attr->block, sequences = (call->rows + T - 1) / T;
    int64_t first, last;
    hr_share(blocks * sequences, call->thread, call->threads, &first, &last);
    for (int64_t i = first; i < last; i++) {
        const piece p = piece_of(call, i % blocks, i / blocks, T);
        forward(&p, state);
    }
}

/* ---- backward */

/* What is carried from a token to the one before. */
typedef struct {
    _Alignas(64) float potential[MOST], fatigue[MOST], spikes[2 * MOST];
} gradients;

static void replay(const piece *p, float *potentials, float *spikes, uint8_t *wins)
{
    states s;
    take_state(p, NULL, &s);
    memset(spikes, 0, (size_t)(2 * p->B) * sizeof *spikes);
    for (int64_t t = 0; t < p->tokens; t++) {
        integrate(p, p->call->in[1], t, &s, potentials + t * p->B, wins + t * p->B);
        memcpy(spikes + (1 + t) * 2 * p->B, s.spikes, (size_t)(2 * p->B) * sizeof *spikes);
    }
}

/* Token t: du out, and the gradients for the token before. `spikes` are those after token t. */
static void step_back(const piece *p, int64_t t, const float *V, const float *spikes,
                      const uint8_t *wins, gradients *g)
{
    const hr_dtype dtype = p->call->dtype;
    const int64_t B = p->B, at = place(p, t);
    for (int64_t c = 0; c < B; c++) {
        g->fatigue[c] = FADE * g->fatigue[c] - g->potential[c];
        const float of_spike = hr_element_get(p->call->in[0], at + c, dtype) + g->fatigue[c] +
                               (g->spikes[c] + g->spikes[B + c]);
        const float away = 1 + SLOPE * fabsf(V[c] - THRESHOLD);
        const float through = wins[c] ? of_spike / (away * away) : 0;
        g->potential[c] = through + LEAK * g->potential[c] * (1 - spikes[c]);
        hr_element_set(p->call->out[0], at + c, dtype, g->potential[c]);
    }
    memset(g->spikes, 0, sizeof g->spikes);
    for (int64_t j = 0; j < p->attr->synapses; j++)
        add_products(g->spikes + distance(p, j), p->w + j * p->attr->C, g->potential, B);
}

static void backward(const piece *p, char *scratch, float *dw)
{
    const hr_lif_scratch at = hr_lif_scratch_of(p->attr);
    float *potentials = (float *)(scratch + at.potentials), *sums = (float *)(scratch + at.sums);
    float *spikes = (float *)(scratch + at.spikes);
    uint8_t *wins = (uint8_t *)(scratch + at.wins);
    const int64_t B = p->B, S = p->attr->synapses;
    gradients g;
    replay(p, potentials, spikes, wins);
    memset(&g, 0, sizeof g);
    memset(sums, 0, (size_t)(S * B) * sizeof *sums);
    for (int64_t t = p->tokens; t-- > 0;) {
        const float *before = spikes + t * 2 * B;
        step_back(p, t, potentials + t * B, before + 2 * B, wins + t * B, &g);
        for (int64_t j = 0; j < S && dw; j++)
            add_products(sums + j * B, g.potential, before + distance(p, j), B);
    }
    for (int64_t j = 0; j < S && dw; j++)
        for (int64_t c = 0; c < B; c++) dw[j * p->attr->C + p->c + c] += sums[j * B + c];
}

void hr_lif_bwd_run(const hr_call *call)
{
    const hr_lif_attr *attr = call->attr;
    char *scratch = (char *)call->scratch + call->thread * hr_lif_scratch_of(attr).bytes;
    float *dw = call->out[1];
    const int64_t sequences = (call->rows + attr->T - 1) / attr->T;
    int64_t first, last;
    hr_share(attr->C / attr->block, call->thread, call->threads, &first, &last);
    for (int64_t block = first; block < last; block++) {
        for (int64_t j = 0; j < attr->synapses && dw && call->clear & 2; j++)
            memset(dw + j * attr->C + block * attr->block, 0, (size_t)attr->block * sizeof *dw);
        for (int64_t s = 0; s < sequences; s++) {
            const piece p = piece_of(call, block, s, attr->T);
            backward(&p, scratch, dw);
        }
    }
}

const hr_op_run hr_lif_cpu_run = { hr_lif_run, 1 };
const hr_op_run hr_lif_bwd_cpu_run = { hr_lif_bwd_run, 1 };
