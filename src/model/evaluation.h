/* SPDX-License-Identifier: Apache-2.0 */
/* model/evaluation.h - a config as the program that asks a model about whole sequences: load, and
 * turns of some sequences each.
 *
 * Weights come without masters, in the type of activations; there is no cache. All logits of a turn
 * are handed over, as many rows at a time as the head is cut to. */
#ifndef HR_MODEL_EVALUATION_H
#define HR_MODEL_EVALUATION_H

#include "graph/program.h"
#include "headroom/config.h"

/* Builds the program into `region`. train.seq_len is the length of a sequence, train.dtype the
 * type.
 *
 *   sequences   of a turn, 1 at least
 *   emit_bytes  scratch of the step that hands logits over
 *
 * Errors   FAILURE  the region is too small. */
HR_MUST_CHECK hr_status hr_model_assemble_evaluation(const hr_config *config, int64_t sequences,
                                                     int64_t emit_bytes, hr_region *region,
                                                     hr_program *program, hr_error *err);

#endif
