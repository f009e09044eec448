/* SPDX-License-Identifier: Apache-2.0 */
/* ops/modulate/modulate_kernels.h - inner loops of adapters of a token: a run of rows. */
#ifndef HR_OPS_MODULATE_KERNELS_H
#define HR_OPS_MODULATE_KERNELS_H

#include <stdint.h>

#include "base/dtype.h"
#include "ops/modulate/modulate.h"

typedef void hr_modulate_fwd_fn(const void *u, const void *p, void *y, int64_t rows,
                                const hr_modulate_attr *attr, hr_dtype dtype);

typedef void hr_modulate_bwd_fn(const void *dy, const void *u, const void *p, void *du, void *dp,
                                int64_t rows, const hr_modulate_attr *attr, hr_dtype dtype);

typedef struct {
    hr_modulate_fwd_fn *fwd;
    hr_modulate_bwd_fn *bwd;
} hr_modulate_kernels;

/* One function per instruction set, each in its own file. */
void hr_modulate_fill_ref(hr_modulate_kernels *kernels);
void hr_modulate_fill_avx2(hr_modulate_kernels *kernels);
void hr_modulate_fill_avx512(hr_modulate_kernels *kernels);

#endif
