/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/low_rank.h - adapters that a conversion merges into the weights of their base. */
#ifndef HR_CHECKPOINT_LOW_RANK_H
#define HR_CHECKPOINT_LOW_RANK_H

#include "base/region.h"
#include "checkpoint/safetensors.h"
#include "headroom/config.h"

typedef struct {
    char folder[HR_PATH_BYTES];
    hr_stored stored;
    bool *used;        /* [tensors of the file] */
    hr_config *config; /* of the base and the adapters */
    double factor;     /* of what the adapters add */
    bool inputs_first; /* the base stores [inputs, outputs] */
    uint32_t cpu_mask;
    void *piece; /* [piece_bytes] */
    int64_t piece_bytes;
    float *factors; /* [room]: of the last tensor, rows [R, rank], then columns [rank, W] */
    int64_t room, rank, rows, width;
    double scale; /* of the last tensor */
    /* Of its outputs, if these have trained lengths; otherwise null. `measures`: the rows that are
     * added are only summed to `squares`. */
    const float *magnitudes;
    double *squares;
    bool measures;
} hr_low_rank;

/* Bytes of region that hr_low_rank_open takes. */
int64_t hr_low_rank_bytes(const char *adapter);

/* Opens a PEFT folder, or FOLDER=FACTOR, for a base. `piece` is a buffer of the caller.
 * Errors   as hr_config_adopt and hr_stored_open. */
HR_MUST_CHECK hr_status hr_low_rank_open(hr_low_rank *low, const char *adapter, const char *base,
                                         void *piece, int64_t piece_bytes, hr_region *region,
                                         hr_error *err);

/* Whether a matrix of the base has an adapter. */
bool hr_low_rank_has(const hr_low_rank *low, const hr_stored_tensor *tensor);

/* The tensor that the folder has in the place of one of the base; null: none. */
const hr_stored_tensor *hr_low_rank_instead(hr_low_rank *low, const hr_stored_tensor *tensor);

/* Whether a tensor is the embedding or the head of a base in which they are one. */
bool hr_low_rank_is_tied(const hr_low_rank *low, const hr_stored_tensor *tensor);

/* Reads the adapter of a matrix. Errors CORRUPT  a part is missing, or has another shape. */
HR_MUST_CHECK hr_status hr_low_rank_load(hr_low_rank *low, const hr_stored_tensor *tensor,
                                         hr_error *err);

/* Adds it to rows [first, first + count) of the matrix, or measures what it gives. */
void hr_low_rank_add(hr_low_rank *low, int64_t first, int64_t count, float *values);

/* Reads a tensor of the folder as fp32. Errors CORRUPT  another dtype, NaN or Inf. */
HR_MUST_CHECK hr_status hr_low_rank_read(hr_low_rank *low, const hr_stored_tensor *part,
                                         float *values, hr_error *err);

/* The scale of the adapter that a tensor of the folder is part of. */
double hr_low_rank_scale(const hr_low_rank *low, const hr_stored_tensor *part);

/* Checks that all tensors of the adapter were loaded. Errors CORRUPT. */
HR_MUST_CHECK hr_status hr_low_rank_check(const hr_low_rank *low, hr_error *err);

#endif
