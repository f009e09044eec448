/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/unpack.h - rows of a parameter as a file has them, into master and weight as memory has
 * them: another order, and mostly another type. */
#ifndef HR_CKPT_UNPACK_H
#define HR_CKPT_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "ckpt/safetensors.h"

/* One parameter. The file has `rows` rows of `width`: [K, N], or with transposed [N, K]. */
typedef struct {
    hr_stored_kind kind; /* not OTHER */
    hr_layout layout;    /* of master and weight */
    int64_t K, N;
    bool transposed;
    float *master;     /* null: there is none */
    uint16_t *weight;  /* bf16; null: there is none */
    uint32_t cpu_mask; /* base/cpu.h: instructions that may be used */
} hr_unpack;

static inline int64_t hr_unpack_rows(const hr_unpack *unpack)
{
    return unpack->transposed ? unpack->N : unpack->K;
}

static inline int64_t hr_unpack_width(const hr_unpack *unpack)
{
    return unpack->transposed ? unpack->K : unpack->N;
}

/* Whether rows lie in memory as they lie in the file, type and all: then they can be read to where
 * they belong, row 0 to master. */
bool hr_unpack_is_flat(const hr_unpack *unpack);

/* Writes rows [first, first + count) of the file, and what is stored beside them and holds zeros.
 * Quick are whole panels, first and count multiples of HR_PANEL_WIDTH; of a matrix that is not
 * transposed, rows by twos.
 *
 *   source  [count, width] in the file's type; where the parameter is flat it may be where the rows
 *           belong
 *
 * Returns  whether all elements are finite, in master and in weight: the largest of F32 are not in
 *          bf16; what is not is written too
 * Numerics F32 to bf16 rounds to nearest, ties to even; all else is exact, subnormals too
 * Threads  any, for rows apart from each other. */
bool hr_unpack_take(const hr_unpack *unpack, int64_t first, int64_t count, const void *source);

#endif
