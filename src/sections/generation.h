/* SPDX-License-Identifier: Apache-2.0 */
/* sections/generation.h - builds the program that generates text: load, prompt, token.
 *
 * Weights have the dtype of activations and no masters. Each layer has a KV cache of the previous
 * tokens, a ring buffer with a sliding window. The prompt is processed in chunks of rows, generated
 * tokens one by one; both end with sampling a token. */
#ifndef HR_SECTIONS_GENERATION_H
#define HR_SECTIONS_GENERATION_H

#include "graph/backend.h"
#include "headroom/config.h"

/* Builds the program into `region`. train.seq_len limits the tokens of prompt and answer;
 * train.dtype is the dtype.
 *
 *   rows            of a chunk of the prompt, 1 to train.seq_len
 *   sampling_bytes  scratch of the host step that samples a token
 *
 * Errors   FAILURE  the region is too small. USAGE  the back end lacks an operation. */
HR_MUST_CHECK hr_status hr_model_assemble_generation(const hr_config *config,
                                                     const hr_backend *backend, int64_t rows,
                                                     int64_t sampling_bytes, hr_region *region,
                                                     hr_program *program, hr_error *err);

#endif
