/* SPDX-License-Identifier: Apache-2.0 */
/* audit/models.h - models by their names: a recipe, a folder with config.json, or one of the known
 * models of others, whose shapes are a table. */
#ifndef HR_AUDIT_MODELS_H
#define HR_AUDIT_MODELS_H

#include "audit/expression.h"

/* The shape of a published model, from its config.json. */
typedef struct {
    const char *name;   /* without the owner, in lower case: "llama-3.1-8b" */
    const char *family; /* of headroom */
    const char *sizes;  /* "d_model=4096 n_layers=32 ...": keys of `model` without the section */
    int64_t parameters; /* as published; a test compares */
    const char *dtype;  /* of the published weights */
    const char *source; /* the repository that the shape is from */
} hr_known_model;

/* Rows of the table, null past the end. Pure. */
const hr_known_model *hr_known_model_at(int32_t index);

/* The model of a hub id ("NousResearch/Meta-Llama-3-8B", "unsloth/Llama-3.2-1B-Instruct-bnb-4bit"):
 * by the last part without endings such as -Instruct, which do not change the shape. Null: unknown.
 * Pure. */
const hr_known_model *hr_known_model_find(const char *id);

/* What an id is by its name, if no table has its shape and headroom no such architecture: "of the
 * Gemma architecture"; null: nothing says so. Pure. */
const char *hr_unknown_architecture(const char *id);

/* The known model most similar to an id. Never null. Pure. */
const hr_known_model *hr_known_model_nearest(const char *id);

/* Sets the keys of `model` in *config from a name: a hub id, a path of a recipe (.yaml), or a
 * folder; relative paths start at `folder`, or else at the current folder. `known` out, may be
 * null: the row, if it was one.
 * Errors   USAGE  an unknown model, with what to give. */
HR_MUST_CHECK hr_status hr_model_read(const char *name, const char *folder, hr_config *config,
                                      const hr_known_model **known, hr_error *err);

/* Number of parameters of a checked model. Pure. */
int64_t hr_model_count(const hr_config *config);

/* Parameters of a named model, or of the keys alone (name empty), changed by keys such as
 * vocab_size=50000. Errors USAGE. */
HR_MUST_CHECK hr_status hr_model_parameters(const char *name, const char *folder,
                                            const hr_argument *keys, int32_t key_count,
                                            int64_t *parameters, hr_error *err);

#endif
