/* SPDX-License-Identifier: Apache-2.0 */
/* ops/recurrence/recurrence_ref.c - reference implementation, channel by channel. */
#include <math.h>

#include "base/element.h"
#include "ops/recurrence/recurrence_kernels.h"

enum { BLOCK = HR_RECURRENCE_BLOCK };

typedef struct {
    double a, b;
} gates;

static gates gates_of(const hr_recurrence_part *part, int64_t c)
{
    const double alpha = part->alpha[c];
    return (gates){ 1 / (1 + exp(-alpha)), 1 / (1 + exp(alpha)) };
}

static double at(const hr_recurrence_part *part, const void *rows, int64_t t, int64_t c)
{
    return hr_element_get(rows, t * part->stride + c, part->dtype);
}

static float next(gates g, float s, double u)
{
    return (float)(g.a * s + g.b * u);
}

static void fwd(const hr_recurrence_part *part, const void *u, const void *x, void *y, float *state)
{
    for (int64_t c = 0; c < part->channels; c++) {
        const gates g = gates_of(part, c);
        float s = state ? state[c] : 0;
        for (int64_t t = 0; t < part->tokens; t++) {
            s = next(g, s, at(part, u, t, c));
            hr_element_set(y, t * part->stride + c, part->dtype,
                           (float)(at(part, x, t, c) + (s < 0 ? 0 : s)));
        }
        if (state) state[c] = s;
    }
}

/* Until its sum is known, sums[] of a block holds the state at the start of the block. */
static void bwd(const hr_recurrence_part *part, const void *dy, const void *u, void *du,
                float *sums, float *states)
{
    for (int64_t c = 0; c < part->channels; c++) {
        const gates g = gates_of(part, c);
        float s = 0;
        for (int64_t t = 0; t < part->tokens; t++) {
            if (t % BLOCK == 0) sums[t / BLOCK * part->stride + c] = s;
            s = next(g, s, at(part, u, t, c));
        }
        double carried = 0;
        for (int64_t k = hr_recurrence_blocks(part->tokens); k-- > 0;) {
            const int64_t first = k * BLOCK, count = hr_min(BLOCK, part->tokens - first);
            float *sum = &sums[k * part->stride + c];
            const float before = *sum;
            double q = 0;
            for (int64_t i = 0; i < count; i++)
                states[i] = next(g, i ? states[i - 1] : before, at(part, u, first + i, c));
            for (int64_t i = count; i-- > 0;) {
                const bool passes = !(states[i] <= 0);
                const double old = i ? states[i - 1] : before;
                carried = g.a * carried + (passes ? at(part, dy, first + i, c) : 0);
                q += carried * (old - at(part, u, first + i, c));
                hr_element_set(du, (first + i) * part->stride + c, part->dtype,
                               (float)(g.b * carried));
            }
            *sum = (float)(g.a * g.b * q);
        }
    }
}

void hr_recurrence_fill_ref(hr_recurrence_kernels *kernels)
{
    *kernels = (hr_recurrence_kernels){ fwd, bwd };
}
