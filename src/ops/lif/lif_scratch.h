/* SPDX-License-Identifier: Apache-2.0 */
/* ops/lif/lif_scratch.h - the scratch of a thread: what one block of neurons did in a sequence. */
#ifndef HR_OPS_LIF_SCRATCH_H
#define HR_OPS_LIF_SCRATCH_H

#include "base/checked.h"
#include "ops/lif/lif.h"

/* Offsets in bytes, all multiples of 64. */
typedef struct {
    int64_t potentials; /* float [T, block]; then their gradients */
    int64_t spikes;     /* float [1 + T, 2 block]: after each token, each twice side by side */
    int64_t wins;       /* uint8_t [T, block] */
    int64_t sums;       /* float [synapses, block]: dw of the sequence */
    int64_t heard;      /* float [synapses, block]: weights by the neuron that is heard */
    int64_t bytes;
} hr_lif_scratch;

static inline hr_lif_scratch hr_lif_scratch_of(const hr_lif_attr *attr)
{
    const int64_t all = attr->T * attr->block, row = 2 * attr->block * (int64_t)sizeof(float);
    hr_lif_scratch s = { 0 };
    s.spikes = s.potentials + hr_round_up(all * (int64_t)sizeof(float), 64);
    s.wins = s.spikes + hr_round_up((1 + attr->T) * row, 64);
    s.sums = s.wins + hr_round_up(all, 64);
    s.heard = s.sums + hr_round_up(attr->synapses * attr->block * (int64_t)sizeof(float), 64);
    s.bytes = s.heard + (s.heard - s.sums);
    return s;
}

#endif
