/* SPDX-License-Identifier: Apache-2.0 */
/* ops/lif/lif_kernels.h - one block of neurons over one sequence. */
#ifndef HR_OPS_LIF_KERNELS_H
#define HR_OPS_LIF_KERNELS_H

#include "ops/lif/lif_scratch.h"

/* Rows, weights and states start at the first neuron of the block; their stride is attr->C. */
typedef struct {
    const hr_lif_attr *attr;
    const float *w; /* [synapses] rows */
    int64_t tokens;
    hr_dtype dtype; /* of u, x, y, dy, du */
} hr_lif_part;

/* y = x + spikes; state [3] rows is in and out, or null: starts at zero. */
typedef void hr_lif_fwd_fn(const hr_lif_part *part, const void *u, const void *x, void *y,
                           float *state);

/* Writes du and adds to dw, which may be null. `scratch` is that of a thread, and dy may be du. */
typedef void hr_lif_bwd_fn(const hr_lif_part *part, const void *dy, const void *u, void *du,
                           char *scratch, float *dw);

typedef struct {
    hr_lif_fwd_fn *fwd;
    hr_lif_bwd_fn *bwd;
} hr_lif_kernels;

/* One function per instruction set, each in its own file. */
void hr_lif_fill_ref(hr_lif_kernels *kernels);
void hr_lif_fill_avx2(hr_lif_kernels *kernels);
void hr_lif_fill_avx512(hr_lif_kernels *kernels);

#endif
