/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/convert_tensor.h - writes one tensor of a conversion: copies it, converts its
 * elements, or computes the scales of blocks. */
#ifndef HR_CHECKPOINT_CONVERT_TENSOR_H
#define HR_CHECKPOINT_CONVERT_TENSOR_H

#include <signal.h>

#include "checkpoint/block_scales.h"
#include "checkpoint/low_rank.h"

enum { HR_CONVERT_PIECE = 1 << 18, HR_CONVERT_PIECE_BYTES = 4 * HR_CONVERT_PIECE };

/* A tensor in the destination. */
typedef struct {
    const hr_stored_tensor *from;
    const hr_stored_dtype *dtype;
    int64_t bytes, begin; /* begin: offset in the data of its file */
    int32_t file;
    bool scales;                /* the scales of `from`, which becomes F8_E4M3 */
    hr_block_scales old_scales; /* of an F8_E4M3 tensor that gets another dtype */
} hr_converted;

typedef struct {
    const hr_stored *stored;
    const char *destination;                 /* for messages */
    const volatile sig_atomic_t *interrupts; /* null: none */
    uint32_t cpu_mask;
    void *piece;      /* [HR_CONVERT_PIECE_BYTES] */
    float *wide;      /* [HR_CONVERT_PIECE] */
    uint16_t *half;   /* [HR_CONVERT_PIECE] */
    hr_low_rank *low; /* added to the tensor; null: nothing */
} hr_tensor_conversion;

/* Appends the tensor to the file, in pieces.
 * Errors   CORRUPT  a value is NaN, Inf, or too large for the dtype. FAILURE, INTERRUPTED. */
HR_MUST_CHECK hr_status hr_convert_tensor(const hr_tensor_conversion *conversion, hr_file_out *out,
                                          const hr_converted *tensor, hr_error *err);

#endif
