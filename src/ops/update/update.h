/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update.h - from complete gradients to new weights.
 *
 *     merge   gradient += gradient of the second use of the weight
 *     sumsq   part  += sum of squares of a gradient, or of a strip of it (double)
 *     clip    norm   = sqrt(sum of parts) / s
 *             scale  = min(1, limit / (norm + 1e-6)) / s, 1 / s without a limit
 *     adamw   g = scale * gradient
 *             m = beta1 m + (1 - beta1) g;   v = beta2 v + (1 - beta2) g^2
 *             w = w (1 - lr * decay) - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
 *             with t = clock + 1 - max(missed, uncounted), and lr multiplied by lr_scale. Not
 *             decoupled ("adam"): g = scale * gradient + decay * w, and no factor
 *             (1 - lr * decay)
 *     sgd     g = scale * gradient + decay * w;  m = momentum m + g;  w = w - lr * m
 *     lion    g = scale * gradient;  c = beta1 m + (1 - beta1) g;  m = beta2 m + (1 - beta2) g
 *             w = w (1 - lr * decay) - lr * sign(c)
 *             with sign(c) = c / max(|c|, 2^-126): 1, 0 or -1 for all but subnormal c, NaN for NaN
 *             and for infinite c
 *     average a = a + (1 - decay) (w - a), after the update
 *
 * Operands. merge  in  other w                         out  gradient u
 *           sumsq  in  gradient w                      out  part a
 *           clip   in  parts w, loss_scale W           out  norm_scale w
 *           adamw  in  gradient w, norm_scale W, lr w  out  master u, m u, v u, weight W,
 *                                                           scales of m u, scales of v u,
 *                                                           residual u
 *           sgd    in  gradient w, norm_scale W, lr w  out  master u, m u, weight W, scales u,
 *                                                           residual u
 *           lion   in  gradient w, norm_scale W, lr w  out  as sgd
 *           average in  master w, residual W           out  average u
 *
 *   gradient, master, m, v  [elements] fp32, all in one layout, padding included (zeros stay zero
 *   because eps > 0)
 *   m, v                    bf16, or 8-bit codes with a scale for each 256 elements, where the
 *                           attribute says so (moments.h); then scales are [blocks] fp32
 *   master                  [elements] bf16 where the attribute says so (masters.h): the weight
 *   weight                  [elements] bf16 copy of the new master, rounded once; omitted in fp32
 *                           and where the master is bf16
 *   residual                halves of a bf16 master (base/residual.h); omitted without one
 *   parts                   [count] double
 *   loss_scale              [2] double: of them s, which the gradients are multiplied with, is the
 *                           second; omitted: 1
 *   norm_scale              [2] double: norm, scale; omitted without clipping
 *   lr                      [1] double
 *
 * Numerics sumsq: double; partial sums over runs of 4,096 elements, each with 16 lanes added at its
 *          end, the runs added in order. Strips of whole runs, in order, have the same sum. adamw,
 *          sgd and lion in fp32, with coefficients computed in double and rounded once. lion has
 *          the same bits with every instruction set, because one bit of c can turn a whole update.
 * Repeat   threads take whole runs of 4,096 elements, so the order of sums does not depend on them.
 * Phases   sumsq 2 (runs into scratch; thread 0 adds them), clip 1 (thread 0), others 1.
 *          Stored moments are unpacked, updated and packed again in blocks of 256 elements.
 * Cost     adamw reads and writes each state once: 28 bytes a parameter in fp32, 30 with a bf16
 *          copy; sgd and lion 20 and 22. With codes: 16, 18, 14 and 16. A residual: as fp32. A
 *          bf16 master alone: 4 less.
 * Source   Loshchilov and Hutter 2017, arXiv:1711.05101, algorithm 2; lion: Chen et al. 2023,
 *          arXiv:2302.06675, algorithm 2. */
#ifndef HR_OPS_UPDATE_H
#define HR_OPS_UPDATE_H

#include <stdbool.h>

#include "ops/call.h"

/* What an update changes (masters.h). F32: an fp32 weight, or the fp32 copy of a bf16 weight. */
typedef enum {
    HR_MASTER_F32,
    HR_MASTER_RESIDUAL,
    HR_MASTER_RESIDUAL_BYTES,
    HR_MASTER_ROUNDED
} hr_master_kind;

typedef struct {
    int64_t elements;
} hr_merge_attr;

typedef struct {
    int64_t elements;
} hr_sumsq_attr;

typedef struct {
    int64_t count;
    double limit; /* <= 0: no clipping; the norm is still computed */
} hr_clip_attr;

typedef struct {
    int64_t elements;
    double decay;
    uint8_t master; /* hr_master_kind */
} hr_average_attr;

typedef struct {
    int64_t elements;
    double beta1, beta2, eps, decay; /* sgd: beta1 is the momentum */
    double lr_scale;
    bool decoupled;
    uint8_t moments; /* hr_dtype of the moments: HR_F32, HR_BF16, or HR_U8 with scales */
    int32_t param;
    int64_t first;  /* the first element in the parameter; in a loop that of iteration 0 */
    int64_t missed; /* earlier steps of the run that did not train the parameter */
    uint8_t master; /* hr_master_kind */
} hr_update_attr;

/* The codes of zero in the maps of moments.h. */
enum { HR_ZERO_CODE_SIGNED = 127, HR_ZERO_CODE_UNSIGNED = 0 };

hr_run_fn hr_merge_run;
hr_run_fn hr_sumsq_run;
hr_run_fn hr_clip_run;
hr_run_fn hr_adamw_run;
hr_run_fn hr_sgd_run;
hr_run_fn hr_lion_run;
hr_run_fn hr_average_run;

#endif
