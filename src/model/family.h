/* SPDX-License-Identifier: Apache-2.0 */
/* model/family.h - a model family: its parameters with the names of other software, and its forward
 * pass from token ids to the input of the head. A family is one short file. */
#ifndef HR_MODEL_FAMILY_H
#define HR_MODEL_FAMILY_H

#include "config/config.h"
#include "graph/builder.h"

/* Kinds of layers that one model may have. */
enum { HR_LAYER_KINDS_MOST = 2 };

/* A layer: its kind, and the tensors of its weights. Each family has an enum of its layer
 * weights. */
typedef struct {
    int32_t kind;
    bool modulated; /* its attention modulates its MLP, and is not added to the stream */
    int32_t *weights;
} hr_layer;

/* The tensors that forward steps read. */
typedef struct {
    int32_t table, positions, final_gain, final_bias, head, rope_table;
    int32_t factor;                    /* of a factorised table or head, else HR_NONE */
    int32_t expansion, expansion_bias; /* widen rows before the head; only for `expand` */
    uint32_t traits;                   /* of its family */
    const struct hr_gpt_form *gpt;     /* of its family */
    bool tied;                         /* the head is the token embedding */
    bool parallel;                     /* both branches of a layer read the same stream */
    int64_t layer_count;               /* of the recipe; of a schema 1 */
    hr_layer *layers;                  /* [layer_count] */
    hr_region *region;                 /* for the weights of layers */
} hr_model;

/* Optional keys and features of a family. */
typedef enum {
    HR_READS_GROUPS = 1 << 0, /* n_kv_heads, head_dim, rope_scaling */
    HR_LEARNS_POSITIONS = 1 << 1,
    HR_READS_RANK = 1 << 2,    /* model.embedding_rank */
    HR_ROTATES_SHARE = 1 << 3, /* rotary_fraction of each head */
    HR_ROTATES_ALL = 1 << 4,
    HR_MAY_TIE = 1 << 5,              /* the head may be the token embedding */
    HR_TIES = 1 << 6,                 /* it is by default */
    HR_READS_EXPANSION = 1 << 7,      /* model.expansion, model.decoder_rank */
    HR_HAS_STATES = 1 << 8,           /* a recurrence instead of attention; no MLP, no dropout */
    HR_SLIDES = 1 << 9,               /* sliding_window */
    HR_MIXES_ATTENTION = 1 << 10,     /* layer_types: only some layers have the window */
    HR_STORES_INPUTS_FIRST = 1 << 11, /* files have matrices as [inputs, outputs] */
    HR_GATES = 1 << 12,               /* the MLP multiplies two products */
    HR_PARTS_SEQUENCES = 1 << 13,     /* attention may work on a part of a sequence at a time */
    HR_SELECTS_KEYS = 1 << 14         /* attention.kind nsa */
} hr_family_trait;

typedef struct {
    const char *name;
    uint32_t traits;
    const char *initialization;    /* description for people */
    const struct hr_gpt_form *gpt; /* of a family of model/gpt.h */

    /* The kind of a layer, below HR_LAYER_KINDS_MOST; null: all layers are of kind 0. Kinds have
     * the same weights and values; they differ in what their steps compute. */
    int32_t (*kind)(const hr_config *config, int64_t layer);

    /* Declares every parameter in file order. The token embedding is first; it is stored transposed
     * if it is also the head. */
    void (*params)(hr_builder *builder, const hr_config *config, hr_model *model);

    /* Adds lookup tables in the builder's section; null: none. */
    void (*tables)(hr_builder *builder, const hr_config *config, hr_model *model);

    /* From token ids to the final hidden rows (after the last norm). */
    int32_t (*forward)(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t ids);

    /* From hidden rows to the input rows of the head's product. It is part of the head, so it runs
     * only for rows with logits. Null: identity. */
    int32_t (*expand)(hr_builder *builder, const hr_config *config, const hr_model *model,
                      int32_t hidden);
} hr_family_spec;

#define HR_FAMILY_SPEC(id, name) extern const hr_family_spec hr_family_##name;
HR_FAMILY_LIST(HR_FAMILY_SPEC)
#undef HR_FAMILY_SPEC

/* The family of a config. Never null. */
const hr_family_spec *hr_family_of(const hr_config *config);

/* The dtype of activations. */
static inline hr_dtype hr_config_dtype(const hr_config *config)
{
    static const hr_dtype dtypes[] = {
        [HR_FORMAT_FP32] = HR_F32, [HR_FORMAT_BF16] = HR_BF16, [HR_FORMAT_FP16] = HR_F16
    };
    return dtypes[config->train.dtype];
}

/* The kind of a layer. */
int32_t hr_family_kind(const hr_config *config, int64_t layer);

/* Returns whether the head is the token embedding (tied embeddings). */
bool hr_family_ties(const hr_config *config);

/* Sets what families read of a model before they declare its parameters, and lists its first
 * `layers` layers with their kinds in `region`. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_model_open(const hr_config *config, int64_t layers, hr_region *region,
                                      hr_model *model, hr_error *err);

#endif
