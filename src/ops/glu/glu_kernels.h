/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu_kernels.h - inner loops of a gated activation: a contiguous run of elements. */
#ifndef HR_OPS_GLU_KERNELS_H
#define HR_OPS_GLU_KERNELS_H

#include <stdint.h>

#include "base/dtype.h"
#include "ops/glu/glu.h"

/* y = act(gate) up, `count` elements. */
typedef void hr_glu_fwd_fn(const void *gate, const void *up, void *y, int64_t count,
                           hr_dtype dtype);

/* dgate = dy up act'(gate), dup = dy act(gate). */
typedef void hr_glu_bwd_fn(const void *dy, const void *gate, const void *up, void *dgate, void *dup,
                           int64_t count, hr_dtype dtype);

typedef struct {
    hr_glu_fwd_fn *fwd;
    hr_glu_bwd_fn *bwd;
} hr_glu_kernels;

/* One function per instruction set, each in its own file. */
void hr_glu_fill_ref(hr_glu_kernels *kernels);
void hr_glu_fill_avx2(hr_glu_kernels *kernels);
void hr_glu_fill_avx512(hr_glu_kernels *kernels);
void hr_glu_fill_avx512bf16(hr_glu_kernels *kernels);

#endif
