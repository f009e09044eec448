/* SPDX-License-Identifier: Apache-2.0 */
/* model/assembly.h - what the programs of a run (assemble.c) and of a generation (generation.c) are
 * put together from. */
#ifndef HR_MODEL_ASSEMBLY_H
#define HR_MODEL_ASSEMBLY_H

#include "model/family.h"

typedef struct {
    hr_builder builder;
    const hr_config *config;
    const hr_family_spec *family;
    hr_model model;
    int32_t ids, targets, loss_scale, lr; /* of the batch */
    int32_t loss_sum;
} hr_assembly;

/* Opens a section whose values have so many rows. */
void hr_assembly_section(hr_assembly *a, const char *name, int64_t rows, bool training);

/* A step of the host. `param` HR_NONE: of no parameter. */
hr_step *hr_assembly_host(hr_assembly *a, int32_t op, int32_t param, int64_t staging_bytes);

/* Token ids or targets: rows of one int32. */
int32_t hr_assembly_tokens(hr_assembly *a, const char *name, int32_t home);

/* A parameter is read and written by pieces of a row at least, through no more bytes than it has
 * itself. */
int64_t hr_assembly_staging(const hr_param *param, int64_t most);

/* The section that loads weights alone, and computes what tables there are. */
void hr_assembly_load(hr_assembly *a);

/* Logits of hidden rows; the builder stays in the head. */
int32_t hr_assembly_logits(hr_assembly *a, int32_t hidden);

/* Logits of hidden rows, and their loss; without a sum of losses a token is picked, through
 * `sampling_bytes` of scratch. */
void hr_assembly_head(hr_assembly *a, int32_t hidden, int32_t targets, int32_t scale,
                      int32_t loss_sum, int64_t sampling_bytes);

#endif
