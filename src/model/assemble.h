/* SPDX-License-Identifier: Apache-2.0 */
/* model/assemble.h - a config as a whole program: load, fetch, step, update, evaluation, sample,
 * save.
 *
 * The sections are the children of loop 0. One turn of loop 0 is one step of training; a run
 * enters the later sections only when they are due. The program is built at full batch: cutting
 * it into micro-batches and chunks is the work of passes. */
#ifndef HR_MODEL_ASSEMBLE_H
#define HR_MODEL_ASSEMBLE_H

#include "graph/program.h"
#include "headroom/config.h"
#include "model/rules.h"

enum { HR_SAVE_STAGING_BYTES = 1 << 20, HR_LOAD_STAGING_BYTES = 2 << 20 };

/* Most steps, tensors, loops and parameters that a model of so many layers has, after all
 * passes. */
typedef struct {
    int32_t steps, tensors, loops, params;
} hr_model_limits;
hr_model_limits hr_model_limits_of(const hr_config *config);

/* Builds the program into `region`; `evaluation_sequences` are read at a time outside training.
 * Errors   FAILURE  the region is too small
 *          USAGE    train.freeze or train.param_groups match nothing, or nothing is trained. */
HR_MUST_CHECK hr_status hr_model_assemble(const hr_config *config, int64_t evaluation_sequences,
                                          hr_region *region, hr_program *program, hr_error *err);

/* The same for a model that stands in for a deeper one: what trains in its layers is given, not
 * told by their names. Null: it stands for itself. */
HR_MUST_CHECK hr_status hr_model_assemble_twin(const hr_config *config, const hr_trained *trained,
                                               int64_t evaluation_sequences, hr_region *region,
                                               hr_program *program, hr_error *err);

/* A loop by its name, HR_NONE if there is none. */
int32_t hr_program_loop(const hr_program *program, const char *name);

/* Elements of all parameters, as published sizes count them (without padding). */
int64_t hr_program_parameters(const hr_program *program);

/* Of those that are not frozen. */
int64_t hr_program_trained_parameters(const hr_program *program);

#endif
