/* SPDX-License-Identifier: Apache-2.0 */
/* sections/assembly.h - shared building blocks of the programs for a run (assemble.c), generation
 * (generation.c) and evaluation (evaluation.c). */
#ifndef HR_SECTIONS_ASSEMBLY_H
#define HR_SECTIONS_ASSEMBLY_H

#include "graph/backend.h"
#include "model/blocks.h"
#include "model/family.h"
#include "model/rules.h"

typedef struct {
    hr_builder builder;
    const hr_config *config;
    hr_rules rules;
    const hr_family_spec *family;
    hr_model model;
    int32_t ids, targets, loss_scale, lr; /* tensors of the batch */
    int32_t loss_sum;
    hr_teaching teaching; /* count 0: the objective is the loss of the head */
    hr_region *region;
    int64_t kept_bytes; /* of the region: the program; the rest is the model's, until the end */
} hr_assembly;

/* Places an empty program in `region` and begins to build it. For inference, weights have no
 * masters and lookup tables have the length of the sequence. */
HR_MUST_CHECK hr_status hr_assembly_begin(hr_assembly *a, const hr_config *config,
                                          const hr_backend *backend, bool inference,
                                          hr_region *region, hr_program *program, hr_error *err);

/* Ends the assembly; the program stays in the region.
 * Errors   the first error of building; USAGE  the back end does not have an operation
 *          (graph/backend.h); as
 *          hr_service_check_sections. */
HR_MUST_CHECK hr_status hr_assembly_end(hr_assembly *a, hr_error *err);

/* Opens a section whose activations have `rows` rows. */
void hr_assembly_section(hr_assembly *a, hr_loop_id id, int64_t rows, bool training);

/* Adds a host step. `param` HR_NONE: it handles no parameter. */
hr_step *hr_assembly_host(hr_assembly *a, int32_t op, int32_t param, int64_t staging_bytes);

/* Adds token ids or targets: rows of one int32. */
int32_t hr_assembly_tokens(hr_assembly *a, const char *name, int32_t home);

/* Bytes of the staging buffer for loading or saving a parameter: at most `most`, but at least one
 * row. */
int64_t hr_assembly_staging(const hr_param *param, int64_t most);

/* Adds the section that loads weights without masters and computes the lookup tables. */
void hr_assembly_load(hr_assembly *a);

/* Adds the logits of hidden rows. The builder stays in the head block. */
int32_t hr_assembly_logits(hr_assembly *a, int32_t hidden);

/* Adds the logits of hidden rows and their loss. Without a loss sum (HR_NONE) it adds a host step
 * instead that samples a token, with `sampling_bytes` of scratch. */
void hr_assembly_head(hr_assembly *a, int32_t hidden, int32_t targets, int32_t scale,
                      int32_t loss_sum, int64_t sampling_bytes);

#endif
