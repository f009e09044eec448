/* SPDX-License-Identifier: Apache-2.0 */
/* ops/modulate/modulate.h - adapters whose weights are a function of the token (neuro-plastic
 * transformers): the narrow factor between two products.
 *
 * With u and p two projections of rows, the output y is what the last factor of an adapter reads.
 *
 *     HR_MODULATE_DIAGONAL  y[t,c] = scale tanh(u[t,c]) p[t,c]
 *     HR_MODULATE_OUTER     y[t,j,c] = scale u[t,j,c] sum_k u[t,j,k] p[t,j,k]
 * with columns in groups j of R. The matrix that such an adapter stands for, another for each
 * token, does not exist.
 *
 * Operands. modulate      in  u r, p r         out  y r
 *           modulate_bwd  in  dy r, u r, p r   out  du r, dp r
 *
 *   all  [rows, N] activations, fp32 or bf16, all of one dtype; N is a multiple of R; y may be
 *        exactly u or p; du and dp are two arrays, each of which may be exactly dy, u or p;
 *        otherwise disjoint
 *
 * Numerics computed in fp32 from the stored values, rounded once; sums of a group in fp32. tanh has
 *          a relative error of 1e-6.
 * Repeat   rows are independent. */
#ifndef HR_OPS_MODULATE_H
#define HR_OPS_MODULATE_H

#include "ops/call.h"

typedef enum { HR_MODULATE_DIAGONAL, HR_MODULATE_OUTER } hr_modulate_form;

typedef struct {
    int64_t N, R;
    int32_t form; /* hr_modulate_form */
    float scale;
} hr_modulate_attr;

hr_run_fn hr_modulate_run;
hr_run_fn hr_modulate_bwd_run;

#endif
