/* SPDX-License-Identifier: Apache-2.0 */
/* ops/magnitude/magnitude_kernels.h - inner loops of lengths and magnitudes, one thread. Shapes,
 * aliasing and numerics are those of magnitude.h; bias, residual and addend may be null. */
#ifndef HR_OPS_MAGNITUDE_KERNELS_H
#define HR_OPS_MAGNITUDE_KERNELS_H

#include <stdint.h>

#include "base/dtype.h"
#include "ops/magnitude/magnitude.h"

/* w[k, 0..16) += scale sum_r a[k, r] b[r, 0..16) for rows k of a strip.
 *   w [rows, 16]; a [rows, R] with `stride` between rows; b [R, 16] */
typedef void hr_length_strip_fn(float *w, const float *a, int64_t stride, const float *b,
                                int64_t rows, int64_t R, float scale);

typedef void hr_magnitude_fwd_fn(const void *x, const float *m, const float *c, const float *bias,
                                 const void *residual, void *y, int64_t rows, int64_t N,
                                 hr_dtype dtype);

/* Writes the sums of dm of these rows to partial [N]. */
typedef void hr_magnitude_bwd_fn(const void *dy, const void *x, const float *m, const float *c,
                                 const void *addend, void *dx, float *partial, int64_t rows,
                                 int64_t N, hr_dtype dtype);

typedef struct {
    hr_length_strip_fn *strip;
    hr_magnitude_fwd_fn *fwd;
    hr_magnitude_bwd_fn *bwd;
} hr_magnitude_kernels;

/* One function per instruction set, each in its own file. */
void hr_magnitude_fill_ref(hr_magnitude_kernels *kernels);
void hr_magnitude_fill_avx2(hr_magnitude_kernels *kernels);
void hr_magnitude_fill_avx512(hr_magnitude_kernels *kernels);
void hr_magnitude_fill_avx512bf16(hr_magnitude_kernels *kernels);

#endif
