/* SPDX-License-Identifier: Apache-2.0 */
/* ops/penalty/penalty.h - what keeps adapters of a token small (NPT): a term of the loss, and its
 * gradient.
 *
 * Of a parameter W, its length:
 *     penalty       sums[slot] = weight |W| s / scale,   dW += weight s W / |W|;  0 for W = 0
 *
 * Of outer products, the squared lengths of both vectors, va = i Wa and vb = i Wb, for rows u whose
 * columns are the i of triples j, R columns each. With G[j] = Wa[j]' Wa[j] + Wb[j] Wb[j]', which is
 * [R, R], |va|^2 + |vb|^2 = i' G i, so that neither vector exists:
 *     gram          G[jR+a, b] = sum_k Wa[k, jR+a] Wa[k, jR+b] + sum_n Wb[jR+a, n] Wb[jR+b, n]
 *     restrain      sums[slot] += weight sum over rows and triples of i' G[j] i
 *                   du = 2 weight scale G u,   dG[j] += weight scale sum over rows of i i'
 *     gram_bwd      dW[j] += 2 W[j] dG[j], for columns j of Wa, or for rows j of Wb
 * restrain counts rows with label >= 0.
 *
 * Operands. penalty   in  W w, scale w                      out  dW u, sums u
 *           gram      in  Wa w, Wb w                        out  G w
 *           restrain  in  u r, G w, labels r, scale W       out  sums a, du R, dG A
 *           gram_bwd  in  W w, dG w                         out  dW u
 *
 *   W, Wa [K, N], Wb [N, M]  fp32 or bf16, in `layout`; dW fp32 in that layout
 *   G, dG     [N, R] fp32
 *   u, du     [rows, N] fp32 or bf16; du and dG are omitted in evaluation, and scale may be
 *   labels    [rows] int32
 *   scale     [2] double: s / counted tokens of the whole batch, and s, which the gradients of the
 *             loss are multiplied with
 *   sums      [slots] double, the terms of the loss (ops/match/match.h)
 *
 * Numerics sums in double, of W in blocks of 4,096 elements; G and du rounded once to fp32 or bf16;
 *          dG in fp32 over blocks of 64 tokens counted from the start of each sequence, added in
 *          order.
 * Repeat   bit-identical for any number of threads and any split at multiples of 64 tokens within a
 *          sequence.
 * Phases   penalty, restrain 2; gram, gram_bwd 1. */
#ifndef HR_OPS_PENALTY_H
#define HR_OPS_PENALTY_H

#include "ops/call.h"

typedef struct {
    int64_t elements; /* of W, with padding */
    double weight;
    int32_t slot;
} hr_penalty_attr;

typedef struct {
    int64_t K, N, M, R;
    int32_t layout; /* hr_layout */
    bool of_rows;   /* gram_bwd: the triples are rows, as those of Wb */
} hr_gram_attr;

typedef struct {
    int64_t N, R, T;
    double weight;
    int32_t slot, slots;
} hr_restrain_attr;

enum { HR_PENALTY_BLOCK = 4096 };

hr_run_fn hr_penalty_run;
hr_run_fn hr_gram_run;
hr_run_fn hr_gram_bwd_run;
hr_run_fn hr_restrain_run;

#endif
