/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/repack.h - moves the elements of a stored weight or state between the order of a file
 * and that of memory, without converting them. */
#ifndef HR_CHECKPOINT_REPACK_H
#define HR_CHECKPOINT_REPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/weight_format.h"

/* A matrix [K, N]. The file has rows of `width` elements: [K, N], or [N, K] if transposed. */
typedef struct {
    hr_layout layout; /* in memory */
    int64_t K, N;
    bool transposed;
    int64_t element_bytes; /* 1, 2 or 4 */
    uint8_t pad;           /* every byte of the padding */
} hr_repack;

/* Writes rows [first, first + count) of the file to memory, and the padding of the layout
 * beside them.
 *   rows    [count, width]
 * Threads   any, for disjoint rows. */
void hr_repack_take(const hr_repack *repack, int64_t first, int64_t count, const void *rows,
                    void *weight);

/* The inverse: copies rows [first, first + count) of the file out of memory. Threads any. */
void hr_repack_give(const hr_repack *repack, int64_t first, int64_t count, const void *weight,
                    void *rows);

/* Whether all elements of rows of a file are finite and at most `most` after dequantizing, as fp32
 * bits without the sign.
 *   scales  of the row of blocks that the rows lie in; null: the format has none */
bool hr_repack_is_finite(const hr_weight_format *format, const void *rows, int64_t count,
                         int64_t width, const float *scales, uint32_t most);

#endif
