/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dequantize/dequantize_kernels.h - inner loop of dequantize: elements with one scale. */
#ifndef HR_OPS_DEQUANTIZE_KERNELS_H
#define HR_OPS_DEQUANTIZE_KERNELS_H

#include <stdint.h>

#include "base/dtype.h"

/* y[i] = w[i] * scale; `from` F16 or F8_E4M3, `to` F32 or BF16. */
typedef void hr_dequantize_span_fn(const void *w, void *y, int64_t count, float scale,
                                   hr_dtype from, hr_dtype to);

typedef struct {
    hr_dequantize_span_fn *span;
} hr_dequantize_kernels;

/* One function per instruction set, each in its own file. */
void hr_dequantize_fill_ref(hr_dequantize_kernels *kernels);
void hr_dequantize_fill_avx2(hr_dequantize_kernels *kernels);
void hr_dequantize_fill_avx512(hr_dequantize_kernels *kernels);

#endif
