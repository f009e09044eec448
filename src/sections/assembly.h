/* SPDX-License-Identifier: Apache-2.0 */
/* sections/assembly.h - shared building blocks of the programs for a run (assemble.c), generation
 * (generation.c) and evaluation (evaluation.c). */
#ifndef HR_SECTIONS_ASSEMBLY_H
#define HR_SECTIONS_ASSEMBLY_H

#include "graph/backend.h"
#include "model/family.h"

typedef struct {
    hr_builder builder;
    const hr_config *config;
    const hr_family_spec *family;
    hr_model model;
    int32_t ids, targets, loss_scale, lr; /* tensors of the batch */
    int32_t loss_sum;
} hr_assembly;

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

/* The first error of building the program; else checks that its back end runs it.
 * Errors   USAGE  the back end does not have an operation (graph/backend.h). */
HR_MUST_CHECK hr_status hr_assembly_close(const hr_assembly *a, hr_error *err);

#endif
