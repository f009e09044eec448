/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/output.h - the two output files of an evaluation: all logits, and the loss of each
 * token. Both are written completely or not at all. Allocates nothing. */
#ifndef HR_EVALUATE_OUTPUT_H
#define HR_EVALUATE_OUTPUT_H

#include "base/dtype.h"
#include "base/file.h"

/* What every file of logits has at HR_LOGITS_FIRST_AT, and one of losses at its start. */
enum { HR_LOGITS_FIRST_AT = 8 };
extern const char hr_logits_first[], hr_losses_first[];

enum { HR_LOGITS_STAGING_BYTES = 1 << 18, HR_LOSSES_TEXT_BYTES = 1 << 16 };

/* Starts a safetensors file with one tensor, logits [sequences, length, vocabulary] F32. Errors as
 * hr_file_begin; FAILURE  the disk is full. */
HR_MUST_CHECK hr_status hr_logits_begin(hr_file_out *out, const char *path, int64_t sequences,
                                        int64_t length, int64_t vocabulary, hr_error *err);

/* Returns true when the path is a file started with hr_logits_begin. */
bool hr_logits_are_in(const char *path);

/* Appends logits [count], of dtype F32, BF16 or F16.
 *
 *   staging  [HR_LOGITS_STAGING_BYTES]; may be null for F32
 *
 * Errors   FAILURE. */
HR_MUST_CHECK hr_status hr_logits_add(hr_file_out *out, const void *logits, hr_dtype dtype,
                                      int64_t count, float *staging, hr_error *err);

/* A buffered output of lines. */
typedef struct {
    hr_file_out file;
    char *text; /* [HR_LOSSES_TEXT_BYTES] owned by the caller */
    int64_t used;
} hr_losses_out;

/* Writes one line: {"sequence": 0, "position": 5, "id": 17, "loss": 1.25}. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_losses_add(hr_losses_out *out, int64_t sequence, int64_t position,
                                      int32_t id, double loss, hr_error *err);

/* Flushes the buffer and gives the file its name. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_losses_commit(hr_losses_out *out, hr_error *err);

#endif
