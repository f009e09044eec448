/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/wide_in_double.h - the loss of the family `wide` computed from its equations in
 * double, and the sign of the input of each of its ReLUs.
 *
 *     x = tok_emb[ids];  each layer: s[t] = a s[t-1] + (1 - a) x[t] w_in,  x = x + max(s, 0)
 *     logits = max(x w_expand + b_expand, 0) decoder, of full rank or decoder.a decoder.b
 *
 * Uses no code of the product. Between two points with equal signs the loss is smooth, so a finite
 * difference with a very small step has neither a kink nor the rounding of fp32. */
#ifndef HR_TESTS_SUPPORT_WIDE_IN_DOUBLE_H
#define HR_TESTS_SUPPORT_WIDE_IN_DOUBLE_H

#include <math.h>
#include <stdint.h>

enum { WIDE_MOST = 64 }; /* maximum of D, D_out, rank and V */

typedef struct {
    int64_t D, layers, expansion, rank, V; /* rank 0: the decoder is one matrix */
    int64_t sequences, T;
    const int32_t *ids, *targets; /* [sequences, T]; a negative target is ignored */
    const double *tok_emb, *w_expand, *b_expand, *decoder, *decoder_a, *decoder_b;
    const double *w_in[WIDE_MOST], *alpha[WIDE_MOST]; /* [layers] */
} wide_in_double;

/* Result of a pass. `sides` is a hash of the signs in the order of the ReLUs. */
typedef struct {
    double loss;
    uint64_t sides;
} wide_seen;

static inline double wide_relu(double value, wide_seen *seen)
{
    seen->sides = (seen->sides << 1 | seen->sides >> 63) * 0x9e3779b97f4a7c15u + (value > 0);
    return value > 0 ? value : 0;
}

/* y [N] = x [K] times w [K, N]. */
static inline void wide_product(const double *x, const double *w, int64_t K, int64_t N, double *y)
{
    for (int64_t n = 0; n < N; n++) {
        y[n] = 0;
        for (int64_t k = 0; k < K; k++) y[n] += x[k] * w[k * N + n];
    }
}

/* Passes a token through the trunk, in x. `states` [layers, WIDE_MOST] are those of the previous
 * token. */
static inline void wide_trunk(const wide_in_double *m, double *x, double states[][WIDE_MOST],
                              wide_seen *seen)
{
    double u[WIDE_MOST];
    for (int64_t l = 0; l < m->layers; l++) {
        wide_product(x, m->w_in[l], m->D, m->D, u);
        for (int64_t c = 0; c < m->D; c++) {
            const double a = 1 / (1 + exp(-m->alpha[l][c]));
            states[l][c] = a * states[l][c] + (1 - a) * u[c];
            x[c] += wide_relu(states[l][c], seen);
        }
    }
}

/* Negative log-likelihood of the target. */
static inline double wide_surprise(const wide_in_double *m, const double *x, int32_t target,
                                   wide_seen *seen)
{
    double z[WIDE_MOST], low[WIDE_MOST], logits[WIDE_MOST], sum = 0;
    wide_product(x, m->w_expand, m->D, m->expansion, z);
    for (int64_t i = 0; i < m->expansion; i++) z[i] = wide_relu(z[i] + m->b_expand[i], seen);
    if (m->rank) {
        wide_product(z, m->decoder_a, m->expansion, m->rank, low);
        wide_product(low, m->decoder_b, m->rank, m->V, logits);
    } else {
        wide_product(z, m->decoder, m->expansion, m->V, logits);
    }
    for (int64_t v = 0; v < m->V; v++) sum += exp(logits[v] - logits[target]);
    return log(sum);
}

/* The mean over the targets that are not ignored. */
static inline wide_seen wide_loss(const wide_in_double *m)
{
    wide_seen seen = { 0 };
    int64_t counted = 0;
    for (int64_t b = 0; b < m->sequences; b++) {
        double states[WIDE_MOST][WIDE_MOST] = { { 0 } };
        for (int64_t t = 0; t < m->T; t++) {
            double x[WIDE_MOST];
            const int64_t row = b * m->T + t;
            for (int64_t c = 0; c < m->D; c++) x[c] = m->tok_emb[m->ids[row] * m->D + c];
            wide_trunk(m, x, states, &seen);
            if (m->targets[row] < 0) continue;
            seen.loss += wide_surprise(m, x, m->targets[row], &seen);
            counted++;
        }
    }
    seen.loss /= (double)counted;
    return seen;
}

#endif
