/* SPDX-License-Identifier: Apache-2.0 */
/* model/family.h - what a model is: its parameters by the names other software gives them, and its
 * forward pass from token ids to the rows that the head reads. A family is one short file. */
#ifndef HR_MODEL_FAMILY_H
#define HR_MODEL_FAMILY_H

#include "graph/builder.h"
#include "headroom/config.h"

enum { HR_LAYER_WEIGHTS = 20 };

/* The tensors that forward steps read. A family numbers the weights of a layer with an enum of
 * its own. */
typedef struct {
    int32_t table, positions, final_gain, final_bias, head, rope_table;
    int32_t (*layers)[HR_LAYER_WEIGHTS]; /* [n_layers] */
} hr_model;

typedef struct {
    const char *name;
    const char *architecture;   /* as a Hugging Face config.json names it; null: not known there */
    const char *initialisation; /* in words */

    /* Declares every parameter, in the order in which a file lists them. */
    void (*params)(hr_builder *builder, const hr_config *config, hr_model *model);

    /* Tables that are computed once, in the builder's section; null: none. */
    void (*tables)(hr_builder *builder, const hr_config *config, hr_model *model);

    /* Token ids to final hidden rows (after the last norm). */
    int32_t (*forward)(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t ids);
} hr_family_spec;

extern const hr_family_spec hr_family_needle, hr_family_gpt_neox, hr_family_llama;

/* The family of a config. Never null. */
const hr_family_spec *hr_family_of(const hr_config *config);

#endif
