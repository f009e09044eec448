/* SPDX-License-Identifier: Apache-2.0 */
/* sections/evaluation.h - builds the program that evaluates whole sequences: load, then iterations
 * over some sequences each.
 *
 * Weights have the dtype of activations and no masters; there is no KV cache. A host step receives
 * all logits, as many rows at a time as the head's tile has. */
#ifndef HR_SECTIONS_EVALUATION_H
#define HR_SECTIONS_EVALUATION_H

#include "graph/backend.h"
#include "headroom/config.h"

/* Builds the program into `region`. train.seq_len is the length of a sequence, train.dtype the
 * dtype.
 *
 *   sequences   per iteration, >= 1
 *   emit_bytes  scratch of the host step that receives the logits
 *   strips      it takes them in strips of columns, where the head is in a file (sections/head.h)
 *
 * Errors   FAILURE  the region is too small. USAGE  the back end lacks an operation. */
HR_MUST_CHECK hr_status hr_model_assemble_evaluation(const hr_config *config,
                                                     const hr_backend *backend, int64_t sequences,
                                                     int64_t emit_bytes, bool strips,
                                                     hr_region *region, hr_program *program,
                                                     hr_error *err);

#endif
