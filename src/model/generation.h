/* SPDX-License-Identifier: Apache-2.0 */
/* model/generation.h - a config as the program that goes on with a text: load, prompt, token.
 *
 * Weights come without masters, in the type of activations; keys and values of all tokens so far
 * lie in a cache for each layer, a ring where a window slides. The prompt goes through in chunks of
 * rows, tokens one by one; both end in a choice. */
#ifndef HR_MODEL_GENERATION_H
#define HR_MODEL_GENERATION_H

#include "graph/program.h"
#include "headroom/config.h"

/* Builds the program into `region`. train.seq_len is the most tokens of prompt and answer, and
 * train.dtype the type.
 *
 *   rows           of a chunk of the prompt, 1 to train.seq_len
 *   sampling_bytes  scratch of the step that chooses a token
 *
 * Errors   FAILURE  the region is too small. */
HR_MUST_CHECK hr_status hr_model_assemble_generation(const hr_config *config, int64_t rows,
                                                     int64_t sampling_bytes, hr_region *region,
                                                     hr_program *program, hr_error *err);

#endif
