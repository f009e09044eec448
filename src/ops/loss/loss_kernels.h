/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss_kernels.h - inner loops of cross-entropy: one row, or a strip of its columns.
 *
 * Exponentials are summed in blocks of columns, relative to the largest logit of each. A strip is
 * whole blocks, so the sums of a row do not depend on its strips. */
#ifndef HR_OPS_LOSS_KERNELS_H
#define HR_OPS_LOSS_KERNELS_H

#include <math.h>
#include <stdint.h>

#include "base/dtype.h"
#include "ops/loss/loss.h"

/* What a row needs of columns [0, first + V) or fewer; the largest is that of the blocks so far. */
typedef struct {
    double sum;  /* of the exponentials of logit - max */
    float max;   /* -inf: no column so far */
    float logit; /* of the target, once it was among the columns */
} hr_loss_part;

_Static_assert(sizeof(hr_loss_part) == HR_LOSS_PART_BYTES, "one line of parts");

/* Columns [first, first + V) of a row; its target may be another column. */
typedef struct {
    const void *logits; /* [V] */
    int64_t first, V;
    int64_t target;
    hr_dtype dtype;
} hr_loss_columns;

/* The scale, and the factor of the z-loss. */
typedef struct {
    double scale, z;
} hr_loss_factors;

/* Adds a block to a part: its largest logit, and its sum relative to that. */
static inline void hr_loss_add(hr_loss_part *part, float max, double sum)
{
    if (max > part->max) {
        part->sum = part->sum * exp((double)part->max - max) + sum;
        part->max = max;
    } else part->sum += max == -INFINITY ? sum : sum * exp((double)max - part->max);
}

static inline double hr_loss_log_sum(const hr_loss_part *part)
{
    return log(part->sum) + part->max;
}

/* Adds columns to a part, which starts as { 0, -INFINITY, 0 }. */
typedef void hr_loss_add_fn(const hr_loss_columns *columns, hr_loss_part *part);

/* The scaled gradient of columns, including that of the z-loss, from the part of the whole row.
 * dlogits may be exactly the logits. */
typedef void hr_loss_gradient_fn(const hr_loss_columns *columns, const hr_loss_part *part,
                                 hr_loss_factors factors, void *dlogits);

/* Both for a whole row, with fewer exponentials: first is 0, and part is the result. dlogits null:
 * no gradient. */
typedef void hr_loss_row_fn(const hr_loss_columns *columns, hr_loss_part *part,
                            hr_loss_factors factors, void *dlogits);

typedef struct {
    hr_loss_row_fn *row;
    hr_loss_add_fn *add;
    hr_loss_gradient_fn *gradient;
} hr_loss_kernels;

/* Results of a whole row, not scaled. */
typedef struct {
    double loss, log_sum;
} hr_loss_row;

static inline hr_loss_row hr_loss_of_row(const hr_loss_kernels *kernels, const void *logits,
                                         void *dlogits, int64_t V, int64_t target,
                                         hr_loss_factors factors, hr_dtype dtype)
{
    const hr_loss_columns columns = { logits, 0, V, target, dtype };
    hr_loss_part part = { 0, -INFINITY, 0 };
    kernels->row(&columns, &part, factors, dlogits);
    const double log_sum = hr_loss_log_sum(&part);
    return (hr_loss_row){ log_sum - part.logit, log_sum };
}

/* One function per instruction set, each in its own file. */
void hr_loss_fill_ref(hr_loss_kernels *kernels);
void hr_loss_fill_avx2(hr_loss_kernels *kernels);
void hr_loss_fill_avx512(hr_loss_kernels *kernels);
void hr_loss_fill_avx512bf16(hr_loss_kernels *kernels);

#endif
