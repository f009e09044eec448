/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/masters.h - weights that have no fp32 copy: unpacked to fp32 in blocks, updated, and
 * packed again while in the first-level cache.
 *
 *     residual  a bf16 weight and the 16 bits that it lacks (base/residual.h): exact. The weight is
 *               rounded to nearest even, as a copy of an fp32 master is
 *     residual bytes
 *               a bf16 weight and 8 more bits, a number of 24. The new value is rounded to it, up
 *               with the probability of the bits that are lost; the weight is rounded to nearest
 *     rounded   a bf16 weight alone: the new value is rounded up with the probability of the bits
 *               that are lost, so that changes of less than its last place count in the mean. Zeros
 *               and numbers of bf16 stay as they are
 *
 * Repeat   the bits that round are those of (seed, step, parameter, element), so they do not depend
 *          on threads, pieces or resuming. */
#ifndef HR_OPS_UPDATE_MASTERS_H
#define HR_OPS_UPDATE_MASTERS_H

#include "ops/update/update.h"
#include "ops/update/update_kernels.h"

typedef struct {
    hr_master_kind kind;
    void *stored;            /* fp32 or bf16 */
    uint16_t *residual;      /* null: none */
    hr_random_stream stream; /* of the bits that round */
    int64_t element_first;   /* of `stored` in the parameter */
} hr_master;

/* Elements [first, first + count) in fp32: in place, or unpacked to `values`. Returns where.
 *   first  a multiple of HR_MOMENT_BLOCK, count <= HR_MOMENT_BLOCK */
float *hr_master_unpack(const hr_update_kernels *kernels, const hr_master *master, int64_t first,
                        int64_t count, float *values);

/* Stores them again. */
void hr_master_pack(const hr_update_kernels *kernels, const hr_master *master, int64_t first,
                    int64_t count, const float *values);

#endif
