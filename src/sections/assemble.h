/* SPDX-License-Identifier: Apache-2.0 */
/* sections/assemble.h - builds the whole program of a config: load, fetch, step, update,
 * evaluation, sample, save.
 *
 * The sections are the children of loop 0. One iteration of loop 0 is one training step; a run
 * enters the later sections only when they are due. The program is built at full batch; passes
 * split it into micro-batches and chunks. */
#ifndef HR_SECTIONS_ASSEMBLE_H
#define HR_SECTIONS_ASSEMBLE_H

#include "graph/backend.h"
#include "headroom/config.h"
#include "model/rules.h"

enum { HR_SAVE_STAGING_BYTES = 1 << 20, HR_LOAD_STAGING_BYTES = 2 << 20 };

/* Upper bounds for a model of this config, after all passes. */
typedef struct {
    int32_t steps, tensors, loops, params;
} hr_model_limits;
hr_model_limits hr_model_limits_of(const hr_config *config);

/* Builds the program into `region`. Evaluation reads `evaluation_sequences` at a time.
 *
 * Errors   FAILURE  the region is too small
 *          USAGE    train.freeze or train.param_groups match nothing, or nothing is trained, or
 *                   the back end does not have an operation of the model. */
HR_MUST_CHECK hr_status hr_model_assemble(const hr_config *config, const hr_backend *backend,
                                          int64_t evaluation_sequences, hr_region *region,
                                          hr_program *program, hr_error *err);

/* The same for a proxy model with fewer layers: `trained` replaces the patterns of train.freeze for
 * its layers, and `kinds` [n_layers] are their kinds. Null: apply the patterns; as the family
 * says. */
HR_MUST_CHECK hr_status hr_model_assemble_proxy(const hr_config *config, const hr_backend *backend,
                                                const hr_trained *trained, const uint8_t *kinds,
                                                int64_t evaluation_sequences, hr_region *region,
                                                hr_program *program, hr_error *err);

/* Elements of all parameters, without padding, as published model sizes count them. */
int64_t hr_program_parameters(const hr_program *program);

/* Elements of the parameters that are not frozen. */
int64_t hr_program_trained_parameters(const hr_program *program);

/* Bytes of the weights under adapters with their scales; of adapters with their masters and states.
 * 0: the program has no adapters. */
int64_t hr_program_base_bytes(const hr_program *program);
int64_t hr_program_adapter_bytes(const hr_program *program);

/* Adapters whose rank is above the smaller side of their matrix. */
int64_t hr_program_wide_adapters(const hr_program *program);

#endif
