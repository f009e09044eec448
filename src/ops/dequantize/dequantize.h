/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dequantize/dequantize.h - a stored weight as products read it.
 *
 *     y[k,n] = w[k,n] * scale[k / block[0], n / block[1]],  or w[k,n] without scales
 *
 * There is no gradient: stored weights are frozen.
 *
 * Operands. dequantize  in  w w, scales W      out  y w
 *
 *   w       [K, N] f16, f8_e4m3, or bf16 where y is fp32, in `layout`, with zeros as padding
 *   scales  fp32, not negative, finite: the table that the file has, whose rows are blocks of rows
 *           of the matrix in the file; present if block is not 0
 *   y       [K, N] fp32 or bf16, in `layout`
 *
 * Numerics an f16 or E4M3 value is exact in fp32; the product with the scale is rounded to fp32,
 *          then to bf16: the same bits as loading the weight in the dtype of y.
 * Repeat   an element depends on no other.
 * Cost     one pass over w and y. */
#ifndef HR_OPS_DEQUANTIZE_H
#define HR_OPS_DEQUANTIZE_H

#include "ops/call.h"

typedef struct {
    int64_t K, N;
    int64_t block[2];         /* of k and n; a multiple of 16 each, or 0: no scales */
    int64_t scale_stride[2];  /* from one block of k, and of n, to the next in the table */
    int32_t from, to, layout; /* hr_dtype of w and of y, hr_layout of both */
} hr_dequantize_attr;

hr_run_fn hr_dequantize_run;

#endif
