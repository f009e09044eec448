/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/stages.h - the stages of a run: parts with their own length, batch and other keys.
 *
 * train.stages is a list, one stage after the other: "at_step=0 seq_len=8 batch=4096; at_step=2000
 * seq_len=16 batch=4096 lr_scale=0.5". What a stage does not set is as in the recipe, and what it
 * freezes comes to what the recipe freezes (docs/stages.md). */
#ifndef HEADROOM_STAGES_H
#define HEADROOM_STAGES_H

#include "headroom/config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_STAGES_MAX = 64 };

typedef struct {
    int64_t first_step;  /* steps before the stage */
    int64_t first_token; /* tokens of their batches, batch x seq_len each */
    int64_t seq_len, batch;
    int64_t warmup_steps; /* in which the factor rises or falls to lr_scale */
    double lr_scale;      /* factor of the learning rate */
} hr_stage;

typedef struct {
    hr_stage at[HR_STAGES_MAX];
    int32_t count;   /* 0: the recipe has no stages */
    int64_t longest; /* the largest seq_len of a stage; of the recipe, if it has none */
} hr_stages;

/* Whether a recipe is for a run of stages, and not for one of them. Pure. */
bool hr_config_has_stages(const hr_config *config);

/* Reads train.stages. Stages that are given in tokens begin at the first step that has had them.
 * Errors USAGE: an unknown or repeated key, a stage that does not begin after the one before. */
HR_MUST_CHECK hr_status hr_config_stages(const hr_config *config, hr_stages *stages, hr_error *err);

/* The recipe with the keys of a stage in place. It stays a part of its run: its parameters and
 * states, positions and tables are those of all stages.
 * Errors USAGE  a value that a key does not take. */
HR_MUST_CHECK hr_status hr_config_at_stage(const hr_config *config, int32_t index, hr_config *stage,
                                           hr_error *err);

/* The text of a stage in a list that hr_config_stages accepts; empty: the list ends before it.
 *   length  out */
const char *hr_stages_text(const char *stages, int32_t index, int32_t *length);

/* The value that a stage of the list gives a word, such as freeze; empty: none. */
void hr_config_stage_word(const hr_config *config, int32_t index, const char *name,
                          char value[HR_PATH_BYTES]);

/* A stage as a recipe of its own, without train.stages.
 * Errors USAGE  there is no such stage; as above. */
HR_MUST_CHECK hr_status hr_config_stage_alone(const hr_config *config, int32_t index,
                                              hr_config *stage, hr_error *err);

/* Index of the stage that a step belongs to, counted from 0. Pure. */
int32_t hr_stages_find(const hr_stages *stages, int64_t step);

/* Tokens of the batches before a step. Pure. */
int64_t hr_stages_tokens(const hr_stages *stages, int64_t step);

/* Tokens of an evaluation in every stage of a run, which counts batches of the recipe's own length;
 * 0: all of the text. Pure. */
int64_t hr_config_valid_tokens(const hr_config *config);

/* The longest sequence of the run: of all stages, or train.seq_len. Pure. */
int64_t hr_config_longest(const hr_config *config);

#ifdef __cplusplus
}
#endif
#endif
