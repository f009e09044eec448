/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/block_scales.h - the scales of an F8_E4M3 matrix in a file.
 *
 * The format is that of graph/weight_format.h. A matrix [rows, width] with the name "x.weight" has
 * one scale for each block of 128 x 128 elements: the tensor "x.weight_scale_inv" or
 * "x.weight_scale" [ceil(rows / 128), ceil(width / 128)], F32 or BF16. An element is its E4M3 value
 * multiplied by the scale. */
#ifndef HR_CHECKPOINT_BLOCK_SCALES_H
#define HR_CHECKPOINT_BLOCK_SCALES_H

#include "checkpoint/safetensors.h"
#include "graph/weight_format.h"

enum { HR_SCALE_BLOCK = 128 }; /* so matrices have up to 131,072 columns */

typedef struct {
    int64_t offset; /* in its file */
    int32_t file;
    int32_t columns;     /* blocks in a row; 0: no scales */
    hr_stored_kind kind; /* F32 or BF16 */
} hr_block_scales;

/* Blocks in this number of rows or columns. */
static inline int64_t hr_scale_blocks(int64_t elements)
{
    return elements / HR_SCALE_BLOCK + (elements % HR_SCALE_BLOCK != 0);
}

/* Finds the scales of an F8_E4M3 tensor and reads them all once.
 *   found    the tensor with the scales
 * Errors   CORRUPT  they are missing, misshapen, of another dtype, negative or not finite, or the
 *                   matrix is too wide; the message names the tensor. FAILURE. */
HR_MUST_CHECK hr_status hr_block_scales_find(const hr_stored *stored,
                                             const hr_stored_tensor *tensor,
                                             hr_block_scales *scales,
                                             const hr_stored_tensor **found, hr_error *err);

/* Whether a tensor has the scales of another tensor of the files. */
bool hr_block_scales_is(const hr_stored *stored, const hr_stored_tensor *tensor);

/* Reads one row of blocks into scales [HR_SCALES_MAX].
 *   file   descriptor; `path` is for messages
 * Threads  any. */
HR_MUST_CHECK hr_status hr_block_scales_read(const hr_block_scales *scales, int file,
                                             const char *path, int64_t block_row, float *to,
                                             hr_error *err);

#endif
