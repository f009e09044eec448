/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/output.h - the two files that an evaluation may write: all logits, and the loss of each
 * token. Both appear whole or not at all, and nothing here allocates. */
#ifndef HR_EVALUATE_OUTPUT_H
#define HR_EVALUATE_OUTPUT_H

#include "base/dtype.h"
#include "base/file.h"

enum { HR_LOGITS_STAGING_BYTES = 1 << 18, HR_LOSSES_TEXT_BYTES = 1 << 16 };

/* Begins a safetensors file of one tensor, logits [sequences, length, vocabulary] F32. Errors as
 * hr_file_begin, and FAILURE: the disk has no room. */
HR_MUST_CHECK hr_status hr_logits_begin(hr_file_out *out, const char *path, int64_t sequences,
                                        int64_t length, int64_t vocabulary, hr_error *err);

/* Whether a path leads to a file that was begun so. */
bool hr_logits_are_in(const char *path);

/* Adds the next logits [count], of type F32 or BF16.
 *
 *   staging  [HR_LOGITS_STAGING_BYTES] where they are BF16; else null will do
 *
 * Errors   FAILURE. */
HR_MUST_CHECK hr_status hr_logits_add(hr_file_out *out, const void *logits, hr_dtype dtype,
                                      int64_t count, float *staging, hr_error *err);

/* Lines on their way into a file. */
typedef struct {
    hr_file_out file;
    char *text; /* [HR_LOSSES_TEXT_BYTES] the caller's */
    int64_t used;
} hr_losses_out;

/* {"sequence": 0, "position": 5, "id": 17, "loss": 1.25}. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_losses_add(hr_losses_out *out, int64_t sequence, int64_t position,
                                      int32_t id, double loss, hr_error *err);

/* Writes what is left, and gives the file its name. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_losses_commit(hr_losses_out *out, hr_error *err);

#endif
