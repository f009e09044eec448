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
    int32_t factor;                      /* HR_NONE but for a table or head that is factorised */
    int32_t expansion, expansion_bias;   /* what widens rows before the head; of `expand` alone */
    int32_t (*layers)[HR_LAYER_WEIGHTS]; /* [n_layers] */
} hr_model;

/* What a family reads beside what all read, or is known to do. */
typedef enum {
    HR_READS_GROUPS = 1 << 0, /* n_kv_heads, head_dim, rope_scaling */
    HR_LEARNS_POSITIONS = 1 << 1,
    HR_READS_RANK = 1 << 2,    /* model.embedding_rank */
    HR_ROTATES_SHARE = 1 << 3, /* rotary_fraction of each head */
    HR_ROTATES_ALL = 1 << 4,
    HR_MAY_TIE = 1 << 5,         /* the head may be the table */
    HR_TIES = 1 << 6,            /* and is, unless the recipe says otherwise */
    HR_READS_EXPANSION = 1 << 7, /* model.expansion, model.decoder_rank */
    HR_HAS_STATES = 1 << 8,      /* a recurrence for attention; no MLP, no dropout */
    HR_SLIDES = 1 << 9           /* sliding_window, the same in all layers */
} hr_family_trait;

typedef struct {
    const char *name;
    uint32_t traits;
    const char *initialisation; /* in words */

    /* Declares every parameter, in the order in which a file lists them: the table of embeddings
     * first, transposed in the file where it is the head too. */
    void (*params)(hr_builder *builder, const hr_config *config, hr_model *model);

    /* Tables that are computed once, in the builder's section; null: none. */
    void (*tables)(hr_builder *builder, const hr_config *config, hr_model *model);

    /* Token ids to final hidden rows (after the last norm). */
    int32_t (*forward)(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t ids);

    /* Hidden rows to those that the head's product reads, as part of the head: of rows whose logits
     * exist alone. Null: the same rows. */
    int32_t (*expand)(hr_builder *builder, const hr_config *config, const hr_model *model,
                      int32_t hidden);
} hr_family_spec;

extern const hr_family_spec hr_family_needle, hr_family_gpt_neox, hr_family_llama, hr_family_gpt2,
    hr_family_opt, hr_family_mistral, hr_family_qwen2, hr_family_qwen3, hr_family_yxanul,
    hr_family_wide;

/* The family of a config. Never null. */
const hr_family_spec *hr_family_of(const hr_config *config);

/* Whether the head is the table of embeddings. */
bool hr_family_ties(const hr_config *config);

#endif
