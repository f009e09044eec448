/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/unpack.h - conversion of a parameter's rows from a file's layout and dtype to those of
 * the master weight and the weight in memory. */
#ifndef HR_CHECKPOINT_UNPACK_H
#define HR_CHECKPOINT_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/residual.h"
#include "checkpoint/safetensors.h"

/* The largest bit patterns, without the sign, of an fp32 element that is finite in fp32 and in
 * bf16: values at least half a step above the largest bf16 number round to infinity (ties to
 * even). */
enum { HR_UNPACK_MOST_F32 = 0x7f7fffff, HR_UNPACK_MOST_BF16 = 0x7f7f7fff };

/* One parameter. The file has `rows` rows of `width` elements: [K, N], or [N, K] if transposed. */
typedef struct {
    hr_stored_kind kind; /* not OTHER */
    hr_layout layout;    /* of master and weight */
    int64_t K, N;
    bool transposed;
    float *master;        /* may be null */
    uint16_t *weight;     /* bf16; may be null */
    uint32_t cpu_mask;    /* base/cpu.h: allowed instruction sets */
    const float *scales;  /* E4M3: [ceil(width / 128)] factors of the rows; otherwise null */
    hr_residual residual; /* of weight, without master (base/residual.h); may be null */
    int64_t groups; /* of columns, which the file has one after another as matrices; 0: one group */
} hr_unpack;

static inline int64_t hr_unpack_rows(const hr_unpack *unpack)
{
    return unpack->transposed ? unpack->N : unpack->K * (unpack->groups ? unpack->groups : 1);
}

static inline int64_t hr_unpack_width(const hr_unpack *unpack)
{
    return unpack->transposed ? unpack->K : unpack->N / (unpack->groups ? unpack->groups : 1);
}

/* Whether the rows have the same layout and dtype in memory as in the file. Then they can be read
 * directly to their destination, row 0 to master. */
bool hr_unpack_is_flat(const hr_unpack *unpack);

/* Writes rows [first, first + count) of the file, and the zero padding of the layout beside them.
 * A residual needs hr_residual_finish after the last row. Without one, fast for whole panels, where
 * first and count are multiples of HR_PANEL_WIDTH; for a matrix that is not transposed, also for an
 * even number of rows.
 *
 *   source  [count, width] in the file's dtype; for a flat parameter it may be the destination;
 *           rows of E4M3 lie in one row of blocks (block_scales.h)
 *
 * Returns  whether all elements are finite in master and in weight: the largest F32 values overflow
 *          bf16. Non-finite elements are written too
 * Numerics F32 to bf16 rounds to nearest, ties to even; an E4M3 value times its scale is an fp32
 *          product; everything else is exact, including subnormals
 * Threads  any, for disjoint rows. */
bool hr_unpack_take(const hr_unpack *unpack, int64_t first, int64_t count, const void *source);

#endif
