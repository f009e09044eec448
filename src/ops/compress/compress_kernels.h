/* SPDX-License-Identifier: Apache-2.0 */
/* ops/compress/compress_kernels.h - passes over `count` elements, the same bits with every
 * instruction set. */
#ifndef HR_OPS_COMPRESS_KERNELS_H
#define HR_OPS_COMPRESS_KERNELS_H

#include "base/dtype.h"
#include "ops/compress/compress.h"

/* out = x + a */
typedef void hr_compress_move_fn(const void *x, const float *a, void *out, int64_t count,
                                 hr_dtype dtype);

/* sum += x */
typedef void hr_compress_add_fn(float *sum, const void *x, int64_t count, hr_dtype dtype);

/* out = sum + x; x may be null. */
typedef void hr_compress_store_fn(const float *sum, const void *x, void *out, int64_t count,
                                  hr_dtype dtype);

typedef struct {
    hr_compress_move_fn *move;
    hr_compress_add_fn *add;
    hr_compress_store_fn *store;
} hr_compress_kernels;

/* One function per instruction set, each in its own file. */
void hr_compress_fill_ref(hr_compress_kernels *kernels);
void hr_compress_fill_avx2(hr_compress_kernels *kernels);
void hr_compress_fill_avx512(hr_compress_kernels *kernels);

#endif
